"""Markdown on a terminal: what a terminal can draw is drawn, the rest stands as it was written; nothing is lost.

Headings, emphasis, lists, quotes, rules, code and tables are drawn, and lines stay lines. Formulas, HTML, images,
backslashes and reference definitions are printed as they stand, and so is a block that is nested too deep, or a table
that is too wide, for the terminal. The address of a link follows its words.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Final

from markdown_it import MarkdownIt
from markdown_it.rules_block.table import table as gfm_table
from markdown_it.token import Token
from rich import box
from rich import markdown as drawn
from rich.cells import cell_len
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from dualtrack_stack.cli.cjk import PUNCTUATION
from dualtrack_stack.cli.cjk_inline import CjkInline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from markdown_it.rules_block import StateBlock
    from markdown_it.rules_core import StateCore
    from markdown_it.rules_inline import StateInline
    from rich.console import Console, ConsoleOptions, RenderResult

_LONGEST_FORMULA: Final = 5_000
"""Characters. Each opening sign is looked at, so this keeps parsing linear."""

_CLOSING: Final = {"$$": "$$", "\\[": "\\]", "\\(": "\\)"}
_ENVIRONMENT: Final = re.compile(r"\\begin(\{[A-Za-z]{1,30}\*?\})")
_DOLLARS: Final = re.compile(r"(?<![\w$\\])\$(?![\s$])(?:\\.|[^\\$\n])*?(?<!\s)\$(?![\w$])")
_URL: Final = re.compile(rf"(?<=http|ttps)://[^\s<>\"`*)\]{PUNCTUATION}]+")
_CELL_END: Final = re.compile(r"(?<!\\)\|")

_DEEPEST: Final = 30
_PARSED: Final = 40
"""Levels of nesting. The parser drops what is below `_PARSED`, so nothing so deep is drawn."""

_LEAST_WIDTH: Final = 16
_LEAST_COLUMN: Final = 8
"""Columns of the terminal for nested text, and for a cell with its margin, unless its text is narrower."""

_AS: Final = {"html_inline": "text", "softbreak": "hardbreak"}


class Markdown(drawn.Markdown):
    """A renderable of Markdown that was cleaned of control characters."""

    def __init__(self, markup: str, *, style: str = "none") -> None:
        super().__init__("", style=style)
        self.markup = markup
        lines = markup.split("\n")
        self._blocks = [_block(tokens, lines) for tokens in _by_block(_parser().parse(markup))]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.parsed = [token for block in self._blocks for token in block.within(options.max_width)]
        yield from super().__rich_console__(console, options)


@dataclass(frozen=True, slots=True)
class _Block:
    """A block of the document; ``depth`` in levels, ``margin`` in columns of the terminal."""

    tokens: Sequence[Token]
    written: str
    depth: int
    margin: int

    def within(self, width: int) -> Sequence[Token]:
        """Its tokens; if it is nested too deep to be drawn in this width, its lines as they were written."""
        if self.depth <= _DEEPEST and self.margin + _LEAST_WIDTH <= width:
            return self.tokens
        return [Token("html_block", "", 0, content=self.written)]


def _by_block(tokens: Sequence[Token]) -> Iterator[Sequence[Token]]:
    ends = [at for at, token in enumerate(tokens, 1) if token.level == 0 and token.nesting != 1]
    return (tokens[begin:end] for begin, end in pairwise([0, *ends]))


def _block(tokens: Sequence[Token], lines: Sequence[str]) -> _Block:
    begin, end = tokens[0].map or (0, 0)
    depth = max(token.level for token in tokens)
    markers = [len(_marker(token)) for token in tokens if token.type == "list_item_open"]
    column = max(2, *markers, 0) // 2 + 1  # a level: a list has two, and a quote takes two columns
    return _Block(tokens, "\n".join(lines[begin:end]), depth, depth * column)


def _marker(token: Token) -> str:
    """Before an item of a list: its number, as it was written, or a bullet."""
    return f" {token.info}{token.markup} " if token.info else " • "


class _Parser(MarkdownIt):
    """Addresses stay as they were written."""

    def normalizeLink(self, url: str) -> str:  # noqa: N802 - the library's name
        return url

    def normalizeLinkText(self, link: str) -> str:  # noqa: N802 - the library's name
        return link


def _parser() -> MarkdownIt:
    parser = _Parser()
    parser.inline = CjkInline()
    parser.configure("commonmark", {"maxNesting": _PARSED}).enable("strikethrough").disable("reference")
    parser.block.ruler.at("table", _table, {"alt": ["paragraph"]})
    parser.block.ruler.before(
        "fence", "formula", _formula_block, {"alt": ["paragraph", "blockquote", "list"]}
    )
    parser.inline.ruler.before("escape", "literal", _literal)
    parser.inline.ruler.at("escape", _escape)
    parser.core.ruler.push("undrawn", _undrawn)
    return parser.enable("table")


def _end_of_formula(text: str, begin: int, limit: int) -> int:
    """Where a formula that begins there ends; 0 if none does."""
    environment = _ENVIRONMENT.match(text, begin)
    closing = f"\\end{environment[1]}" if environment else _CLOSING.get(text[begin : begin + 2])
    if closing is None:
        dollars = _DOLLARS.match(text, begin, limit)
        return dollars.end() if dollars else 0
    found = text.find(closing, begin + 2, min(limit, begin + _LONGEST_FORMULA))
    return found + len(closing) if found != -1 else 0


def _literal(state: StateInline, silent: bool) -> bool:
    """A formula, or the rest of an address, in which signs mean nothing to Markdown."""
    url = _URL.match(state.src, state.pos, state.posMax) if state.src[state.pos] == ":" else None
    end = url.end() if url else 0
    if state.src[state.pos] in "$\\":
        end = _end_of_formula(state.src, state.pos, state.posMax)
    if not end:
        return False
    if not silent:
        state.append_pending(state.src[state.pos : end])
    state.pos = end
    return True


def _escape(state: StateInline, silent: bool) -> bool:
    """A backslash stays, and the sign after it means nothing to Markdown."""
    if state.src[state.pos] != "\\":
        return False
    kept = state.src[state.pos : min(state.pos + 2, state.posMax)].rstrip("\n")
    if not silent:
        state.append_pending(kept)
    state.pos += len(kept)
    return True


def _formula_block(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """A formula on lines of its own, without a blank one: lines that begin with + or - are no list."""
    first = state.bMarks[begin] + state.tShift[begin]
    if state.is_code_block(begin) or not state.src.startswith(("$$", "\\[", "\\begin{"), first):
        return False
    closed = _end_of_formula(state.src, first, state.eMarks[end - 1])
    last = begin + state.src.count("\n", first, closed) if closed else end
    if last >= end or state.src[closed : state.eMarks[last]].strip():
        return False
    if any(state.isEmpty(line) or state.sCount[line] < state.blkIndent for line in range(begin, last + 1)):
        return False
    return silent or _push_verbatim(state, begin, last + 1)


def _push_verbatim(state: StateBlock, begin: int, end: int) -> bool:
    token = state.push("html_block", "", 0)
    token.map, token.content = [begin, end], state.getLines(begin, end, state.blkIndent, False)
    state.line = end
    return True


def _table(state: StateBlock, begin: int, end: int, silent: bool) -> bool:
    """A table. The library drops the cells of a row that are more than those of the head, and the backslash of an
    escaped pipe; here both stay."""
    first = len(state.tokens)
    is_table = gfm_table(state, begin, end, silent)
    rows = [token for token in state.tokens[first:] if token.type == "tr_open"]
    inlines = (token for token in state.tokens[first:] if token.type == "inline")
    columns = sum(token.type == "th_open" for token in state.tokens[first:])
    for row in rows:
        line = (row.map or [begin])[0]
        cells = _cells(state.getLines(line, line + 1, state.blkIndent, False), columns)
        for cell, token in zip(cells, inlines, strict=False):
            token.content = cell
    return is_table


def _cells(line: str, columns: int) -> list[str]:
    """As many cells; the last one has those that are too many."""
    cells = [cell.strip() for cell in _CELL_END.split(line.strip())]
    cells = cells[not cells[0] : len(cells) - (not cells[-1])]
    return [*cells[: columns - 1], " | ".join(cells[columns - 1 :]), *[""] * (columns - len(cells))][:columns]


def _undrawn(state: StateCore) -> None:
    """What is not drawn becomes text, and the address of a link follows its words."""
    for token in state.tokens:
        if token.type == "inline" and token.children:
            token.children = list(_inline(token.children))


def _inline(tokens: Iterable[Token]) -> Iterator[Token]:
    address = words = ""
    for token in tokens:
        if token.type == "link_open":
            address, words = _address(token, "href"), ""
        elif token.type == "image":
            token.type, token.tag = "text", ""
            token.content, token.children = f"![{token.content}]({_address(token, 'src')})", None
        elif token.type in _AS:
            token.type = _AS[token.type]
        words += token.content
        yield token
        if token.type == "link_close" and address.removeprefix("mailto:") != words.removeprefix("mailto:"):
            yield Token("text", "", 0, content=f" ({address})")


def _address(token: Token, name: str) -> str:
    title = f' "{token.attrs["title"]}"' if "title" in token.attrs else ""
    return f"{token.attrs.get(name, '')}{title}"


class _Quote(drawn.BlockQuote):
    """Lines behind a bar."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        inner = options.update(width=options.max_width - 2)
        for line in console.render_lines(self.elements, inner, style=self.style):
            yield Segment("▌ ", self.style)
            yield from line
            yield Segment.line()


