"""Whether a chat is as a case wants it. Pure."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.output_check import misfit
from dualtrack.output_schema import matcher
from dualtrack.text import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack_stack.evals.case import Checks, WantedCall

_SHOWN: Final = 300
MATCHED: Final = 200_000
"""Characters of an answer in which a pattern is looked for."""


@dataclass(frozen=True, slots=True)
class MadeCall:
    """A tool call of the chat."""

    tool: str
    input: Mapping[str, Any]
    result: str = ""
    is_error: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one or several chats. ``text``, ``status`` and ``error`` are of the last; figures are sums.
    ``turns``: model calls; ``seconds`` as whoever asked has waited."""

    text: str
    status: str
    error: str = ""
    calls: Sequence[MadeCall] = ()
    credits: int = 0
    dollars: float = 0.0
    tokens: int = 0
    turns: int = 0
    seconds: float = 0.0

    def then(self, later: Outcome) -> Outcome:
        """Both together, in this order."""
        return Outcome(
            later.text,
            later.status,
            later.error,
            (*self.calls, *later.calls),
            self.credits + later.credits,
            self.dollars + later.dollars,
            self.tokens + later.tokens,
            self.turns + later.turns,
            self.seconds + later.seconds,
        )


@dataclass(frozen=True, slots=True)
class Finding:
    """A check: ``check`` as the file has it, and what there is ``instead`` where it has not passed."""

    check: str
    passed: bool
    instead: str = ""


def findings(checks: Checks, got: Outcome) -> list[Finding]:
    """All checks of the chat but the judge's, in the order of `Checks`."""
    return [
        *_status(checks, got),
        *_texts(checks, got.text),
        *_calls(checks, got.calls),
        *_schema(checks, got.text),
        *_figures(checks, got),
    ]


def _status(checks: Checks, got: Outcome) -> Iterator[Finding]:
    """Only if it is not as wanted, or the file names it: that a chat is done goes without saying."""
    passed = got.status == checks.status
    if not passed or "status" in checks.model_fields_set:
        yield Finding(
            f"status {checks.status}", passed, f"{got.status} {one_line(got.error[:_SHOWN])}".strip()
        )


def _texts(checks: Checks, text: str) -> Iterator[Finding]:
    folded, instead = text.casefold(), f"the answer is {shown(text)}"
    for part in checks.contains:
        yield Finding(f"contains {shown(part)}", part.casefold() in folded, instead)
    for part in checks.lacks:
        yield Finding(f"lacks {shown(part)}", part.casefold() not in folded, instead)
    for pattern in checks.matches:
        found = matcher(pattern)
        yield Finding(f"matches {shown(pattern)}", bool(found and found(text[:MATCHED])), instead)


def _calls(checks: Checks, made: Sequence[MadeCall]) -> Iterator[Finding]:
    listed = "; ".join(f"{call.tool} {json.dumps(dict(call.input), ensure_ascii=False)}" for call in made)
    instead = f"called: {one_line(listed[: 3 * _SHOWN]) or 'none'}"
    for wanted in checks.calls:
        passed = any(fits(wanted, call.tool, call.input) for call in made)
        with_input = f" with {json.dumps(wanted.input, ensure_ascii=False)}" if wanted.input else ""
        yield Finding(f"calls {wanted.tool}{with_input}", passed, instead)
    for name in checks.never_calls:
        yield Finding(f"never calls {name}", all(call.tool != name for call in made), instead)


def _schema(checks: Checks, text: str) -> Iterator[Finding]:
    if checks.schema_ is not None:
        problem = misfit(checks.schema_, text)
        yield Finding("schema", not problem, problem)


def _figures(checks: Checks, got: Outcome) -> Iterator[Finding]:
    for what, limit, figure in (
        ("credits", checks.most_credits, got.credits),
        ("dollars", checks.most_dollars, got.dollars),
        ("turns", checks.most_turns, got.turns),
        ("seconds", checks.most_seconds, got.seconds),
    ):
        if limit is not None:
            yield Finding(f"at most {limit:g} {what}", figure <= limit, f"{figure:.6g}")


def fits(wanted: WantedCall, tool: str, given: Mapping[str, Any]) -> bool:
    """Whether a call is of this tool and its input has what is wanted."""
    return wanted.tool == tool and _has(given, wanted.input)


def _has(given: Any, wanted: Any) -> bool:
    """Fields of a table may be more than are wanted; everything else is equal."""
    if isinstance(wanted, dict):
        return hasattr(given, "get") and all(
            name in given and _has(given[name], value) for name, value in wanted.items()
        )
    if isinstance(wanted, list):
        return (
            isinstance(given, (list, tuple)) and len(given) == len(wanted) and all(map(_has, given, wanted))
        )
    return bool(given == wanted) and isinstance(given, bool) == isinstance(wanted, bool)


def shown(text: str) -> str:
    """A text on one line, in quotation marks, and cut."""
    flat = one_line(text[: 2 * _SHOWN])
    return f"“{flat if len(flat) <= _SHOWN else flat[:_SHOWN] + '…'}”"
