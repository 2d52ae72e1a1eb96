"""A case from a conversation: its questions, its tools' results, the calls as checks; scrubbed, as a file's text."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.evals.tape import VERSION

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack_stack.evals.past_chat import PastConversation, PastQuery
    from dualtrack_stack.evals.scrub import Scrub

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")
_ANSWER: Final = 1_000
"""Characters of the recorded answer that stand in the file, for whoever writes the checks."""


def case_text(
    past: PastConversation, origin: Mapping[str, str], name: str, scrub: Scrub, chosen: Sequence[PastQuery]
) -> str:
    """The file. What was an answer stands in it as a comment: what has to be true of it, a person says."""
    lines = [
        f"# Made of {origin['chat']}. Read it before you commit it: names of people and places are not found by a form.",
        "[[case]]",
        f"name = {toml(name)}",
        f"profile = {toml(past.profile)}",
        f"origin = {toml(dict(origin))}",
    ]
    results = [
        {
            "tool": call.tool,
            "input": scrub.value(dict(call.input)),
            "text": scrub.text(call.result),
            "is_error": call.is_error,
        }
        for query in chosen
        for call in query.calls
        if call.status not in ("begun", "unknown", "declined")
    ]
    if results:
        lines += ["# what the tools return, in place of running them", "results = ["]
        lines += [f"    {toml(result)}," for result in results]
        lines.append("]")
    for query in chosen:
        lines += ["", "[[case.turn]]", f"ask = {toml(scrub.text(query.ask))}"]
        if any(call.status == "declined" for call in query.calls):
            lines.append('decide = "decline"')
        elif query.calls:
            lines.append('decide = "approve"')
        wanted = [{"tool": call.tool, "input": scrub.value(dict(call.input))} for call in query.calls]
        if wanted:
            lines += ["calls = [", *(f"    {toml(call)}," for call in wanted), "]"]
        lines.append(f"most_turns = {len(query.turns) + 2}")
        if query.files:
            lines.append(f"# {len(query.files)} files came with it, which are not in this case")
        lines += ['# contains = "…"', '# judge = "…"', *_comment(scrub.text(query.answer))]
    return "\n".join(lines) + "\n"


def tape_of(chosen: Sequence[PastQuery], scrub: Scrub) -> str:
    """The recorded answers, so that the case passes without a model until its prompt or its tools change."""
    calls = [call for query in chosen for call in turn_calls(query, scrub)]
    return json.dumps({"version": VERSION, "calls": calls}, indent=1, ensure_ascii=False) + "\n"


def turn_calls(query: PastQuery, scrub: Scrub | None = None) -> Iterator[dict[str, Any]]:
    """The model calls of a query as on a tape. No hash says what they were asked."""

    def text(said: str) -> str:
        return scrub.text(said) if scrub else said

    for turn in query.turns:
        content: list[dict[str, Any]] = (
            [{"type": "text", "text": text(turn.said)}] if turn.said.strip() else []
        )
        content += [
            {
                "type": "tool_use",
                "id": call.tool_use_id or f"toolu_{call.id.replace('-', '_')}",
                "name": call.tool,
                "input": scrub.value(dict(call.input)) if scrub else dict(call.input),
            }
            for call in turn.calls
        ]
        yield _reply(content, "tool_use")
    if query.answer:
        yield _reply([{"type": "text", "text": text(query.answer)}], "end_turn")


def _reply(content: list[dict[str, Any]], stop: str) -> dict[str, Any]:
    none = {"input_tokens": 0, "output_tokens": 0, "cache_read_tokens": 0, "cache_write_tokens": 0}
    return {
        "kind": "turn",
        "asked": "",
        "content": content,
        "stop_reason": stop,
        "usage": none,
        "broken": {},
        "cut": "",
        "declined": None,
        "calls": 1,
        "first_seconds": None,
        "is_late": False,
        "served": "recorded",
    }


def toml(value: Any) -> str:
    """A value as TOML; fields without a value are left out, as TOML has none."""
    if isinstance(value, dict):
        pairs = (
            f"{key if _BARE.fullmatch(key) else _quoted(key)} = {toml(item)}"
            for key, item in value.items()
            if item is not None
        )
        inside = ", ".join(pairs)
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(toml(item) for item in value if item is not None)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return _quoted(value) if isinstance(value, str) else repr(value)


def _quoted(text: str) -> str:
    """JSON's escapes are TOML's, but for the one character that JSON leaves as it is, and for halves of pairs."""
    whole = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return json.dumps(whole, ensure_ascii=False).replace("\x7f", "\\u007f")


def _comment(answer: str) -> list[str]:
    shown = answer[:_ANSWER] + ("…" if len(answer) > _ANSWER else "")
    printable = ("".join(char if char.isprintable() else " " for char in line) for line in shown.splitlines())
    return ["# It answered:", *(f"#   {line}".rstrip() for line in printable)] if shown else []
