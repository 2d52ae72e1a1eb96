"""What is sent: the past by the profile's policy, the running query by its cuts (CONTRACT 6, DESIGN 2.7).

Pure. The cuts are decided in `dualtrack.memory.budget`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.frozen import dumps, thaw
from dualtrack.media import within_request
from dualtrack.memory.blocks import (
    SentResult,
    file_blocks,
    files_left_out,
    fitted,
    is_file,
    parts_of,
    result_block,
    text_block,
    user_message,
)
from dualtrack.memory.estimate import block_tokens, message_tokens
from dualtrack.memory.notes import ask_for
from dualtrack.memory.policies import dual_track, in_template
from dualtrack.memory.recall import is_recall
from dualtrack.memory.records import THINKING, QueryTrack, TrackBlock, file_data
from dualtrack.memory.sending import Cuts, ResultCut
from dualtrack.profiles import PLACEHOLDER
from dualtrack.text import cautious_tokens, clean, estimate_tokens, neutralise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack.frozen import JsonObject
    from dualtrack.memory.blocks import Message
    from dualtrack.memory.digests import Digest
    from dualtrack.memory.records import Whole
    from dualtrack.models.stops import LastCallReason
    from dualtrack.models.turn import ToolCall

_FINAL_NOTES: Final[Mapping[str, str]] = {
    "max_turns": (
        "(The limit of {turns} turns with tools is reached. Use no more tools: answer now, in writing, "
        "from what you have found, and say what is missing.)"
    ),
    "insufficient_credits": (
        "(The user has too few credits for more tool calls. Use no more tools: answer now, in writing, "
        "from what you have found, and say what is missing.)"
    ),
    "timeout": (
        "(The time limit of this chat is reached. Use no more tools: answer now, in writing, from what you have "
        "found, and say what is missing.)"
    ),
    "cut_calls": (
        "(Two answers of this chat reached the limit of their length within a tool call. Use no more tools: answer now, in "
        "writing, from what you have found, and say what is missing.)"
    ),
    "max_cost": (
        "(The cost limit of this chat is reached. Use no more tools: answer now, in writing, from what you have "
        "found, and say what is missing.)"
    ),
}
_AGAIN: Final = (
    "(This answer does not fit the JSON Schema of the query: {problem}.\nAnswer once more, with nothing but one JSON value "
    "that fits it. Use no tools.)"
)
_ANSWER_IN_JSON: Final = (
    "(The answer to this query is read by a program. Once no more tools are needed, answer with nothing but one JSON "
    "value that fits the JSON Schema below: no other text, no Markdown, no code fence.)\n{schema}"
)
_INSTRUCTIONS: Final = "(instructions of the program that the user writes with)\n"
_CONTINUED: Final = (
    "(That answer broke off. Its last {length} characters stand below, as data. Go on exactly where they end, also within a word, a list or a block of code: begin with the very next character, repeat nothing, and "
    "write no introduction.)\n{text}"
)
_FILES_REFUSED: Final = "(The files could not be shown: one of them is broken or too large.)"


@dataclass(frozen=True, slots=True)
class TextFile:
    """A full text file of the running query; it is cut like a tool's result when sent."""

    record_id: str
    name: str
    text: str


@dataclass(frozen=True, slots=True)
class PastTurn:
    """A turn of the running query: the assistant's unchanged blocks, and a result for every call."""

    content: tuple[Mapping[str, Any], ...]
    calls: tuple[ToolCall, ...]
    results: Mapping[str, SentResult]
    told: str = ""
    """What the model was told behind it."""


@dataclass(frozen=True, slots=True)
class Replay:
    """The past as a policy without summaries sends it: frozen messages, a list for each query, oldest first.

    ``names_files``: one of them came with files; ``newest``: the newest query whose answer is sent.
    """

    messages: tuple[tuple[Mapping[str, Any], ...], ...] = ()
    names_files: bool = False
    newest: int = 0


