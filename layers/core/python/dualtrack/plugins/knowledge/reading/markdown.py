"""Markdown (CommonMark with tables), kept in its own words: only its blocks are told apart."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt

from dualtrack.plugins.knowledge.reading.encodings import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from markdown_it.token import Token

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_FRONT_MATTER: Final = re.compile(r"\A---[ \t]*+\n(.{0,20000}?)\n(?:---|\.\.\.)[ \t]*+(?:\n|\Z)", re.DOTALL)
_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_PORTION: Final = 500_000
_TITLE: Final = re.compile(r"^title[ \t]*+:[ \t]*+(.+)$", re.MULTILINE | re.IGNORECASE)
_COMMENT: Final = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_PICTURE: Final = re.compile(r"!\[[^\]\n]*+\]\(")
_ANCHOR: Final = re.compile(r"\s*\{#[^}\n]*\}\s*\Z")


def read_markdown(data: bytes, blocks: Blocks) -> Sequence[str]:
    """Adds the text's blocks. Returns the title in its front matter."""
    text = decoded(data).replace("\r\n", "\n").replace("\r", "\n")
    title = ""
    if matter := _FRONT_MATTER.match(text):
        found = _TITLE.search(matter[1])
        title = found[1].strip().strip("\"'") if found else ""
        blocks.text(matter[1])
        text = text[matter.end() :]
    parser = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join", "reference"])
    for lines in _portions(text.split("\n")):
        tokens = parser.parse("\n".join(lines))
        at = 0
        while at < len(tokens):
            at = _block(tokens, at, lines, blocks)
    return (title,)


def _portions(lines: list[str]) -> Iterator[list[str]]:
    """The lines in portions that begin with a heading: a parser of all of them needs a hundred times their bytes."""
    begin, size, fence = 0, 0, ""
    for at, line in enumerate(lines):
        if mark := _FENCE.match(line):
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
        if size > _PORTION and not fence and line.startswith("#"):
            yield lines[begin:at]
            begin, size = at, 0
        size += len(line)
    yield lines[begin:]


def _block(tokens: Sequence[Token], at: int, lines: Sequence[str], blocks: Blocks) -> int:
    """Add the block that begins with this token. Returns the index behind it."""
    token = tokens[at]
    end = at + 1
    if token.nesting == 1:
        while tokens[end].level != token.level or tokens[end].type != token.type.replace("_open", "_close"):
            end += 1
        end += 1
    source = lines[token.map[0] : token.map[1]] if token.map else []
    if token.type == "heading_open":
        blocks.heading(int(token.tag[1]), _ANCHOR.sub("", tokens[at + 1].content).strip("*_` "))
    elif token.type in {"fence", "code_block"}:
        blocks.code(token.content, token.info.split(" ")[0] if token.info else "")
    elif token.type in {"bullet_list_open", "ordered_list_open"}:
        blocks.items(source)
    elif token.type == "table_open":
        rows = _rows(tokens[at:end])
        blocks.table(rows, heads=1)
    elif token.type == "html_block":
        blocks.text(_COMMENT.sub("", "\n".join(source)))
    elif token.type != "hr":
        blocks.text("\n".join(source))
    blocks.leave_out("pictures", len(_PICTURE.findall("\n".join(source))))
    return end


def _rows(tokens: Sequence[Token]) -> list[list[str]]:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.content)
    return rows
