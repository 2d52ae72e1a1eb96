"""``dualtrack explain``: what a chat did, in order, and what each step cost."""

from __future__ import annotations

from dataclasses import dataclass, replace
from textwrap import wrap
from typing import TYPE_CHECKING, Final

import click

from dualtrack_stack.cli.client import ApiClient, ClientError
from dualtrack_stack.cli.command import exit_codes, json_option, print_json, report, stack_options
from dualtrack_stack.cli.conversation_commands import columns, latest_chat
from dualtrack_stack.cli.id_types import CHAT
from dualtrack_stack.cli.target import OPERATOR, dev_token, open_target
from dualtrack_stack.cli.transcript import cost_lines, one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dualtrack.answers import LineKind, Receipt, ReceiptLine, ReceiptTotals, Tokens

    from dualtrack_stack.cli.talk import FollowedChat
    from dualtrack_stack.cli.target import ChosenStack, TargetOptions


_CLOCK: Final = 12
_WIDTH: Final = 64
_PRICE: Final = 14

FICTIONAL: Final = (
    "The offline model answered: its tokens and dollars are fictional, what the model would have cost."
)


@click.command()
@click.argument("chat_id", metavar="[CHAT]", required=False, callback=CHAT)
@stack_options
@json_option
def explain(stack: TargetOptions, chat_id: str | None, *, as_json: bool) -> None:
    """Show what CHAT, or the latest one, did, in order, and what each step cost. Your own chats, and any chat as an
    administrator. Amounts after a ~ are estimates.
    """
    with exit_codes(), open_target(stack, report) as target:
        receipt = receipt_of(target, chat_id or _latest(target))
    if as_json:
        print_json(receipt)
        return
    for line in text_of(receipt, columns()):
        click.echo(line)


def _latest(target: ChosenStack) -> str:
    with target.client() as client:
        return latest_chat(client)


def receipt_of(target: ChosenStack, chat_id: str) -> Receipt:
    """Fetch a chat's receipt as the target's user; on a local stack, which is its user's own, as its operator."""
    token = dev_token(target.url, OPERATOR, admin=True).token if target.dev else target.token
    with ApiClient(target.url, token) as client:
        return client.call("GET", f"/v1/chats/{chat_id}/receipt")


def told_to_its_operator(target: ChosenStack, outcome: FollowedChat) -> FollowedChat:
    """The outcome; of a chat that failed on a local stack also what its operator should know, who asks here."""
    if not (target.dev and outcome.problem and outcome.chat and outcome.chat["status"] == "failed"):
        return outcome
    try:
        text = receipt_of(target, outcome.chat_id).get("for_operator")
    except ClientError:
        return outcome
    return replace(outcome, problem=f"{outcome.problem}\n{_for_operator(text)}") if text else outcome


def text_of(receipt: Receipt, columns: int | None = None) -> Iterator[str]:
    """The timeline, the bill and its differences, line by line; folded where a terminal has fewer ``columns``."""
    width = _WIDTH if columns is None else max(20, min(_WIDTH, columns - _CLOCK - _PRICE))
    for part in _parts(receipt):
        if isinstance(part, _Row):
            yield from part.lines(width, folded=columns is not None)
        else:
            yield from (wrap(part, columns, break_on_hyphens=False) if columns and part else (part,))


def _parts(receipt: Receipt) -> Iterator[str | _Row]:
    facts = [receipt["profile"], _model_of(receipt), receipt["status"], receipt["stop"]]
    yield f"{receipt['chat_id']}  {one_line(', '.join(str(fact) for fact in facts if fact), 120)}"
    yield f"{receipt['created_at']} to {receipt['ended_at'] or 'now'}, user {one_line(receipt['user_id'], 60)}"
    if receipt["fictional"]:
        yield FICTIONAL
    if receipt["price_known"] is False:
        yield "A model here has no known price: it is counted as its maker's dearest, which is a guess."
    if receipt.get("tools_changed"):
        yield "Its client brought other tools than before: the model's cache of the conversation was not read."
    yield ""
    for line in receipt["lines"]:
        if line["kind"] != "aws":
            yield _Row(_clock(line["at"]), _WHAT[line["kind"]](line), _price(line))
    totals = receipt["totals"]
    yield from _aws(receipt, totals)
    yield ""
    yield _Row("", f"total, {totals['credits']:,} credits", f"{_dollars(totals['dollars'])}")
    if totals["estimated_dollars"]:
        yield _Row("", "of which estimated", f"~{_dollars(totals['estimated_dollars'])}")
    yield from (_Row("", f"{label:<8}{text}", "") for label, text in cost_lines(receipt))
    if text := receipt.get("for_operator"):
        yield _for_operator(text)
    for difference in receipt["differences"]:
        yield f"It does not add up: {one_line(difference, 200)}"


def _for_operator(text: str) -> str:
    return f"For the operator: {one_line(text, 1_000)}"


def _model_of(receipt: Receipt) -> str:
    """The model; without an answer it is not recorded."""
    asked = any(line["kind"] in ("model", "wait") for line in receipt["lines"])
    return receipt["model"] or ("no model answered" if asked else "no model asked")


def _aws(receipt: Receipt, totals: ReceiptTotals) -> Iterator[str | _Row]:
    lines, dollars = [line for line in receipt["lines"] if line["kind"] == "aws"], totals["aws_dollars"]
    if dollars is None:
        return
    yield ""
    yield _Row("", "AWS, estimated, without the model", f"~{_dollars(dollars)}")
    for line in lines:
        yield _Row(
            "", f"  {one_line(line['item'], 60)}: {line['amount']:,.6g}", f"~{_dollars(line['dollars'])}"
        )


