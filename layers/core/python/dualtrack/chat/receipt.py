"""The receipt of a chat: what it did and what each step cost, from the stored data (CONTRACT 9). Pure.

    turns     ─► model     one line a turn, and an estimate for each call that was begun and never recorded
              ─► wait      the waits of a turn for a busy model
              ─► pause     its calls' wait for decisions
    records   ─► tool      seconds, credits, whether it failed; tool_model, embedding: its own model calls
    chat      ─► chat      the credits of the chat itself; summary, fold, title: model calls outside the turns
    ledger    ─► ledger    credit movements
    all       ─► aws       states, GB-seconds, units: an estimate, by the formula of `dualtrack aws cost`

A receipt has no user text. Its size is bounded by the chat's turns and their calls. ``differences`` lists where the
lines do not add up to the figures of the chat and the ledger.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.chat.chat_view import answered_offline, memory_json
from dualtrack.chat.pay_calls import never_ran, uncharged
from dualtrack.clock import epoch_of, iso
from dualtrack.credits.aws_cost import (
    STEP_SECONDS,
    TITLE_READS,
    TITLE_WRITES,
    AwsUse,
    states_of,
    work_lines,
)
from dualtrack.credits.plans import chat_price, price_calls
from dualtrack.ids import query_id
from dualtrack.models.cost_cap import asked_rates, lost_rates, side_rates, turn_rates
from dualtrack.models.prices import is_known, rates_of
from dualtrack.models.receipt_data import lost_usage, prompt_beside
from dualtrack.models.turn import Usage

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dualtrack.answers import Entry, LineKind, Receipt, ReceiptLine, ReceiptTotals, TokenKind, Tokens
    from dualtrack.memory.records import Record
    from dualtrack.models.prices import Rates
    from dualtrack.models.receipt_data import LostCall, SideCalls
    from dualtrack.models.turn import ToolCall
    from dualtrack.storage.chats import Chat, RecordedTurn

_FIXED_WRITES: Final = 59
_FIXED_READS: Final = 18
_ROUND_UNITS: Final = 6
_TOOL_WRITES: Final = 10
_TOOL_READS: Final = 7
"""DynamoDB units, fitted to the counts of `bench.chat_cost`: for a chat without tools, and in addition for each
turn with tools and each of its calls. Large results take more."""

_WAIT_WRITES: Final = 4
_WAIT_READS: Final = 8
_WAIT_STATES: Final = 3
"""Of each wait for a busy model: two events; WaitForModel, Turn and Route."""

_PAUSE_WRITES: Final = 34
_PAUSE_READS: Final = 17
"""Of each pause and its decision, counted as those of `bench.chat_cost`."""

_WRITE_SECONDS: Final = 0.13
"""`dualtrack.streaming.delta_writer.WRITE_SECONDS`: the shortest interval between two writes of deltas."""


@dataclass(frozen=True, slots=True)
class Deployment:
    """AWS prices in dollars and memory of the functions in MB, by name; without them the receipt has no AWS part."""

    prices: Mapping[str, float] = field(default_factory=lambda: MappingProxyType({}))
    megabytes: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True)
class Evidence:
    """The stored data of a chat. ``records``: of its query (their text is not used); ``entries``: its ledger lines as
    the API shows them; ``tools_changed``: whether its client brought other tools than the query before."""

    chat: Chat
    turns: Sequence[RecordedTurn]
    records: Sequence[Record]
    entries: Sequence[Entry]
    tools_changed: bool = False


def receipt_of(evidence: Evidence, deployment: Deployment) -> Receipt:
    """The receipt as the API returns it."""
    chat = evidence.chat
    lines = [*_model_lines(evidence), *_credit_lines(evidence), *_asked_lines(evidence.records)]
    lines += [*_wait_lines(evidence), *_pause_lines(chat), *_side_lines(evidence), *_ledger_lines(evidence)]
    lines.sort(key=lambda line: line["at"] or "~")
    lines += _aws_lines(evidence, lines, deployment)
    receipt: Receipt = {
        "chat_id": chat.chat_id,
        "conversation_id": chat.conversation_id,
        "message_id": query_id(chat.query),
        "user_id": chat.user,
        "key_id": chat.key_id or None,
        "profile": chat.profile,
        "model": chat.model or None,
        "status": chat.status,
        "stop": chat.stop or None,
        "created_at": chat.created_at,
        "ended_at": chat.ended_at or None,
        "price_known": _price_known(chat, lines),
        "fictional": answered_offline(chat),
        "lines": lines,
        "totals": _totals(lines),
        "memory": memory_json(chat),
        "differences": differences(chat, lines),
    }
    if chat.declined:
        receipt["refusal"] = {
            "category": chat.declined["category"] or None,
            "explanation": chat.declined["explanation"] or None,
        }
    if evidence.tools_changed:
        receipt["tools_changed"] = True
    return receipt


def model_nanodollars(chat: Chat, turns: Sequence[RecordedTurn], records: Sequence[Record]) -> int:
    """What the model calls of the chat's turns and tools cost, in 10⁻⁹ dollars (integers, so that sums are exact).

    ``records``: of its query. Summaries are not included: they come after the chat is settled.
    """
    lines = [*_model_lines(Evidence(chat, turns, records, ())), *_asked_lines(records)]
    return spent_nanodollars(lines)


def spent_nanodollars(lines: Iterable[ReceiptLine]) -> int:
    """The same from a receipt's lines."""
    return round(math.fsum(line["dollars"] for line in lines if line["kind"] in _SPENT) * 1e9)


