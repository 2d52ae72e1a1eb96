"""Where in a TOML text a key stands: the parser gives a line for a syntax error alone."""

from __future__ import annotations

import re
import tomllib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

Path = tuple[str | int, ...]

_PIECE: Final = re.compile(
    r'"""(?:[^\\"]|\\.|"{1,2}(?!"))*"{3,5}'  # up to two quotation marks may stand before the last three
    r"|'''(?:[^']|'{1,2}(?!'))*'{3,5}"
    r'|"(?:[^"\\\n]|\\.)*"'
    r"|'[^'\n]*'"
    r"|#[^\n]*"
    r"|[\[\]{}\n]"
    r"|[^\"'#\[\]{}\n]+",
    re.DOTALL,
)
_KEY: Final = re.compile(r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^"'=\n])+(?==)""")
_HEADER: Final = re.compile(r"""(\[{1,2})((?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*'|[^"'\]\n])+)\]""")

_AT_LINE: Final = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)")

_DEEPEST: Final = 20


def lines_of(text: str) -> Mapping[Path, int]:
    """The line, from 1, at which each table begins and each value that is not within another value.

    ``text`` is valid TOML. A table of an array has its index in its path.
    """
    found: dict[Path, int] = {}
    counts: dict[Path, int] = {}
    table: Path = ()
    for line, statement in _statements(text):
        if header := _HEADER.match(statement):
            table = _absolute(_keys(header[2] + "=0"), counts)
            if header[1] == "[[":
                counts[table] = counts.get(table, 0) + 1
                found.setdefault(table, line)
                table = (*table, counts[table] - 1)
            found.setdefault(table, line)
        elif key := _KEY.match(statement):
            path = table
            for part in _keys(key[0] + "=0")[:_DEEPEST]:
                path = (*path, part)
                found.setdefault(path, line)
    return found


def line_of(lines: Mapping[Path, int], path: Sequence[str | int]) -> int:
    """The line of the value, or of the nearest one around it."""
    for length in range(len(path), 0, -1):
        if line := lines.get(tuple(path[:length])):
            return line
    return 1


def no_toml(text: str, error: tomllib.TOMLDecodeError) -> str:
    """The line at which a text stops being TOML, and why."""
    at = _AT_LINE.fullmatch(str(error))
    said, line = at.groups() if at else (str(error), None)
    return f"{line or text.count(chr(10)) + 1}: this is no TOML: {said}"


def _statements(text: str) -> Iterator[tuple[int, str]]:
    """Each header or assignment, with its first line."""
    line, first, depth, parts = 1, 1, 0, [""]
    for piece in _PIECE.findall(text):
        if piece == "\n" and depth == 0:
            yield first, "".join(parts).strip()
            parts, first = [""], line + 1
        elif not piece.startswith("#"):
            parts.append(piece)
            depth += (piece in "[{") - (piece in "]}")
        line += piece.count("\n")
    yield first, "".join(parts).strip()


def _keys(assignment: str) -> list[str]:
    keys: list[str] = []
    value: Any = tomllib.loads(assignment)
    while isinstance(value, dict):
        ((key, value),) = value.items()
        keys.append(key)
    return keys


def _absolute(keys: list[str], counts: Mapping[Path, int]) -> Path:
    """The path of a header: what is below an array's table is below its last one."""
    path: Path = ()
    for place, key in enumerate(keys, 1):
        path = (*path, key)
        if path in counts and place < len(keys):
            path = (*path, counts[path] - 1)
    return path
