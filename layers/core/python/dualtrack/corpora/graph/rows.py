"""Files of nodes and relationships, row by row: CSV or JSON, UTF-8 (docs/graph.md, "Loading").

CSV     nodes: ``node_id,label,name,<properties>``; relationships: ``from,type,to,<properties>``; columns in any order
JSON    ``{"nodes": [{"node_id", "label", "name", <properties>}], "edges": [{"from", "type", "to", <properties>}]}``

An invalid row is returned as a `Problem` with its position, and the following rows are still checked. All checks take
linear time.
"""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from dualtrack.corpora.kinds import FileRefused
from dualtrack.message_files import as_utf8, not_text
from dualtrack.text import in_form

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

Scalar: TypeAlias = bool | int | float | str
Value: TypeAlias = Scalar | tuple[Scalar, ...]
"""The value of a property. In CSV all values are text; their types are known only after all rows."""


class Node(NamedTuple):
    """A node. ``number``: its line in CSV, or its number in a JSON list, from 1."""

    number: int
    node_id: str
    label: str
    name: str
    properties: Mapping[str, Value]


class EdgeRow(NamedTuple):
    """A relationship between two nodes, by their ids."""

    number: int
    start: str
    type: str
    end: str
    properties: Mapping[str, Value]


class Problem(NamedTuple):
    """A problem with a row, as the rest of a sentence that begins with the row's position."""

    where: str
    what: str

    def __str__(self) -> str:
        return f"{self.where}: {self.what}"


Row: TypeAlias = Node | EdgeRow | Problem

NODE_COLUMNS: Final = ("node_id", "label", "name")
EDGE_COLUMNS: Final = ("from", "type", "to")

MAX_ID: Final = 200
MAX_NAME: Final = 500
MAX_TEXT: Final = 10_000
MAX_PROPERTIES: Final = 100
"""Maximum properties of a file, and of a label or type."""

MAX_ITEMS: Final = 1_000
"""Maximum items of a list."""

MAX_WORD: Final = 64
WORD_RULE: Final = f"a letter of any script, then letters, digits or _, at most {MAX_WORD}"
"""The rule for names of labels, types and properties: they stand in queries as they are."""

LIST: Final = "[]"
"""How the head of a CSV column ends whose values are lists, with ``;`` between their items."""
BETWEEN: Final = "\x1f"
"""What stands between the texts of a list on their way into the engine, and so in none of them."""

_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_SHOWN: Final = 40


def rows_of(name: str, data: bytes) -> Iterator[Row]:
    """The rows of a file, including problems. Raises `FileRefused` if the file is not of this format: before the first
    row or, for broken CSV, after the last valid one."""
    data = as_utf8(data)
    wrong = not_text(data)
    if wrong:
        raise FileRefused(f"cannot be read: {wrong}")
    text = data.decode("utf-8-sig")
    return _json_rows(text) if name.lower().endswith(".json") else _csv_rows(text)


def position_of(name: str, number: int, kind: str) -> str:
    """The position of a row as text: ``line 7``, or ``node 7`` of a JSON file."""
    return f"{kind} {number}" if name.lower().endswith(".json") else f"line {number}"


# ── CSV ───────────────────────────────────────────────────────────────────────────────────────────


def _csv_rows(text: str) -> Iterator[Row]:
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        header = [column.strip() for column in next(reader, [])]
        make = _maker(header)
        names = [
            (at, name.removesuffix(LIST), name.endswith(LIST))
            for at, name in enumerate(header)
            if name not in NODE_COLUMNS + EDGE_COLUMNS
        ]
        fixed = EDGE_COLUMNS if make is _edge else NODE_COLUMNS
        first, second, third = (header.index(column) for column in fixed)
        width = len(header)
        for row in reader:
            if not row:
                continue  # an empty line
            if len(row) != width:
                yield Problem(f"line {reader.line_num}", f"has {len(row)} fields, the header has {width}")
                continue
            properties = {
                name: tuple(filter(None, map(str.strip, row[at].split(";")))) if is_list else row[at]
                for at, name, is_list in names
                if row[at]
            }
            if wrong := _wrong_lists(properties):
                yield Problem(f"line {reader.line_num}", wrong)
                continue
            yield make(
                "line",
                reader.line_num,
                row[first].strip(),
                row[second].strip(),
                row[third].strip(),
                properties,
            )
    except csv.Error as error:
        raise FileRefused(f"is broken at line {reader.line_num}: {error}") from error


_Make: TypeAlias = "Callable[[str, int, Any, Any, Any, Mapping[str, Value]], Row]"


def _maker(header: Sequence[str]) -> _Make:
    """A function that makes rows under this header. Raises `FileRefused`."""
    nodes, edges = set(NODE_COLUMNS) <= set(header), set(EDGE_COLUMNS) <= set(header)
    if nodes == edges:
        expected = " or ".join(",".join(columns) for columns in (NODE_COLUMNS, EDGE_COLUMNS))
        raise FileRefused(f"has no header of nodes or relationships: its first line must begin {expected}")
    own = NODE_COLUMNS if nodes else EDGE_COLUMNS
    wrong = _wrong_names([column.removesuffix(LIST) for column in header if column not in own])
    if wrong:
        raise FileRefused(wrong)
    if len({column.removesuffix(LIST).casefold() for column in header}) < len(header):
        raise FileRefused("has two columns of one name (case does not count)")
    return _node if nodes else _edge


def is_word(name: str) -> bool:
    """Whether this can be the name of a label, a type or a property: an identifier (Unicode, UAX 31) in its usual
    form."""
    is_usual = name.isascii() or name == in_form("NFC", name)
    return name.isidentifier() and name[0] != "_" and len(name) <= MAX_WORD and is_usual


