"""HTML: headings, paragraphs, lists, tables and code, without menus, scripts and what is hidden."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from lxml import etree

from dualtrack.plugins.knowledge.reading.encodings import decoded
from dualtrack.plugins.knowledge.reading.web_tables import arranges_only, rows_of
from dualtrack.text import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.plugins.knowledge.reading.blocks import Blocks

_SILENT: Final = frozenset((
    "script", "style", "template", "noscript", "link", "meta", "param", "source", "track", "object",
    "embed", "applet", "canvas", "annotation", "annotation-xml", "rp", "datalist",
))  # fmt: skip
_INLINE: Final = frozenset((
    "a", "abbr", "acronym", "b", "bdi", "bdo", "big", "cite", "code", "data", "del", "dfn", "em", "font",
    "i", "ins", "kbd", "label", "mark", "math", "nobr", "q", "ruby", "rb", "rt", "s", "samp", "small",
    "span", "strike", "strong", "sub", "sup", "time", "tt", "u", "var", "wbr", "output", "button", "mrow",
    "mi", "mo", "mn", "msup", "msub", "mfrac", "msqrt", "mtext", "semantics", "mstyle", "munder", "mover",
    "munderover", "msubsup",
))  # fmt: skip
_HEADINGS: Final = frozenset({"h1", "h2", "h3", "h4", "h5", "h6"})
_LISTS: Final = frozenset({"ul", "ol", "menu", "dir", "dl"})
_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,300}?charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE
)
_XML_ENCODING: Final = re.compile(
    rb"\A<\?xml[^>]{0,200}?encoding\s*=\s*[\"']([A-Za-z0-9_:.-]{2,40})", re.IGNORECASE
)
_PROLOG: Final = re.compile(r"\A\s*<\?xml[^>]{0,300}>")
_LANGUAGE: Final = re.compile(r"(?:language|lang|brush:?\s?|highlight-source)-?([A-Za-z0-9+#_-]{1,30})")
_HIDDEN: Final = re.compile(r"(?:display\s*:\s*none|visibility\s*:\s*hidden)", re.IGNORECASE)
_BLANKS: Final = re.compile(r"[ \t\r\n\f]+")
_DEEPEST_LIST: Final = 8


def read_html(data: bytes, blocks: Blocks) -> Sequence[str]:
    """Adds the page's blocks. Returns its titles."""
    root = tree_of(text_of(data), blocks)
    if root is None:
        return ()
    add_page(root, blocks)
    found = [item.text or "" for item in root.iter("title") if item.getparent() is not None]
    said = [item.get("content", "") for item in root.iter("meta") if item.get("property") == "og:title"]
    return (*said, *found[:1])


def text_of(data: bytes, declared: str = "") -> str:
    """The source in the encoding that it or its carrier names."""
    head = data[:4096]
    named = _CHARSET.search(head) or _XML_ENCODING.match(head)
    return decoded(data, declared or (named[1].decode("ascii") if named else ""))


def tree_of(source: str, blocks: Blocks) -> etree._Element | None:
    """The page as a browser would build it; None for an empty one."""
    parser = etree.HTMLParser(
        encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True, huge_tree=True, recover=True
    )
    bare = _PROLOG.sub("", source).replace("\0", "")
    root = etree.fromstring(bare.encode("utf-8", "replace"), parser) if bare.strip() else None
    if any("depth" in entry.message for entry in parser.error_log):
        blocks.leave_out("passages that are nested too deeply")
    return root


def add_page(root: etree._Element, blocks: Blocks) -> None:
    """Add what a page shows."""
    _Page(blocks).read(root)


