"""``dualtrack conversations | show``: find and read conversations."""

from __future__ import annotations

import contextlib
import shutil
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal
from urllib.parse import quote

import click
from dualtrack.frozen import freeze

from dualtrack_stack.cli.client import RequestRefused
from dualtrack_stack.cli.command import exit_codes, json_option, moment, print_json, report, stack_options
from dualtrack_stack.cli.id_types import wrong_id
from dualtrack_stack.cli.target import Missing, open_target
from dualtrack_stack.cli.transcript import clean, cost_lines, describe, one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from dualtrack import answers

    from dualtrack_stack.cli.client import ApiClient
    from dualtrack_stack.cli.target import TargetOptions

_FORMS: Final = {"whole": "all", "note": "note", "extract": "extract"}
_PREVIEW: Final = 300
_TEXT: Final[tuple[Literal["result", "content"], ...]] = ("result", "content")
_PAGE: Final = 100
_EMPTY_PAGES: Final = 100
"""Pages of a search that are read before it counts as without results."""


@click.command()
@click.option(
    "--search", metavar="TEXT", help="Those with all words of TEXT in title, questions, answers or summaries."
)
@click.option("--limit", type=click.IntRange(1, _PAGE), default=20, show_default=True, help="How many.")
@stack_options
@json_option
def conversations(stack: TargetOptions, *, search: str | None, limit: int, as_json: bool) -> None:
    """Your conversations, the latest first."""
    params = {"limit": str(limit), **({"q": search} if search else {})}
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        page = first_page(client, params)
    if as_json:
        print_json(page)
        return
    if not page["conversations"]:
        click.echo("Nothing found." if search else "No conversation yet: start one with `dualtrack chat`.")
    for line in listed(page["conversations"], datetime.now(UTC), columns()):
        click.echo(line)
    if page.get("cursor"):
        click.echo("There are more: use --limit or --search.", err=True)


def first_page(client: ApiClient, params: Mapping[str, str]) -> answers.Conversations:
    """The first page that is not empty: an empty page of a search need not be the last one."""
    page: answers.Conversations = client.call("GET", "/v1/conversations", params=params)
    for _ in range(_EMPTY_PAGES):
        if page["conversations"] or "cursor" not in page:
            break
        page = client.call("GET", "/v1/conversations", params={**params, "cursor": page["cursor"]})
    return page


def listed(shown: Sequence[answers.Conversation], now: datetime, columns: int | None) -> Iterator[str]:
    """A line each: id, age, profile, title; the title cut to the ``columns`` of a terminal."""
    for conversation in shown:
        when = age(conversation["updated_at"], now)
        begin = f"{one_line(conversation['conversation_id'], 40)}  {when:<12}  {one_line(conversation['profile'], 20):<10}  "
        title = one_line(conversation["title"], 200) or "(nothing asked yet)"
        if before := conversation.get("forked_before"):
            title = f"from {before}: {title}"  # a fork has the title of what it was forked from
        yield begin + (title if columns is None else one_line(title, max(20, columns - len(begin))))