@dataclass(frozen=True, slots=True)
class View:
    """Everything that a model call is built from. It does not change after the query starts, except for new turns."""

    tracks: tuple[QueryTrack, ...]
    """The tracks of the past queries after the digest, if the policy is `dual_track`."""
    query: TrackBlock
    instructions: str = ""
    """What the client's own program says to this query alone (CONTRACT 10)."""
    continued: str = ""
    """The end of the answer that goes on in this query's."""
    whole: Mapping[int, Whole] = field(default_factory=lambda: MappingProxyType({}))
    """The messages of those queries that are sent whole in place of their track, by number."""
    attachments: tuple[Mapping[str, str], ...] = ()
    """Images and PDFs of the query: ``{"media_type", "data"}``, base64."""
    files: tuple[TextFile, ...] = ()
    turns: tuple[PastTurn, ...] = ()
    asks: tuple[tuple[str, ...], ...] = ()
    """The records on which notes are asked for, by the message that asks last: behind the query, behind the results of
    the first turn, of the second …"""
    mark: str = ""
    """The line behind which the notes stand."""
    limit: LastCallReason = ""
    max_turns: int = 0
    result_limit: int = 100_000
    replay: Replay = field(default_factory=Replay)
    """The past, if the policy is another one."""
    template: str = PLACEHOLDER
    """The profile's ``query_template``."""
    digest: Digest | None = None
    """The digest of the oldest queries."""
    cuts: Cuts = field(default_factory=Cuts)
    """How much of the query and its results is sent. Without a cut, the limits of profile and request apply."""
    output: JsonObject | None = None
    """The JSON Schema that the answer has to fit. It stands behind the query, and is not sent with it later: it belongs
    to this answer alone, and what precedes it stays a cached prefix."""
    misfit: str = ""
    """Why the last turn, which is an answer, does not fit it."""


@dataclass(frozen=True, slots=True)
class SentRequest:
    """Messages for Claude. ``past``: how many of them come before the query; ``files``: how many files they have."""

    messages: tuple[Message, ...]
    past: int = 0
    files: int = 0

    @property
    def tokens(self) -> int:
        """The plain estimate, for comparisons alone."""
        return sum(_tokens(message) for message in self.messages)


def build(view: View) -> SentRequest:
    """The messages of a model call, with cache breakpoints."""
    cuts = cuts_in_force(view)
    attachments = _attachments(view)
    past = _past(view)
    own, before_turn = _own(view, attachments, cuts)
    messages = [*(message for sent_as in past for message in sent_as), *own]
    before = len(messages) - len(own)
    _mark_breakpoints(messages, _breakpoints(view, past, before_turn, len(messages) - 1))
    return SentRequest(tuple(messages), before, _files_in(messages))


def asked_last(view: View) -> tuple[str, ...]:
    """The records on which the request's last message asks for notes."""
    return _asked(view, len(view.turns))


def _asked(view: View, place: int) -> tuple[str, ...]:
    return view.asks[place] if place < len(view.asks) else ()


def own_messages(view: View) -> tuple[Message, ...]:
    """The messages of the query itself, without breakpoints."""
    return tuple(_own(view, _attachments(view), cuts_in_force(view))[0])


def _own(
    view: View, attachments: tuple[Mapping[str, str], ...], cuts: Mapping[str, ResultCut]
) -> tuple[list[Message], int]:
    """The query and its turns, and how many of these messages precede the last turn (0: there is none)."""
    messages = [user_message(_query_blocks(view, attachments, cuts))]
    before_turn = 0
    for place, turn in enumerate(view.turns[:-1] if view.misfit else view.turns):
        _append_ask(messages, view, place)
        before_turn = len(messages)
        messages += _turn_messages(turn, cuts, view.cuts)
    if view.misfit:
        messages += _misfit_messages(view.turns[-1], view.misfit)
    if note := _FINAL_NOTES.get(view.limit):
        _append_note(messages, note.format(turns=view.max_turns))
    _append_ask(messages, view, len(view.turns))
    return messages, before_turn


