"""Blocks of the Messages API, as records are sent in them (CONTRACT 6). Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.text import clean, cut, neutralise

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from dualtrack.memory.sending import RefusedFile, ResultCut
    from dualtrack.models.turn import ToolCall

Message = dict[str, Any]

_FILE_REFUSED: Final = "(A file of type {media_type} could not be shown here: the model cannot read it.)"
_FILES_LEFT_OUT: Final = "(Files of this {what} that could not be shown here: {count}.)"


@dataclass(frozen=True, slots=True)
class SentResult:
    """The result of a tool call, as the model sees it."""

    text: str
    is_error: bool = False
    media: tuple[Mapping[str, str], ...] = ()
    """``{"media_type", "data"}``, base64."""
    named: str = ""
    """The lines that name its files, where they are not sent."""


def text_block(text: str) -> dict[str, Any]:
    """A block of text."""
    return {"type": "text", "text": text}


def user_message(content: list[dict[str, Any]]) -> Message:
    """Blocks in the user's role."""
    return {"role": "user", "content": content}


def files_left_out(what: str, count: int) -> list[dict[str, Any]]:
    """A note on how many files are not sent; nothing if all are."""
    return [text_block(_FILES_LEFT_OUT.format(what=what, count=count))] if count else []


def media_block(file: Mapping[str, str]) -> dict[str, Any]:
    """An image or a PDF."""
    kind = "document" if file["media_type"] == "application/pdf" else "image"
    return {
        "type": kind,
        "source": {"type": "base64", "media_type": file["media_type"], "data": file["data"]},
    }


def is_file(block: Mapping[str, Any]) -> bool:
    """Whether the block is an image or a PDF."""
    return block["type"] in ("image", "document")


def parts_of(block: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """The block itself, or the blocks of a result."""
    return block["content"] if block["type"] == "tool_result" else (block,)


def file_blocks(
    files: Sequence[Mapping[str, str]], record_id: str, refused: Collection[RefusedFile]
) -> list[dict[str, Any]]:
    """The files of a record, with a line in place of each that the service has refused."""
    return [
        text_block(_FILE_REFUSED.format(media_type=file["media_type"]))
        if (record_id, number) in refused
        else media_block(file)
        for number, file in enumerate(files)
    ]


def result_block(
    call: ToolCall, result: SentResult, cut: ResultCut, refused: Collection[RefusedFile] = ()
) -> dict[str, Any]:
    """A result as it is sent, with its cut applied.

    An error that brought files has no mark, only its words: the service takes nothing but text in a marked one (its
    400: "all content must be type text if is_error is true").
    """
    text = f"[ID:{call.id}] {neutralise(fitted(call.id, result.text, cut.characters))}"
    content = [
        text_block(text),
        *file_blocks(result.media[: cut.files], call.id, refused),
        *files_left_out("result", len(result.media) - cut.files),
        *([text_block(result.named)] if result.named else ()),
    ]
    block: dict[str, Any] = {"type": "tool_result", "tool_use_id": call.tool_use_id, "content": content}
    is_marked = result.is_error and all(part["type"] == "text" for part in content)
    return block | {"is_error": True} if is_marked else block


def fitted(record_id: str, text: str, limit: int) -> str:
    """The first ``limit`` characters of the text, with a note on how to read on."""
    note = (
        f"\n\n(Cut after {limit} of {len(text)} characters. Read on with retrieve_full_context "
        f'{{"id": "{record_id}", "offset": {limit}}}.)'
    )
    return clean(cut(text, limit, note))