class _Verbatim(drawn.TextElement):
    """Lines as they were written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        self.text.rstrip()
        yield self.text


class _Code(drawn.CodeBlock):
    """Code under what its fence says about it."""

    info = ""

    @classmethod
    def create(cls, markdown: drawn.Markdown, token: Token) -> _Code:
        info = token.info.strip()
        made = cls(info.partition(" ")[0] or "text", markdown.code_theme)
        made.info = info
        return made

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        if self.info:
            yield Text(self.info, style="dim")
        yield from super().__rich_console__(console, options)


class _Item(drawn.ListItem):
    """An item under the number that it was given."""

    marker = ""

    @classmethod
    def create(cls, markdown: drawn.Markdown, token: Token) -> _Item:  # noqa: ARG003
        made = cls()
        made.marker = _marker(token)
        return made

    def drawn(self, console: Console, options: ConsoleOptions, width: int) -> RenderResult:
        style = console.get_style("markdown.item.bullet", default="none")
        inner = options.update(width=options.max_width - width)
        before = self.marker.rjust(width)
        for line in console.render_lines(self.elements, inner, style=self.style):
            yield Segment(before, style)
            yield from line
            yield Segment.line()
            before = " " * width


class _List(drawn.ListElement):
    """Items under each other."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        items = [item for item in self.items if isinstance(item, _Item)]
        width = max(len(item.marker) for item in items)
        for item in items:
            yield from item.drawn(console, options, width)


class _Table(drawn.TableElement):
    """Words that are too long for their column are folded; a table that does not fit stands as it was written."""

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        parts = (self.header and [self.header.row], self.body and self.body.rows)
        rows = [
            [cell.content for cell in row.cells]
            for part in parts
            if isinstance(part, list)
            for row in part
            if row
        ]
        widths = [max(cell_len(row[column].plain) for row in rows) + 2 for column in range(len(rows[0]))]
        if sum(min(width, _LEAST_COLUMN) for width in widths) + 2 > options.max_width:
            yield from (Text("| ") + Text(" | ").join(row) + Text(" |") for row in rows)
            return
        table = Table(box=box.SIMPLE, pad_edge=False, style="markdown.table.border", collapse_padding=True)
        for heading in rows[0]:
            heading.stylize("markdown.table.header")
            table.add_column(heading, overflow="fold")
        for row in rows[1:]:
            table.add_row(*row)
        yield table


Markdown.elements = {
    **drawn.Markdown.elements,
    "html_block": _Verbatim,
    "blockquote_open": _Quote,
    "fence": _Code,
    "list_item_open": _Item,
    "bullet_list_open": _List,
    "ordered_list_open": _List,
    "table_open": _Table,
}
