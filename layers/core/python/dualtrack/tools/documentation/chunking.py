"""Documentation to chunks, one per section. Pure; all input is untrusted.

Context7 answers with JSON (code snippets and texts, one per section) or with text whose sections are separated by
lines of exactly 32 dashes. Such a line inside a code fence is code. A text without such lines is cut at its headings,
and what is still too long for a section between its paragraphs (`cutting`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from dualtrack.tools.documentation.cutting import cut
from dualtrack.tools.documentation.values import DocSection

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from dualtrack.tools.documentation.settings import Bounds

SEPARATOR: Final = "-" * 32
_FENCE: Final = re.compile(r"^ {0,3}(`{3,}|~{3,})(.*)$")
_HEADING: Final = re.compile(r"^#{1,6}\s++(.+)$")
_SOURCE: Final = re.compile(r"^Source:\s*(\S+)\s*$")
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u2028\u2029]")
_BREAK: Final = re.compile(r"\s+")


def chunks_of_json(document: Mapping[str, Any], bounds: Bounds) -> tuple[DocSection, ...]:
    """Chunks of a ``/v2/context?type=json`` body: code snippets, then texts, each in their order.

    Fields of the wrong type are ignored, and so is ``rules``: instructions to a model by the library's owner, which
    documentation must not give.
    """
    chunks = [*_code_chunks(_mappings(document.get("codeSnippets")), bounds)]
    chunks += _info_chunks(_mappings(document.get("infoSnippets")), bounds)
    return _bounded(_cut(chunks, bounds), bounds)


def chunks_of_text(text: str, bounds: Bounds) -> tuple[DocSection, ...]:
    """Chunks of a text body: sections of ``### Title``, ``Source: url`` and Markdown, separated by 32 dashes. Without
    separators, a document: a chunk for each part between two headings."""
    parts = sections(text)
    if len(parts) == 1:
        return _bounded(_cut_one(_text_chunk(parts[0], bounds), bounds), bounds)
    return _bounded(_cut([_text_chunk(section, bounds) for section in parts], bounds), bounds)


def sections(text: str) -> tuple[str, ...]:
    """The text split at lines of exactly 32 dashes outside code fences; empty sections are dropped.

    A fence that is never closed is ignored: it must not swallow all the sections after it.
    """
    lines = text.splitlines()
    closers = _longest_closers(lines)
    parts: list[list[str]] = [[]]
    fence = ""
    for number, line in enumerate(lines):
        if not fence and line.strip() == SEPARATOR:
            parts.append([])
            continue
        opened = _fence_after(fence, line)
        if fence or not opened or closers[number].get(opened[0], 0) >= len(opened):
            fence = opened
        parts[-1].append(line)
    return tuple(section for part in parts if (section := "\n".join(part).strip()))


def _longest_closers(lines: Sequence[str]) -> list[Mapping[str, int]]:
    """For each line, the longest run of each fence character that could close a fence below it."""
    longest: Mapping[str, int] = {}
    closers: list[Mapping[str, int]] = []
    for line in reversed(lines):
        closers.append(longest)
        match = _FENCE.match(line)
        if match and not match.group(2).strip():
            mark, size = match.group(1)[0], len(match.group(1))
            if size > longest.get(mark, 0):
                longest = {**longest, mark: size}
    return closers[::-1]


def distinct(chunk_lists: Iterable[Sequence[DocSection]]) -> tuple[DocSection, ...]:
    """The lists merged in order, without duplicates (the same body under the same heading)."""
    merged: dict[tuple[str, str], DocSection] = {}
    for chunks in chunk_lists:
        for chunk in chunks:
            merged.setdefault((chunk.title, _BREAK.sub(" ", chunk.text)), chunk)
    return tuple(merged.values())


def one_line(text: str, limit: int) -> str:
    """A heading's text without control characters and line breaks, cut to ``limit`` characters."""
    line = _BREAK.sub(" ", _CONTROL.sub("", text)).strip()
    return line if len(line) <= limit else line[: limit - 1] + "…"


