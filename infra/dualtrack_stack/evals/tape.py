"""A model's answers on a file, so that the same chat can be taken again without the model, and without a key.

A tape has replies alone, in the order of the calls; of each request a hash says whether it is asked alike today. The
mark behind which notes stand is new for each chat, so a tape has a placeholder for it.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.chat_times import LEAST_CALL_SECONDS
from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.frozen import freeze, thaw
from dualtrack.models.protocol import ignore
from dualtrack.models.turn import Declined, FirstByte, ModelReply, Usage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from dualtrack.models.protocol import Form, Model

VERSION: Final = 1
_MARK: Final = re.compile(r"\[\[notes:[0-9a-f]{8}\]\]")
_PLACE: Final = "[[notes:THIS_CHAT]]"
_NOT_COMPARED: Final = ("diagnostics", "stream")


class BadTape(ValueError):
    """A file is no recording, or of another version."""


@dataclass(eq=False)
class Taped:
    """A client of ``model`` whose answers are kept in ``calls``."""

    model: Model
    sent: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    calls: list[dict[str, Any]] = field(default_factory=list)

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """A turn, by the model."""
        self.sent.append(thaw(request))
        first: list[FirstByte] = []

        def begun(byte: FirstByte) -> None:
            first.append(byte)
            on_first(byte)

        reply = self.model.stream(request, on_text, seconds, begun, on_thought)
        told = replace(reply, content=thaw(reply.content), broken=thaw(reply.broken), cache=None)
        kept = {name: value for name, value in asdict(told).items() if name not in ("message", "cache")}
        self._keep("turn", request, {**kept, "served": first[0].served if first else str(request["model"])})
        return reply

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        """A short answer, by the model."""
        text, usage = self.model.complete(request, seconds)
        self._keep("text", request, {"text": text, "usage": asdict(usage)})
        return text, usage

    def parse(self, request: Mapping[str, Any], form: type[Form], seconds: float) -> tuple[Form, Usage]:
        """An answer in a form, by the model."""
        answer, usage = self.model.parse(request, form, seconds)
        self._keep("form", request, {"form": answer.model_dump(mode="json"), "usage": asdict(usage)})
        return answer, usage

    def write(self, path: Path) -> None:
        """The tape as a file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        tape = {"version": VERSION, "calls": self.calls}
        path.write_text(json.dumps(tape, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    def _keep(self, kind: str, request: Mapping[str, Any], answer: dict[str, Any]) -> None:
        text = _MARK.sub(_PLACE, json.dumps(answer, ensure_ascii=False))
        self.calls.append({"kind": kind, "asked": asked(request), **json.loads(text)})


@dataclass(eq=False)
class Played:
    """A client that answers from a tape: each call with the next answer of its kind. ``drifted``: how many requests are
    not those to which the answers were given."""

    calls: list[dict[str, Any]]
    sent: list[dict[str, Any]] = field(default_factory=list)
    problem: str = ""
    drifted: int = 0

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,  # noqa: ARG002 - the interface
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """The next turn of the tape."""
        self.sent.append(thaw(request))
        call = self._next("turn", request)
        usage = Usage(**call["usage"])
        on_first(
            FirstByte(
                call["served"],
                Usage(usage.input_tokens, 0, usage.cache_read_tokens, usage.cache_write_tokens),
            )
        )
        for block in call["content"]:
            if block["type"] == "thinking" and block.get("thinking"):
                on_thought(block["thinking"])
            if block["type"] == "text":
                on_text(block["text"])
        return ModelReply(
            content=freeze(tuple(call["content"])),
            stop_reason=call["stop_reason"],
            usage=usage,
            broken=freeze(call["broken"]),
            cut=call["cut"],
            declined=Declined(**call["declined"]) if call["declined"] else None,
            calls=call["calls"],
            first_seconds=call["first_seconds"],
            is_late=call["is_late"],
        )

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:  # noqa: ARG002
        """The next short answer."""
        call = self._next("text", request)
        return call["text"], Usage(**call["usage"])

    def parse(
        self,
        request: Mapping[str, Any],
        form: type[Form],
        seconds: float,  # noqa: ARG002
    ) -> tuple[Form, Usage]:
        """The next answer in a form."""
        call = self._next("form", request)
        try:
            return form.model_validate(call["form"]), Usage(**call["usage"])
        except ValueError as error:
            raise ModelUnavailable("The recorded answer has another form.") from error

    def _next(self, kind: str, request: Mapping[str, Any]) -> dict[str, Any]:
        """Raises `ModelRefused` if the tape is at its end."""
        of_kind = [call for call in self.calls if call["kind"] == kind]
        if not of_kind:
            self.problem = (
                self.problem or f"The recording has no further answer of a {kind}: record it again."
            )
            raise ModelRefused(self.problem, 400, said=self.problem)
        known = asked(request)
        taken = next((call for call in of_kind if call["asked"] == known), of_kind[0])
        self.drifted += taken["asked"] not in ("", known)
        self.calls.remove(taken)
        mark = _MARK.search(json.dumps(thaw(request), ensure_ascii=False))
        text = json.dumps(taken, ensure_ascii=False)
        there: dict[str, Any] = json.loads(text.replace(_PLACE, mark[0]) if mark else text)
        return there


def read_tape(path: Path) -> Played:
    """Raises `BadTape`."""
    try:
        tape = json.loads(path.read_text(encoding="utf-8"))
        if tape["version"] != VERSION:
            raise BadTape(f"{path}: it was recorded by another release: record it again")
        return Played(list(tape["calls"]))
    except (OSError, ValueError, KeyError, TypeError) as error:
        if isinstance(error, BadTape):
            raise
        raise BadTape(f"{path}: this is no recording: record it again ({type(error).__name__})") from error


def asked(request: Mapping[str, Any]) -> str:
    """A hash of what the model is asked, that of two chats alike."""
    compared = {name: value for name, value in thaw(request).items() if name not in _NOT_COMPARED}
    text = _MARK.sub(_PLACE, json.dumps(compared, sort_keys=True, ensure_ascii=False))
    return hashlib.sha256(text.encode()).hexdigest()[:16]