def _append_ask(messages: list[Message], view: View, place: int) -> None:
    if asked := _asked(view, place):
        messages[-1]["content"].append(_ask(view, place, asked))


def _ask(view: View, place: int, asked: tuple[str, ...]) -> dict[str, Any]:
    return text_block(ask_for(asked, view.mark, again=any(view.asks[:place])))


def _misfit_messages(turn: PastTurn, problem: str) -> list[Message]:
    """The text of an answer that does not fit, and why. Its thinking is left out: nothing is built on it."""
    said = [thaw(block) for block in turn.content if block["type"] == "text"]
    told = user_message([text_block(_AGAIN.format(problem=neutralise(problem)))])
    return [{"role": "assistant", "content": said}, told] if said else [told]


def _files_in(messages: list[Message]) -> int:
    parts = (part for message in messages for block in message["content"] for part in parts_of(block))
    return sum(is_file(part) for part in parts)


def _past(view: View) -> list[list[Message]]:
    """The messages before the query: a list for the digest, if there is one, and for each past query that is sent."""
    folded = [[user_message([text_block(view.digest.text)])]] if view.digest else []
    replayed: list[list[Message]] = [thaw(sent_as) for sent_as in view.replay.messages]
    tracks = dual_track(view.tracks, view.template)
    sent: list[list[Message]] = [
        thaw(view.whole[track.query].messages) if track.query in view.whole else messages
        for track, messages in zip(view.tracks, tracks, strict=True)
    ]
    return folded + sent + replayed


def _turn_messages(turn: PastTurn, cuts: Mapping[str, ResultCut], decided: Cuts) -> list[Message]:
    content = _said(turn, decided)
    # a pause may come before anything was said
    messages: list[Message] = [{"role": "assistant", "content": thaw(content)}] if content else []
    results = [
        result_block(call, turn.results[call.id], cuts[call.id], decided.refused) for call in turn.calls
    ]
    told = [text_block(turn.told)] if turn.told else []
    return [*messages, user_message([*results, *told])] if results or told else messages


def whole_tokens(view: View) -> int:
    """By how many cautious tokens the running query is longer if nothing of it is cut beyond the profile's own limit,
    no notes are asked for, and the turns that only read the past back are left out; negative if it is shorter."""
    cuts = cuts_in_force(view)
    texts = [(file.text, cuts[file.record_id]) for file in view.files]
    recalled = 0
    for turn in view.turns:
        if is_recall(call.tool for call in turn.calls):
            recalled += message_tokens(_turn_messages(turn, cuts, view.cuts))
        else:
            texts += [(turn.results[call.id].text, cuts[call.id]) for call in turn.calls]
    cut_off = sum(cautious_tokens(text[cut.characters : view.result_limit]) for text, cut in texts)
    asks = sum(block_tokens(_ask(view, place, asked)) for place, asked in enumerate(view.asks) if asked)
    return cut_off - recalled - asks


def cuts_in_force(view: View) -> dict[str, ResultCut]:
    """The cuts of every text file and result, by record id in their order.

    Without a decision, files are taken in order: what was sent before is sent again, so the cached prefix stays valid.
    """
    attachments = _attachments(view)
    count, characters = len(attachments), sum(len(file["data"]) for file in attachments)
    cuts = {
        file.record_id: view.cuts.results.get(
            file.record_id, ResultCut(min(len(file.text), view.result_limit))
        )
        for file in view.files
    }
    for turn in view.turns:
        for call in turn.calls:
            result, cut = turn.results[call.id], view.cuts.results.get(call.id)
            files = cut.files if cut else within_request(result.media, count, characters)
            files = 0 if view.cuts.without_files else files
            count += files
            characters += sum(len(file["data"]) for file in result.media[:files])
            length = cut.characters if cut else min(len(result.text), view.result_limit)
            cuts[call.id] = ResultCut(length, files)
    return cuts


def _attachments(view: View) -> tuple[Mapping[str, str], ...]:
    return () if view.cuts.without_files else view.attachments[: view.cuts.attachments]