def differences(chat: Chat, lines: Sequence[ReceiptLine]) -> list[str]:
    """Where the lines do not add up to the chat's own figures, or repeat something."""
    problems = []
    ids: list[tuple[str, str | None]] = [(line["kind"], line["id"]) for line in lines if line["id"]]
    ids += [(line["call"], line["model"]) for line in lines if line["kind"] in _INSIDE]
    twice = sorted({f"{kind} {name}" for kind, name in ids if ids.count((kind, name)) > 1})
    problems += [f"{name} is listed twice" for name in twice]
    usage = [line["usage"] for line in lines if line["kind"] == "model" and line["seconds"] is not None]
    usage += [_tokens(call.usage) for call in chat.spent.lost if call.usage]
    for mine, theirs in _TOKENS.items():
        added, said = sum(tokens[mine] for tokens in usage), chat.usage.get(theirs, 0)
        if added != said:
            problems.append(f"{mine}: the calls add up to {added}, the chat says {said}")
    if chat.status in ("running", "paused"):
        return problems
    credit = sum(line["credits"] for line in lines if line["kind"] in ("chat", "tool"))
    if credit != chat.credits_used:
        problems.append(f"credits: the lines add up to {credit}, the chat says {chat.credits_used}")
    moved = [line for line in lines if line["kind"] == "ledger"]
    settled = sum(line["amount"] for line in moved if line["movement"] == "settle")
    if moved and settled != chat.credits_used:
        problems.append(f"credits: the ledger says {settled}, the chat {chat.credits_used}")
    return problems


_TOKENS: Final[Mapping[TokenKind, str]] = MappingProxyType(
    {
        "fresh": "input_tokens",
        "cache_write": "cache_write_tokens",
        "cache_read": "cache_read_tokens",
        "output": "output_tokens",
    }
)
"""Names of tokens: in a line, and in the chat."""

_INSIDE: Final = ("tool_model", "embedding")
_SPENT: Final = ("model", *_INSIDE)
"""Model calls that are known when a chat is settled."""
_ASIDE: Final = ("summary", "fold", "title")
_ASKED: Final = (*_SPENT, *_ASIDE)
"""All model calls."""


def _line(
    kind: LineKind, at: str | None, line_id: str, dollars: float = 0.0, *, estimated: bool = False
) -> ReceiptLine:
    return {"kind": kind, "at": at, "id": line_id, "estimated": estimated, "dollars": dollars}


def _asked(
    kind: LineKind, at: str | None, line_id: str, usage: Usage, rates: Rates, *, estimated: bool = False
) -> ReceiptLine:
    """A line of model calls; what has no known price is an estimate."""
    return {
        **_line(kind, at, line_id, rates.dollars(usage), estimated=estimated or not rates.is_known),
        "usage": _tokens(usage),
        "rates": {
            "fresh": rates.input,
            "cache_write": rates.cache_write,
            "cache_read": rates.cache_read,
            "output": rates.output,
            "known": rates.is_known,
        },
    }