def _wrong_names(names: Sequence[str]) -> str:
    """Why these cannot be names of properties, as part of a sentence; empty if they can."""
    if len(names) > MAX_PROPERTIES:
        return f"has {len(names)} properties; at most {MAX_PROPERTIES} are taken"
    reserved = {*NODE_COLUMNS, *EDGE_COLUMNS}
    for name in names:
        if not is_word(name):
            return f"has the property {_shown(name)}; a property's name is {WORD_RULE}"
        if name.casefold() in reserved:
            return f"has the property {_shown(name)}; {', '.join(NODE_COLUMNS + EDGE_COLUMNS)} are reserved"
    return ""


# ── JSON ──────────────────────────────────────────────────────────────────────────────────────────


def _json_rows(text: str) -> Iterator[Row]:
    try:
        read = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise FileRefused(f"is not valid JSON: {str(error)[:120]}") from error
    if not isinstance(read, dict) or not read or not set(read) <= {"nodes", "edges"}:
        raise FileRefused('must be {"nodes": […], "edges": […]}')
    if not all(isinstance(listed, list) for listed in read.values()):
        raise FileRefused("must have lists as nodes and edges")
    for key, kind, fixed, make in (
        ("nodes", "node", NODE_COLUMNS, _node),
        ("edges", "edge", EDGE_COLUMNS, _edge),
    ):
        for number, row in enumerate(read.get(key, ()), start=1):
            yield _json_row(kind, number, row, fixed, make)


def _no_number(word: str) -> float:
    raise ValueError(f"{word} is not a number")


def _json_row(kind: str, number: int, row: Any, fixed: Sequence[str], make: _Make) -> Row:
    where = f"{kind} {number}"
    if not isinstance(row, dict):
        return Problem(where, "is not an object")
    missing = next((name for name in fixed if name not in row), "")
    if missing:
        return Problem(where, f"has no {missing}")
    properties = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in row.items()
        if name not in fixed and value not in (None, "", [])
    }
    wrong = _wrong_names(list(properties)) or _wrong_values(properties)
    if wrong:
        return Problem(where, wrong)
    first, second, third = (_id_text(row[name]) for name in fixed)
    return make(kind, number, first, second, third, properties)


def _id_text(value: Any) -> Any:
    """A whole number as text, because ids in JSON are often numbers; any other value is unchanged and refused later."""
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value.strip() if isinstance(value, str) else value


def _wrong_values(properties: Mapping[str, Any]) -> str:
    if len({name.casefold() for name in properties}) < len(properties):
        return "has two properties of one name (case does not count)"
    for name, value in properties.items():
        for item in value if isinstance(value, tuple) else (value,):
            if not isinstance(item, str | int | float):
                return f"has an object or a null in {name}; properties are text, numbers, true and false, or lists of these"
            if isinstance(item, float) and not math.isfinite(item):
                return f"has a number as {name} that is too large"
            if isinstance(item, str) and _is_broken(item):
                return f"has an invalid character in {name}"
    return _wrong_lists(properties)


def _wrong_lists(properties: Mapping[str, Any]) -> str:
    for name, value in properties.items():
        if not isinstance(value, tuple):
            continue
        if len(value) > MAX_ITEMS:
            return f"has {len(value):,} items in {name}; at most {MAX_ITEMS:,} are taken"
        if any(isinstance(item, str) and (BETWEEN in item or not item) for item in value):
            return f"has an empty text or a control character in {name}"
    return ""


def _is_broken(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # half of a surrogate pair
        return True
    return "\0" in text


# ── rows ──────────────────────────────────────────────────────────────────────────────────────────


def _node(
    kind: str, number: int, node_id: Any, label: Any, name: Any, properties: Mapping[str, Value]
) -> Row:
    wrong = (
        _wrong_text("node_id", node_id, MAX_ID)
        or _wrong_word("label", label)
        or _wrong_text("name", name, MAX_NAME)
        or _too_long(properties)
    )
    return Problem(f"{kind} {number}", wrong) if wrong else Node(number, node_id, label, name, properties)


def _edge(kind: str, number: int, start: Any, type_: Any, end: Any, properties: Mapping[str, Value]) -> Row:
    wrong = (
        _wrong_text("from", start, MAX_ID)
        or _wrong_word("type", type_)
        or _wrong_text("to", end, MAX_ID)
        or _too_long(properties)
    )
    return Problem(f"{kind} {number}", wrong) if wrong else EdgeRow(number, start, type_, end, properties)


def _wrong_text(column: str, value: Any, most: int) -> str:
    if not isinstance(value, str):
        return f"{column} is not text"
    if not value:
        return f"{column} is empty"
    if len(value) > most:
        return f"{column} has {len(value):,} characters; at most {most} are taken"
    if _CONTROL.search(value) or (not value.isascii() and _is_broken(value)):
        return f"{column} has a control character"
    return ""


def _wrong_word(column: str, value: Any) -> str:
    wrong = _wrong_text(column, value, MAX_ID)
    if not wrong and not is_word(value):
        wrong = f"{column} is {_shown(value)}; it must be {WORD_RULE}"
    return wrong


def _too_long(properties: Mapping[str, Value]) -> str:
    for name, value in properties.items():
        size = len(value) if isinstance(value, str) else 0
        if isinstance(value, tuple):
            size = sum(len(item) for item in value if isinstance(item, str))
        if size > MAX_TEXT:
            return f"{name} has {size:,} characters; at most {MAX_TEXT:,} are taken"
    return ""


def _shown(text: str) -> str:
    """The beginning of an untrusted word, enough to recognise it."""
    line = _CONTROL.sub("?", text.encode(errors="replace").decode())
    return f"'{line[:_SHOWN]}…'" if len(line) > _SHOWN else f"'{line}'"