def age(iso: str, now: datetime) -> str:
    """How long ago: ``5 min ago``, ``3 h ago``, ``2 days ago``; the date after a month."""
    minutes = int((now - datetime.fromisoformat(iso)).total_seconds() // 60)
    if minutes < 1:
        return "just now"
    if minutes < 60:
        return f"{minutes} min ago"
    if minutes < 24 * 60:
        return f"{minutes // 60} h ago"
    days = minutes // (24 * 60)
    if days > 30:
        return iso[:10]
    return "1 day ago" if days == 1 else f"{days} days ago"


def columns() -> int | None:
    """The width of the terminal; None in a pipe or a file, where nothing is cut."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else None


@click.command()
@click.argument("what", metavar="[ID]", required=False)
@click.option(
    "--track",
    type=click.Choice(["full", "summarised"]),
    default="full",
    show_default=True,
    help="Every record, or what the model is sent of each.",
)
@stack_options
@json_option
def show(stack: TargetOptions, what: str | None, *, track: str, as_json: bool) -> None:
    """Print a conversation, or one record of it whole.

    ID is a conversation (cv_…), a record of one (cv_…/q3-t1), or a record of the latest one (q3-t1). Without ID the
    latest conversation is shown. Tool results are shortened in a conversation and complete as records.
    """
    conversation, record = _parts(what or "")
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        conversation = conversation or latest(client)
        shown: answers.Record | answers.ConversationRecords
        lines: Iterable[str]
        if record:
            shown = whole_record(client, conversation, record)
            lines = record_lines(shown)
        else:
            shown = whole_conversation(client, conversation, track)
            lines = [*conversation_lines(shown, datetime.now(UTC)), *_cost(client, shown)]
    if as_json:
        print_json(shown)
        return
    for line in lines:
        click.echo(line)


def _cost(client: ApiClient, shown: answers.ConversationRecords) -> Iterator[str]:
    """What the conversation has cost so far, from its last chat; nothing if that was deleted."""
    asked = [record["chat_id"] for record in shown["records"] if record.get("chat_id")]
    if asked:
        with contextlib.suppress(RequestRefused):
            yield f"\n{cost_lines(client.call('GET', f'/v1/chats/{asked[-1]}'))[-1][1]}"


def latest(client: ApiClient) -> str:
    """The id of the conversation with the latest query; raises `Missing` if there is none."""
    return _latest(client)["conversation_id"]


def _latest(client: ApiClient) -> answers.Conversation:
    page: answers.Conversations = client.call("GET", "/v1/conversations", params={"limit": "1"})
    if not page["conversations"]:
        raise Missing("There is no conversation yet: start one with `dualtrack chat`.")
    return page["conversations"][0]


def latest_chat(client: ApiClient) -> str:
    """The id of the latest conversation's last chat, which may still run; raises `Missing` if there is none."""
    conversation = _latest(client)
    if last := conversation["queries"]:
        query = whole_record(client, conversation["conversation_id"], f"q{last}")
        if chat := query.get("chat_id"):  # none if it was imported
            return chat
    raise Missing("Nothing was asked yet in the latest conversation.")


def _parts(what: str) -> tuple[str, str]:
    """Conversation and record, each empty if it is not named. Raises `click.UsageError` for anything else."""
    if what.startswith("cv_"):
        conversation, slash, record = what.partition("/")
        problem = wrong_id("conversation_id", conversation) or (slash and wrong_id("record_id", record))
    else:
        conversation, record = "", what
        problem = what and wrong_id("record_id", what)
    if problem:
        raise click.UsageError(problem)
    return conversation, record


def whole_conversation(client: ApiClient, conversation: str, track: str) -> answers.ConversationRecords:
    """The conversation with all of its records, as one object; ``cursor`` is left out."""
    path = _path(conversation)
    page: answers.ConversationRecords = client.call("GET", path, params={"track": track})
    records = list(page["records"])
    whole = {name: value for name, value in page.items() if name not in ("records", "cursor")}
    while page.get("cursor"):
        page = client.call("GET", path, params={"track": track, "cursor": page["cursor"]})
        records += page["records"]
    frozen: answers.ConversationRecords = freeze({**whole, "records": records})
    return frozen


def whole_record(client: ApiClient, conversation: str, record: str) -> answers.Record:
    """The record with its whole text, which the API returns in pieces; ``next_offset`` is left out."""
    path = f"{_path(conversation)}/records/{quote(record, safe='')}"
    piece: answers.Record = client.call("GET", path)
    name = _text_field(piece)
    whole = {key: value for key, value in piece.items() if key != "next_offset"}
    texts = [piece[name]]
    while offset := piece.get("next_offset"):
        piece = client.call("GET", path, params={"offset": str(offset)})
        texts.append(piece[name])
    frozen: answers.Record = freeze({**whole, name: "".join(texts)})
    return frozen


def _path(conversation: str) -> str:
    return f"/v1/conversations/{quote(conversation, safe='')}"


def _text_field(record: answers.Record) -> Literal["result", "content"]:
    return next(name for name in _TEXT if name in record)


def conversation_lines(conversation: answers.ConversationRecords, now: datetime) -> Iterator[str]:
    """Title and facts, then each record under its id."""
    title = one_line(conversation["title"], 200) or "(nothing asked yet)"
    yield click.style(title, bold=True)
    facts = [conversation["conversation_id"], conversation["profile"], age(conversation["updated_at"], now)]
    if conversation.get("forked_from"):
        facts.append(f"forked from {conversation['forked_from']} before {conversation['forked_before']}")
    yield click.style(one_line(", ".join(map(str, facts)), 300), dim=True)
    for record in conversation["records"]:
        yield ""
        yield _heading(record)
        if record["type"] == "tool_call" and "result" in record:
            yield f"  {one_line(record['result'], _PREVIEW)}"
        else:
            yield from _said(record)


def record_lines(record: answers.Record) -> Iterator[str]:
    """The record's heading, and its text whole."""
    yield _heading(record)
    if record.get("thinking_characters"):
        yield from _said(record)
    else:
        yield clean(record[_text_field(record)])


def _said(record: answers.Record) -> Iterator[str]:
    """The text of a record; the model's thinking apart from what it wrote, dimmed behind a bar."""
    content, thought = record.get("content") or "", record.get("thinking_characters", 0)
    for line in clean(content[:thought]).strip("\n").splitlines():
        yield click.style(f"  thinking | {line}", dim=True)
    if text := clean(content[thought:]).strip("\n"):
        yield text


_WHO: Final = {"user": "question", "assistant": "answer"}
_KINDS: Final = {"a": "said before its tools", "r": "answer", "f": "file"}
"""What records of one role are, by the letter of their ids (CONTRACT 6)."""


_BECAME: Final = {"failed": "  failed", "declined": "  declined", "unknown": "  may have run"}


def _kind_of(record_id: str) -> str:
    return record_id.rpartition("-")[2][:1]


def _heading(record: answers.Record) -> str:
    who = _KINDS.get(_kind_of(record["record_id"])) or _WHO.get(record["role"], record["role"])
    if record["type"] == "tool_call":
        seconds = f"  {record['seconds']:.1f} s" if "seconds" in record else ""
        failed = _BECAME.get(record.get("status", ""), "")
        who = f"{record.get('tool', 'tool')} {describe(record.get('input') or {})}{seconds}{failed}"
    elif record["type"] != "message":
        kind = _FORMS.get(record.get("form", ""), record["type"])
        who = f"{kind} of {record['ref']}" if record.get("ref") else str(kind)
        who += f" ({record['size']:,} bytes)" if record.get("size") else ""
    files = ", ".join(
        f"{file.get('name') or file['media_type']} ({file['size']:,} bytes)"
        for file in record.get("attachments") or ()
    )
    parts = [who, moment(record["created_at"]), *([f"files: {files}"] if files else [])]
    return click.style(f"[{record['record_id']}]", fg="cyan") + " " + one_line(", ".join(parts), 400)