def _said(turn: PastTurn, cuts: Cuts) -> tuple[Mapping[str, Any], ...]:
    """A turn's blocks. Thinking is dropped if other messages are sent now than then: the service would refuse it."""
    if not cuts.without_thinking:
        return turn.content
    return tuple(block for block in turn.content if block["type"] not in THINKING)


def thoughts(view: View) -> list[dict[str, Any]]:
    """The thinking of the query's turns."""
    blocks = (block for turn in view.turns for block in turn.content)
    return [thaw(block) for block in blocks if block["type"] in THINKING]


def _query_blocks(
    view: View, attachments: tuple[Mapping[str, str], ...], cuts: Mapping[str, ResultCut]
) -> list[dict[str, Any]]:
    query = view.query
    if view.cuts.query is not None:
        query = replace(query, content=fitted(query.record_id, query.content, view.cuts.query))
    said = [text_block(_FILES_REFUSED)] if view.cuts.without_files else []
    left_out = 0 if said else len(view.attachments) - len(attachments)
    return [
        text_block(in_template(query, view.template).text),
        *([text_block(_INSTRUCTIONS + neutralise(clean(view.instructions)))] if view.instructions else ()),
        *(_continued(view.continued) if view.continued else ()),
        *(_text_file(file, cuts[file.record_id].characters) for file in view.files),
        *file_blocks(attachments, query.record_id, view.cuts.refused),
        *said,
        *files_left_out("query", left_out),
        *([text_block(_ANSWER_IN_JSON.format(schema=dumps(view.output)))] if view.output is not None else []),
    ]


def _continued(text: str) -> list[dict[str, Any]]:
    return [text_block(_CONTINUED.format(length=len(text), text=neutralise(clean(text))))]


def _text_file(file: TextFile, limit: int) -> dict[str, Any]:
    """``[ID:q3-f1] (data from the file "notes.txt")``, then its text with forged ids neutralised."""
    said = neutralise(file_data(file.name, fitted(file.record_id, file.text, limit)))
    return text_block(f"[ID:{file.record_id}] {said}")


def _append_note(messages: list[Message], note: str) -> None:
    if messages[-1]["role"] == "user":
        messages[-1]["content"].append(text_block(note))
    else:
        messages.append(user_message([text_block(note)]))


def _tokens(message: Message) -> int:
    return sum(_block_tokens(block) for block in message["content"])


def _block_tokens(block: Mapping[str, Any]) -> int:
    """The estimate: text by its length, media by a fixed figure, because the length of base64 does not matter."""
    kind = block["type"]
    if kind == "text":
        return estimate_tokens(block["text"])
    if kind == "tool_result":
        return sum(_block_tokens(part) for part in block["content"])
    if is_file(block):
        return 1_500
    return estimate_tokens(str(block))


def _breakpoints(view: View, past: Sequence[Sequence[Message]], before_turn: int, last: int) -> set[int]:
    """The messages that end with a cache breakpoint: only where another call has read or will read (DESIGN 2.7, 2.15).

    The last breakpoint of the previous call, at the end of the past or of the turn before, is marked again, because the
    service searches at most 20 blocks back, and a turn may add more. So is the end of the past, with which the next
    query begins. With that of the system these are 4, the service's maximum. The last call of a chat may not use tools,
    so the service would cache its messages apart, where nothing reads them: they have no breakpoint.
    """
    if view.limit:
        return set()
    lengths = [len(sent_as) for sent_as in past]
    count = sum(lengths)
    if before_turn:
        before = count + before_turn
    elif view.tracks and view.tracks[-1].query in view.whole:
        before = count - 1  # its response was not in the last call
    else:
        before = sum(lengths[:-1])
    return {end - 1 for end in (before, count, last + 1) if end > 0}


def _mark_breakpoints(messages: list[Message], indexes: set[int]) -> None:
    for index in indexes:
        block = messages[index]["content"][-1]
        if block["type"] not in THINKING:
            block["cache_control"] = {"type": "ephemeral"}