def _price_known(chat: Chat, lines: Sequence[ReceiptLine]) -> bool | None:
    """Whether every price is; before the first call that of the chat's model, None if it has none."""
    known = [line["rates"]["known"] for line in lines if line["kind"] in _ASKED]
    return all(known) if known else (is_known(chat.model) if chat.model else None)


def _tokens(usage: Usage) -> Tokens:
    return {
        "fresh": usage.input_tokens,
        "cache_write": usage.cache_write_tokens,
        "cache_read": usage.cache_read_tokens,
        "output": usage.output_tokens,
    }


def added(said: Sequence[Tokens]) -> Tokens:
    """The sum of several calls' tokens."""
    return {
        "fresh": sum(usage["fresh"] for usage in said),
        "cache_write": sum(usage["cache_write"] for usage in said),
        "cache_read": sum(usage["cache_read"] for usage in said),
        "output": sum(usage["output"] for usage in said),
    }


# ── calls of the model ────────────────────────────────────────────────────────────────────────────


def _model_lines(evidence: Evidence) -> Iterator[ReceiptLine]:
    chat, before = evidence.chat, ""
    for turn in evidence.turns:
        made, model = turn.made, turn.made.model or chat.model
        line = _asked(
            "model", made.at, f"turn-{turn.number}", turn.usage, turn_rates(made, chat.model, turn.usage)
        )
        if before not in ("", model):
            line["withdrawn"] = before
        if word := made.cache:
            line["cache_miss"] = {"reason": word.reason, "tokens": word.tokens} if word.reason else None
        before = model
        yield {
            **line,
            "turn": turn.number,
            "model": model,
            "seconds": made.seconds,
            "first_seconds": made.first_seconds,
            "calls": made.calls,
            "tries": made.tries,
        }
        yield from _lost_lines(model, made.lost, turn.usage.prompt_tokens // max(made.calls, 1))
    lost = chat.spent.lost
    prompt = prompt_beside(lost, evidence.turns[-1].usage.prompt_tokens if evidence.turns else 0)
    yield from _lost_lines(chat.model, lost, prompt)


def _lost_lines(model: str, lost: Sequence[LostCall], prompt: int) -> Iterator[ReceiptLine]:
    """Estimates for calls that were never recorded; ``prompt``: that of the recorded turn, or of the turn before."""
    for number, call in enumerate(lost, start=1):
        usage = lost_usage(call, prompt)
        line_id, rates = f"turn-{call.turn}-lost-{number}", lost_rates(call, model, usage)
        yield {
            **_asked("model", call.at, line_id, usage, rates, estimated=True),
            "turn": call.turn,
            "model": model or None,
            "seconds": None,
            "first_seconds": None,
            "calls": 1,
            "tries": 1,
        }


def _wait_lines(evidence: Evidence) -> Iterator[ReceiptLine]:
    """The waits for a busy model, by turn; ``tries``: the calls that it refused."""
    spent = evidence.chat.spent
    waits = [turn.made.waited for turn in evidence.turns]
    for waited in (*waits, spent.waited):
        if waited:
            yield {
                **_line("wait", waited.at, f"turn-{waited.turn}-wait"),
                "turn": waited.turn,
                "seconds": waited.seconds,
                "tries": waited.times,
            }


def _pause_lines(chat: Chat) -> Iterator[ReceiptLine]:
    """The pauses that are over."""
    for number, pause in enumerate(chat.spent.pauses, start=1):
        yield {
            **_line("pause", pause.at, f"pause-{number}"),
            "turn": pause.turn,
            "calls": pause.calls,
            "seconds": pause.seconds,
            "by": pause.by,
        }


def _side_lines(evidence: Evidence) -> Iterator[ReceiptLine]:
    """The calls for summaries, a digest and the conversation's title."""
    spent = evidence.chat.spent
    if spent.summaries and spent.summaries.tries:
        side = spent.summaries
        yield {**_side("summary", side, side_rates(side)), "missing": side.missing}
    elif not spent.summaries and evidence.chat.status == "done" and evidence.chat.calls_for_summaries:
        yield _unknown_summaries(evidence)
    if evidence.chat.fold:
        yield _side("fold", evidence.chat.fold, side_rates(evidence.chat.fold))
    if evidence.chat.titling:
        yield _side("title", evidence.chat.titling, side_rates(evidence.chat.titling))


def _side(kind: LineKind, side: SideCalls, rates: Rates) -> ReceiptLine:
    return {
        **_asked(kind, side.at, kind, side.usage, rates),
        "model": side.model,
        "seconds": side.seconds,
        "calls": side.calls,
        "tries": side.tries,
    }


def unknown_summaries(turns: Sequence[RecordedTurn]) -> Usage:
    """The estimate for a step that died while summarising: one call as long as that of the last turn."""
    last = turns[-1].usage if turns else Usage()
    return Usage(last.prompt_tokens, last.output_tokens)


def _unknown_summaries(evidence: Evidence) -> ReceiptLine:
    chat, usage = evidence.chat, unknown_summaries(evidence.turns)
    rates = rates_of(chat.model, usage.prompt_tokens, chat.ended_at)
    return {
        **_asked("summary", chat.ended_at, "summary", usage, rates, estimated=True),
        "model": chat.model or None,
        "seconds": None,
        "calls": 1,
        "tries": None,
    }


# ── tools and credits ─────────────────────────────────────────────────────────────────────────────


def _credit_lines(evidence: Evidence) -> Iterator[ReceiptLine]:
    """The chat's own price, and a line for each requested tool call. A chat that failed, or was cancelled before its
    first model call, is charged nothing, or its own price if there were too many of those; one that the model's service
    declined, its own price alone."""
    chat = evidence.chat
    charged = chat.credits_used > 0 if chat.status in ("failed", "cancelled") else True
    yield {**_line("chat", chat.created_at, "chat"), "credits": chat_price(chat.profile) if charged else 0}
    records = {record.record_id: record for record in evidence.records if record.call}
    calls = [(turn.number, call) for turn in evidence.turns for call in turn.calls]
    pays_tools = charged and chat.status != "failed" and chat.stop != "refusal"
    begun, free = _begun(evidence), uncharged(evidence.records)
    ran, charged_for = {call.id for call in begun}, [call for call in begun if call.id not in free]
    prices = price_calls([call.price_class for call in charged_for])
    price_of = {call.id: price for call, price in zip(charged_for, prices, strict=True)}
    for number, call in calls:
        record = records.get(call.id)
        detail = record.call if record else None
        began = iso(epoch_of(record.created_at) - detail.seconds) if record and detail else None
        yield {
            **_line("tool", began, call.id),
            "turn": number,
            "tool": call.tool,
            "ran": call.id in ran,
            "is_error": detail.is_error if detail else None,
            "seconds": detail.seconds if detail else None,
            "credits": price_of.get(call.id, 0) if pays_tools else 0,
        }


def _begun(evidence: Evidence) -> list[ToolCall]:
    """The calls that ran, or may have."""
    free = {*never_ran(evidence.records), *evidence.chat.unbegun}
    return [call for turn in evidence.turns for call in turn.runnable if call.id not in free]


def _asked_lines(records: Sequence[Record]) -> Iterator[ReceiptLine]:
    """The model calls that tools made: a line for each tool call and model."""
    for record in records:
        for number, asked in enumerate(record.call.asked if record.call else (), start=1):
            yield {
                **_side(
                    "embedding" if asked.kind == "embedding" else "tool_model", asked.side, asked_rates(asked)
                ),
                "id": f"{record.record_id}-asked-{number}",
                "turn": record.turn,
                "call": record.record_id,
            }


def _ledger_lines(evidence: Evidence) -> Iterator[ReceiptLine]:
    for entry in evidence.entries:
        yield {
            **_line("ledger", entry["at"], entry["entry_id"]),
            "movement": entry["kind"],
            "amount": entry["amount"],
            "available_after": entry["available_after"],
        }


# ── AWS ───────────────────────────────────────────────────────────────────────────────────────────


def _aws_lines(evidence: Evidence, lines: Sequence[ReceiptLine], deployment: Deployment) -> list[ReceiptLine]:
    """All lines are estimates: the seconds were measured, the units come from a formula."""
    if not deployment.prices or not deployment.megabytes:
        return []
    bill = work_lines(work_of(evidence, lines), deployment.megabytes, deployment.prices)
    return [
        {
            **_line("aws", None, cost.item, cost.dollars, estimated=True),
            "item": cost.item,
            "amount": round(cost.amount, 9),
        }
        for cost in bill
    ]


def work_of(evidence: Evidence, lines: Sequence[ReceiptLine]) -> AwsUse:
    """The chat's use of AWS, computed from its lines."""
    chat = evidence.chat
    model = [line for line in lines if line["kind"] == "model"]
    waits = sum(line["tries"] or 0 for line in lines if line["kind"] == "wait")
    is_refused = chat.error is not None and chat.error["code"] == "model_busy"
    begun = max(len(model), chat.turn) + waits + is_refused
    waited = sum(line["seconds"] or 0.0 for line in model)
    flowing = sum((line["seconds"] or 0.0) - (line["first_seconds"] or 0.0) for line in model)
    pauses, titles = len(chat.spent.pauses), int(chat.titling is not None)
    entered, again = _work_of_pauses(evidence)
    decided = sum(pause.by not in ("expired", "cancelled") for pause in chat.spent.pauses)
    functions = {
        "api": (1 + decided, (1 + decided) * STEP_SECONDS),
        "turn": (begun + again, waited + (begun + again) * STEP_SECONDS),
    }
    seconds = {line["id"]: line["seconds"] or 0.0 for line in lines if line["kind"] == "tool"}
    ran = _begun(evidence)
    for call in ran:
        times, before = functions.get(call.fn, (0, 0.0))
        functions[call.fn] = (times + 1, before + seconds[call.id] + STEP_SECONDS)
    side = sum(line["seconds"] or 0.0 for line in lines if line["kind"] in _ASIDE)
    if chat.status == "done":
        functions["summarise"] = (1, side + STEP_SECONDS)
    rounds = sum(1 for turn in evidence.turns if turn.runnable)
    of_rounds = rounds * _ROUND_UNITS
    took = epoch_of(chat.ended_at) - epoch_of(chat.created_at) if chat.ended_at else waited
    took -= sum(pause.seconds for pause in chat.spent.pauses)
    return AwsUse(
        functions,
        took + side,
        _states(chat, len(ran), rounds, waits) + entered,
        _FIXED_WRITES
        + of_rounds
        + len(ran) * _TOOL_WRITES
        + max(flowing, 0.0) / _WRITE_SECONDS
        + waits * _WAIT_WRITES
        + pauses * _PAUSE_WRITES
        + titles * TITLE_WRITES,
        _FIXED_READS
        + of_rounds
        + len(ran) * _TOOL_READS
        + waits * _WAIT_READS
        + pauses * _PAUSE_READS
        + titles * TITLE_READS,
    )


def _work_of_pauses(evidence: Evidence) -> tuple[int, int]:
    """The states and the invocations of `turn` that the chat's pauses add: Paused; a Turn and a Route that find the
    pause behind calls which needed no decision; the same that enter the next execution, before approved calls."""
    turns = {turn.number: turn.runnable for turn in evidence.turns}
    states = again = 0
    for pause in evidence.chat.spent.pauses:
        ran = turns.get(pause.turn, ())
        before, after = any(not call.asks for call in ran), any(call.asks for call in ran)
        again += before + after
        states += 1 + 2 * (before + after) + (before and after)
    return states, again


def _states(chat: Chat, tools: int, rounds: int, waits: int) -> int:
    """The states that the chat has entered: behind its recorded turns and its waits, Summarise if it is answered, else
    the Turn that has no outcome, and for a failed chat the two states that end it."""
    ending = 2 if chat.status == "failed" else 0
    return states_of(chat.turn, tools, rounds) + waits * _WAIT_STATES + ending


def _totals(lines: Sequence[ReceiptLine]) -> ReceiptTotals:
    """Sums over the lines. They include estimates, whose part is also given separately."""
    model = [line for line in lines if line["kind"] in _ASKED]
    said = [line["usage"] for line in model if line["kind"] != "embedding"]
    aws = [line for line in lines if line["kind"] == "aws"]
    return {
        "credits": sum(line["credits"] for line in lines if line["kind"] in ("chat", "tool")),
        "usage": added(said),
        "model_dollars": sum(line["dollars"] for line in model),
        "aws_dollars": sum(line["dollars"] for line in aws) if aws else None,
        "dollars": sum(line["dollars"] for line in (*model, *aws)),
        "estimated_dollars": sum(line["dollars"] for line in (*model, *aws) if line["estimated"]),
    }