def web_address(text: object, limit: int) -> str:
    """The address if it is a plain http(s) one, else empty. It is shown, never requested."""
    if not isinstance(text, str) or len(text) > limit or re.search(r"[\s<>\"'`\x00-\x1f\x7f]", text):
        return ""
    try:
        parts = urlsplit(text)
    except ValueError:
        return ""
    return text if parts.scheme in ("http", "https") and parts.hostname else ""


def _fence_after(fence: str, line: str) -> str:
    """The open fence ("" for none) after this line, by CommonMark's rules."""
    match = _FENCE.match(line)
    if not match:
        return fence
    marks, rest = match.groups()
    if not fence:
        return "" if marks[0] == "`" and "`" in rest else marks
    closes = marks[0] == fence[0] and len(marks) >= len(fence) and not rest.strip()
    return "" if closes else fence


def _text_chunk(section: str, bounds: Bounds) -> DocSection:
    title, url = "", ""
    body: list[str] = []
    for line in section.splitlines():
        heading, source = _HEADING.match(line), _SOURCE.match(line)
        if not title and not body and heading:
            title = heading.group(1).rstrip().rstrip("#").rstrip()
        elif not url and not any(body) and source:
            url = source.group(1)
        elif line.strip() or body:
            body.append(line)
    return _chunk(title or (body[0] if body else ""), "\n".join(body), url, bounds)


def _code_chunks(snippets: Iterable[Mapping[str, Any]], bounds: Bounds) -> Iterator[DocSection]:
    for snippet in snippets:
        description = _text(snippet.get("codeDescription"))
        codes = [
            _fenced(
                _text(code.get("code")), _text(code.get("language")) or _text(snippet.get("codeLanguage"))
            )
            for code in _mappings(snippet.get("codeList"))
        ]
        body = "\n\n".join(part for part in (description, *codes) if part)
        title = _text(snippet.get("codeTitle")) or _text(snippet.get("pageTitle"))
        url = (
            snippet.get("codeId")
            if web_address(snippet.get("codeId"), bounds.url)
            else snippet.get("sourceFile")
        )
        if body:
            yield _chunk(title, body, url, bounds)


def _info_chunks(snippets: Iterable[Mapping[str, Any]], bounds: Bounds) -> Iterator[DocSection]:
    for snippet in snippets:
        body = _text(snippet.get("content"))
        if body:
            yield _chunk(_text(snippet.get("breadcrumb")), body, snippet.get("pageId"), bounds)


def _chunk(title: str, text: str, url: object, bounds: Bounds) -> DocSection:
    body = _CONTROL.sub("", text).strip()
    return DocSection(one_line(title, bounds.title) or "Untitled section", body, web_address(url, bounds.url))


def _cut(chunks: Iterable[DocSection], bounds: Bounds) -> Iterator[DocSection]:
    """The chunks, of which each that is too long is several."""
    for chunk in chunks:
        yield from _cut_one(chunk, bounds) if len(chunk.text) > bounds.chunk else (chunk,)


def _cut_one(chunk: DocSection, bounds: Bounds) -> Iterator[DocSection]:
    """A chunk in pieces that have its title and the headings above them; larger ones where there would be too many."""
    size = min(max(bounds.piece, 2 * len(chunk.text) // bounds.chunks), bounds.chunk)
    for headings, text in cut(chunk.text, size, _fence_after):
        yield replace(chunk, title=one_line(" > ".join([chunk.title, *headings]), bounds.title), text=text)


def _fenced(code: str, language: str) -> str:
    if not code.strip():
        return ""
    longest = max((len(marks) for marks in re.findall(r"`{3,}", code)), default=2)
    fence = "`" * (longest + 1)
    name = language.lower() if re.fullmatch(r"[\w+#.-]{1,30}", language) else ""
    return f"{fence}{name}\n{code.rstrip()}\n{fence}"


def _bounded(chunks: Iterable[DocSection], bounds: Bounds) -> tuple[DocSection, ...]:
    return distinct([[chunk for chunk in chunks if chunk.text]])[: bounds.chunks]


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
