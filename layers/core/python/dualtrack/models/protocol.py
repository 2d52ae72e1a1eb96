"""The interface of a model, whoever serves it (DESIGN 5): what the client of a provider implements
(`dualtrack.models.provider`).

A request is the body of a call to the Messages API, without ``stream`` and the output format. Its fields on thinking
come from `dualtrack.models.thinking`; its ``diagnostics`` (`dualtrack.models.cache_word`) are for services that take
them: the others' clients leave them out. All three methods raise `ModelUnavailable` for temporary errors, its subclass
`ModelBusy` if the caller has to wait, and `ModelRefused` for permanent ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from dualtrack.chat_times import LEAST_CALL_SECONDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from dualtrack.models.turn import FirstByte, ModelReply, Usage

Form = TypeVar("Form", bound="BaseModel")


def ignore(_: object) -> None:
    """For what nobody needs to know."""


class Model(Protocol):
    """A client of a model's service. Thread-safe; it does not retry (DESIGN 2.10)."""

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """A turn. ``on_first`` is called once, as the answer begins; ``on_text`` and ``on_thought`` get every piece of
        text and of readable thinking as it arrives. All may raise to stop. An answer that takes longer than
        ``seconds`` is cut there, as one that ``max_tokens`` cuts."""

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        """The text of a short answer, and its tokens."""

    def parse(self, request: Mapping[str, Any], form: type[Form], seconds: float) -> tuple[Form, Usage]:
        """An answer in the form, and its tokens. Raises `ModelUnavailable` if it was cut off, declined, or has
        another form."""

    def __hash__(self) -> int:
        """Clients are hashable, so that data of a client can be cached."""