def _model(line: ReceiptLine) -> str:
    tokens = line["usage"]
    turn = f"turn {line['turn']}" if line["turn"] else f"{line['calls']} calls of turns"
    first = f", first after {line['first_seconds']:.1f} s" if line["first_seconds"] is not None else ""
    withdrawn = line.get("withdrawn", "")
    instead = f"\n  by {line['model']}: {one_line(withdrawn, 40)} was withdrawn" if withdrawn else ""
    return f"{turn}{_took(line)}{first}{_tries(line)}{instead}\n{_tokens(tokens)}{_cache(line)}"


def _cache(line: ReceiptLine) -> str:
    """The service's word on its cache, if it is not that all is well."""
    miss = line.get("cache_miss")
    if not miss:
        return ""
    tokens = f": about {miss['tokens']:,} tokens" if miss["tokens"] else ""
    return f"\n  the cache: {_MISSED.get(miss['reason'], one_line(miss['reason'], 40))}{tokens}"


def _side(line: ReceiptLine) -> str:
    name = {"summary": "summaries", "fold": "digest"}.get(line["kind"], line["kind"])
    missing = f", {line['missing']} missing" if line.get("missing") else ""
    return f"{name}{_took(line)}{_tries(line)}{missing}\n{_tokens(line['usage'])}"


def _wait(line: ReceiptLine) -> str:
    tries = "1 try" if line["tries"] == 1 else f"{line['tries']} tries"
    return f"turn {line['turn']}, the model was busy{_took(line)}, {tries}"


def _pause(line: ReceiptLine) -> str:
    calls = "1 call" if line["calls"] == 1 else f"{line['calls']} calls"
    ended = _PAUSE_ENDED[line["by"]]
    return f"turn {line['turn']}, {calls} waited for a decision{_took(line)}, {ended}"


def _asked(line: ReceiptLine) -> str:
    """A tool's own call, of a model or for embeddings, which have no output."""
    model = one_line(line["model"], 40)
    if line["kind"] == "embedding":
        what = f"  embeddings of {line['call']}, {model}"
        return f"{what}{_took(line)}{_tries(line)}\n    tokens {line['usage']['fresh']:,}"
    return f"  inside {line['call']}, {model}{_took(line)}{_tries(line)}\n  {_tokens(line['usage'])}"


def _tool(line: ReceiptLine) -> str:
    if not line["ran"]:
        outcome = ", not run"
    elif line["is_error"] is None:
        outcome = ", no result"
    else:
        outcome = ", an error" if line["is_error"] else ""
    took = _took(line) if line["ran"] else ""
    return f"{line['id']} {one_line(line['tool'], 40)}{took}{outcome}"


def _ledger(line: ReceiptLine) -> str:
    return f"ledger: {line['movement']} {line['amount']:,}, {line['available_after']:,} available"


_PAUSE_ENDED: Final = {
    "user": "decided by the user",
    "owner": "decided by the owner of the service",
    "key": "decided with an API key",
    "expired": "nobody decided in time",
    "cancelled": "cancelled",
}

_MISSED: Final = {
    "model_changed": "another model than before",
    "system_changed": "another system text than before",
    "tools_changed": "other tools than before",
    "messages_changed": "an earlier message was changed",
    "previous_message_not_found": "the call before is forgotten there",
    "unavailable": "the service cannot compare the calls",
}

_WHAT: Final[Mapping[LineKind, Callable[[ReceiptLine], str]]] = {
    "chat": lambda _: "the chat itself",
    "model": _model,
    "wait": _wait,
    "pause": _pause,
    "summary": _side,
    "fold": _side,
    "title": _side,
    "tool": _tool,
    "tool_model": _asked,
    "embedding": _asked,
    "ledger": _ledger,
}


def _took(line: ReceiptLine) -> str:
    return "" if line["seconds"] is None else f", {line['seconds']:.1f} s"


def _tries(line: ReceiptLine) -> str:
    return f", {line['tries']} tries" if (line["tries"] or 1) > line["calls"] else ""


def _tokens(tokens: Tokens) -> str:
    return (
        f"  tokens {tokens['fresh']:,} fresh, {tokens['cache_write']:,} written, "
        f"{tokens['cache_read']:,} read, {tokens['output']:,} out"
    )


def _price(line: ReceiptLine) -> str:
    if line["kind"] in ("chat", "tool"):
        return f"{line['credits']:,} credits"
    if line["kind"] in ("ledger", "wait"):
        return ""
    return ("~" if line["estimated"] else "") + _dollars(line["dollars"])


def _dollars(amount: float) -> str:
    return f"${amount:.7f}"


def _clock(at: str | None) -> str:
    """``21:31:47.1`` of an ISO 8601 time."""
    return at[11:21] if at else ""


@dataclass(frozen=True, slots=True)
class _Row:
    """A line with its time and price; what follows the first line of ``what`` stands below."""

    when: str
    what: str
    price: str

    def lines(self, width: int, *, folded: bool) -> Iterator[str]:
        """``what`` has a column of this width, and that of the price if there is none; what is wider is ``folded``, or
        shifts the price."""
        column = width if self.price else width + _PRICE
        first, *rest = (
            line
            for text in self.what.split("\n")
            for line in (wrap(text, column, subsequent_indent="    ") if folded else (text,))
        )
        yield f"{self.when:<{_CLOCK}}{first:<{width}}{self.price:>{_PRICE}}".rstrip()
        yield from (f"{'':<{_CLOCK}}{line}" for line in rest)
