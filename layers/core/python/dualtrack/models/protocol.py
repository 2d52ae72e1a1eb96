"""What is asked of a model, whoever serves it (DESIGN 5). A provider is a module beside this one that does these
three things, a name in `dualtrack.models.providers`, and one line in `dualtrack.models.open_model`.

A request is the body of a call of the Messages API, without ``stream`` and the format of the output. What it says
of thinking is decided in `dualtrack.models.thinking`. All three raise `ModelUnavailable` for what another try may
mend, `ModelBusy` among it if it has to be waited for, and `ModelRefused` for what none will.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from pydantic import BaseModel

    from dualtrack.models.turn import ModelReply, Usage

CALL_SECONDS: Final = 120.0
"""A turn's call of the model (CONTRACT 7)."""

Form = TypeVar("Form", bound="BaseModel")


class Model(Protocol):
    """A client of a model's service. Thread-safe; it does not retry by itself (DESIGN 2.10)."""

    def stream(
        self, request: Mapping[str, Any], on_text: Callable[[str], None], seconds: float = CALL_SECONDS
    ) -> ModelReply:
        """A turn. ``on_text`` gets every piece of text as it arrives and may raise to stop."""

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        """The text of a short answer, and the tokens it took."""

    def parse(self, request: Mapping[str, Any], form: type[Form], seconds: float) -> tuple[Form, Usage]:
        """An answer of the form, and the tokens it took. One that was cut, declined, or is of another form is no
        answer: `ModelUnavailable`."""

    def __hash__(self) -> int:
        """Clients are told apart, so that what is made for one can be kept."""
