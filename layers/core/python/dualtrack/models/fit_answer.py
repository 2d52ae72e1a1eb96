"""The decision on an answer that has to fit a JSON Schema. Pure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from dualtrack.models.stops import SECOND_ANSWER, STOP_OF_LIMIT
from dualtrack.models.turn import TurnDecision
from dualtrack.output_check import misfit, written_json

if TYPE_CHECKING:
    from dualtrack.frozen import JsonObject
    from dualtrack.models.stops import LastCallReason
    from dualtrack.vocabulary import Stop

_NOT_ASKED_AGAIN: Final = ("refusal", "context_window")


def fitting(
    decision: TurnDecision,
    schema: JsonObject | None,
    limit: LastCallReason,
    before: LastCallReason,
    *,
    may_ask_again: bool,
) -> TurnDecision:
    """The decision on an answer that has to fit a JSON Schema: it is the answer, or is asked for once more, or ends the
    chat as ``invalid_output``.

    ``before``: the limit of the first answer, if this is the second. What the model declined to answer, or had no room
    for, is left as it is.
    """
    if schema is None or decision.next != "answered" or decision.stop in _NOT_ASKED_AGAIN:
        return decision
    text = written_json(decision.text)
    stop: Stop = STOP_OF_LIMIT.get(before, decision.stop) if decision.stop == "complete" else decision.stop
    problem = misfit(schema, text)
    if not problem:
        return replace(decision, text=text, stop=stop, fits=True)
    if may_ask_again and limit != SECOND_ANSWER and stop != "other":
        return TurnDecision("turn", decision.text, misfit=problem)
    return replace(decision, stop=stop if stop in ("max_tokens", "other") else "invalid_output")