class _Page:
    """Inline text gathers until a block begins or ends."""

    def __init__(self, blocks: Blocks) -> None:
        self._blocks = blocks
        self._gathered: list[str] = []

    def read(self, root: etree._Element) -> None:
        self._element(root)
        self._flush()

    def _element(self, element: etree._Element) -> None:
        name = element.tag if isinstance(element.tag, str) else ""
        if not self._is_shown(name, element):
            return
        if name in _HEADINGS:
            self._flush()
            self._blocks.heading(int(name[1]), self._inline(element))
        elif name in {"pre", "listing", "xmp"}:
            self._flush()
            self._blocks.code("".join(_with_breaks(element)), _language(element))
        elif name in _LISTS:
            self._flush()
            self._blocks.items(self._items(element, 0))
        elif name == "table" and not arranges_only(element):
            self._table(element)
        else:
            self._leaf(name, element)

    def _leaf(self, name: str, element: etree._Element) -> None:
        if name == "br":
            self._gathered.append("\n")
        elif name in {"img", "image", "picture", "svg", "video", "audio", "iframe"}:
            self._picture(name, element)
        elif name == "input":
            self._gathered.append(_entered(element))
        elif name == "title" or not name:
            return
        else:
            is_block = name not in _INLINE
            if is_block:
                self._flush()
            self._children(element)
            if is_block:
                self._flush()

    def _children(self, element: etree._Element) -> None:
        self._gathered.append(_BLANKS.sub(" ", element.text or ""))
        for child in element:
            self._element(child)
            self._gathered.append(_BLANKS.sub(" ", child.tail or ""))

    def _is_shown(self, name: str, element: etree._Element) -> bool:
        if name in _SILENT:
            if name in {"object", "embed", "applet", "canvas"}:
                self._blocks.leave_out("embedded objects")
            return False
        if name == "nav" or element.get("role") == "navigation":
            self._blocks.leave_out("menus")
            return False
        is_hidden = element.get("hidden") is not None or _HIDDEN.search(element.get("style", ""))
        if is_hidden and name not in {"body", "html"}:
            self._blocks.leave_out("hidden passages", bool("".join(element.itertext()).strip()))
            return False
        return True

    def _flush(self) -> None:
        """A line for each line break."""
        lines = (line.strip() for line in "".join(self._gathered).split("\n"))
        self._gathered = []
        if text := "\n".join(lines).strip():
            self._blocks.text(_BLANKS_IN_LINE.sub(" ", text))

    def _inline(self, element: etree._Element) -> str:
        """Everything below an element, on lines."""
        kept, self._gathered = self._gathered, []
        part = _Part(self._blocks)
        part.read_into(element)
        self._gathered = kept
        return part.text()

    def _picture(self, name: str, element: etree._Element) -> None:
        """Counted, and said if its author described it."""
        what = {"video": "sounds and videos", "audio": "sounds and videos", "iframe": "embedded pages"}
        self._blocks.leave_out(what.get(name, "pictures"))
        if described := one_line(element.get("alt") or element.get("title") or ""):
            self._gathered.append(f" [{described}] ")
        if name == "svg":
            texts = (" ".join("".join(item.itertext()).split()) for item in element.iter("text"))
            self._gathered.append(" ".join(texts))

    def _table(self, table: etree._Element) -> None:
        self._flush()
        for caption in table.iterchildren("caption"):
            self._blocks.text(self._inline(caption))
        rows, heads = rows_of(table, self._inline)
        self._blocks.table(rows, heads)

    def _items(self, element: etree._Element, depth: int) -> list[str]:
        """A line for each item, those of lists within it below."""
        text = one_line(element.text or "")
        lines = [text] if text else []
        indent = "  " * min(depth, _DEEPEST_LIST)
        at = _whole(element.get("start"), 1)
        for item in element:
            name = item.tag if isinstance(item.tag, str) else ""
            if name in _LISTS:
                lines += self._items(item, depth + 1)
            elif name and self._is_shown(name, item):
                mark = f"{at}." if element.tag == "ol" else "-"
                lines += self._item(item, indent + ("  " if name == "dd" else ""), mark, depth)
                at += 1
            if tail := one_line(item.tail or ""):
                lines.append(f"{indent}- {tail}")
        return lines

    def _item(self, item: etree._Element, indent: str, mark: str, depth: int) -> list[str]:
        inner = [child for child in item.iter(*_LISTS) if _nearest(child, item)]
        part = _Part(self._blocks, without=frozenset(id(child) for child in inner))
        part.read_into(item)
        first, *others = [line for line in part.text().split("\n") if line.strip()] or [""]
        lines = [f"{indent}{mark} {first}", *(f"{indent}  {line}" for line in others)] if first else []
        for child in inner:
            lines += self._items(child, depth + 1)
        return lines


_BLANKS_IN_LINE: Final = re.compile(r"[ \t]{2,}")


class _Part(_Page):
    """The text of a cell or item, whose blocks are lines; lists ``without`` are read by who asks."""

    def __init__(self, blocks: Blocks, without: frozenset[int] = frozenset()) -> None:
        super().__init__(blocks)
        self._without = without
        self._lines: list[str] = []

    def read_into(self, element: etree._Element) -> None:
        """As `_Page.read`, whatever the element itself is."""
        self._children(element)
        self._flush()

    def text(self) -> str:
        return "\n".join(self._lines)

    def _element(self, element: etree._Element) -> None:
        name = element.tag if isinstance(element.tag, str) else ""
        if id(element) in self._without or not self._is_shown(name, element):
            return
        if name in {"pre", "listing", "xmp"}:
            self._flush()
            self._lines += "".join(_with_breaks(element)).strip("\n").split("\n")
        elif name in {"li", "dt", "dd", "tr", "td", "th"}:
            self._gathered.append("; " if name in {"td", "th"} and self._gathered else "\n")
            self._children(element)
        else:
            self._leaf(name, element)

    def _flush(self) -> None:
        lines = (_BLANKS_IN_LINE.sub(" ", line.strip()) for line in "".join(self._gathered).split("\n"))
        self._gathered = []
        self._lines += [line for line in lines if line]


def _nearest(inner: etree._Element, item: etree._Element) -> bool:
    """Whether no other list, nor a table, is between them."""
    above = inner.getparent()
    while above is not None and above is not item:
        if above.tag in _LISTS or above.tag == "table":
            return False
        above = above.getparent()
    return True


def _with_breaks(element: etree._Element) -> list[str]:
    """The text of a listing, in which a line break may be an element."""
    parts = [element.text or ""]
    for item in element.iterdescendants():
        parts.append("\n" if item.tag == "br" else item.text or "")
        parts.append(item.tail or "")
    return parts


def _language(element: etree._Element) -> str:
    for item in (element, *element.iterchildren("code")):
        said = _LANGUAGE.search(item.get("class", ""))
        if said:
            return said[1]
    return ""


def _entered(element: etree._Element) -> str:
    kind = element.get("type", "text").lower()
    if kind in {"checkbox", "radio"}:
        return "☒ " if element.get("checked") is not None else "☐ "
    return (
        f" {element.get('value', '')} " if kind in {"text", "number", "email", "tel", "date", "url"} else ""
    )


def _whole(text: str | None, default: int) -> int:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else default
