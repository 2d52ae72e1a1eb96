"""Why a model stops, and what becomes of the chat: one table, total (CONTRACT 7, 8). Pure.

the model stops with                     the chat
end_turn, stop_sequence                  is answered: `complete`, or as its limit says if this was its last call
tool_use, pause_turn                     goes on; in its last call as above
max_tokens, in text                      is answered: `max_tokens`; the answer can be continued
max_tokens, in or behind a tool call     goes on: the cut call has an error result; twice, and the next call is the last
model_context_window_exceeded            is answered: `context_window`
refusal, or an error of content          is answered: `refusal`; its query leaves what is sent
anything else                            is answered: `other`, with the text that came
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.vocabulary import Stop

CutReason = Literal["max_turns", "insufficient_credits", "timeout", "max_cost", "cut_calls"]
LastCallReason = Literal["", "rounds_done", "second_answer"] | CutReason
"""Why a call is the last one and may use no tools; empty if it is not the last. `ROUNDS_DONE` is no limit to anybody:
nobody is told, and the answer stops as the model says."""

ROUNDS_DONE: Final = "rounds_done"
"""The profile's turns with tools are used up, and the answer after them is its normal end (PROFILES 1)."""

SECOND_ANSWER: Final = "second_answer"
"""The first answer did not fit its JSON Schema, and this call is forced to."""

MOST_CUTS: Final = 2
"""After so many turns of a chat whose tool calls were cut off, the next call is the last one."""

CALLS_TOOLS: Final = ("tool_use", "max_tokens")
"""The reasons with which a turn's tool calls are run, as far as they are whole."""

STOP_OF_LIMIT: Final[Mapping[str, Stop]] = {
    "max_turns": "max_turns",
    "insufficient_credits": "insufficient_credits",
    "timeout": "timeout",
    "max_cost": "max_cost",
    "cut_calls": "max_tokens",
}

_LIMITS: Final[Mapping[str, CutReason]] = {
    "max_turns": "max_turns",
    "insufficient_credits": "insufficient_credits",
    "timeout": "timeout",
    "max_cost": "max_cost",
}
"""The stops that tell of which limit a call was the last; of others the chat says it."""

_STOPS: Final[Mapping[str, Stop]] = {
    "end_turn": "complete",
    "stop_sequence": "complete",
    "tool_use": "complete",
    "pause_turn": "complete",
    "max_tokens": "max_tokens",
    "refusal": "refusal",
    "model_context_window_exceeded": "context_window",
}

_WORDLESS: Final[Mapping[str, str]] = {
    "refusal": "The model declined to answer this request.",
    "max_tokens": "(The answer was cut off before any text was written.)",
    "context_window": (
        "(The question and the results found for it no longer fit in the model's context window. Ask for less at a "
        "time. The conversation is kept.)"
    ),
}


def stop_of(reason: str, limit: LastCallReason) -> Stop:
    """Why an answer ended. The limit says it only where the model came to its own end."""
    stop = _STOPS.get(reason, "other")
    return STOP_OF_LIMIT.get(limit, stop) if stop == "complete" else stop


def is_known(reason: str) -> bool:
    """Whether the table has this reason of the service."""
    return reason in _STOPS


def in_words(text: str, stop: Stop) -> str:
    """The answer's text; an empty one could be neither stored nor sent again."""
    return text if text.strip() else _WORDLESS.get(stop, "(The model gave no answer.)")


def limit_from_stop(stop: str, *, is_after_rounds: bool) -> LastCallReason:
    """The limit that made a chat's last call the last, from its stop reason. ``is_after_rounds``: whether the call
    came after the profile's ``max_turns``."""
    return _LIMITS.get(stop, ROUNDS_DONE if is_after_rounds else "")
