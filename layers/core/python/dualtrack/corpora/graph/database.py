"""Builds the database file from consistent files: a bulk load for each label and each pair of labels.

All statements are ours; names in them follow `rows.WORD_RULE` and are quoted. Values are passed in files that are
written here.
"""

from __future__ import annotations

import csv
from contextlib import ExitStack, closing
from typing import TYPE_CHECKING, Final

import ladybug

from dualtrack.corpora.graph.rows import BETWEEN, EdgeRow, Node
from dualtrack.tools.graph.schema import NAME, NODE_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path
    from typing import Any

    from dualtrack.corpora.graph.rows import Row, Value
    from dualtrack.tools.graph.schema import Property, PropertyType, StoredSchema

_POOL_BYTES: Final = 1 << 30
_MOST_BYTES: Final = 1 << 34
"""Maximum address space; without a limit the engine maps 8 TB."""

_TEXTS: Final = "STRING[]"

_CSV: Final = "HEADER=false, PARALLEL=false, DELIM=',', QUOTE='\"', ESCAPE='\"'"
"""Not in parallel, because a text may have several lines."""


def write_tables(
    folder: Path, schema: StoredSchema, rows: Iterable[Row], label_of: Callable[[str], str]
) -> None:
    """Write a CSV file for each label and each pair of labels, with the schema's columns. All rows must be valid."""
    labels = {label.name: (at, label.properties) for at, label in enumerate(schema.labels)}
    types = {kind.name: (at, kind.properties, kind.ends) for at, kind in enumerate(schema.types)}
    with ExitStack() as stack:

        def writer(name: str) -> Any:
            return csv.writer(stack.enter_context((folder / name).open("w", encoding="utf-8", newline="")))

        nodes = {name: (writer(f"n{at}.csv").writerow, columns) for name, (at, columns) in labels.items()}
        edges = {
            (name, *pair): (writer(f"e{at}-{number}.csv").writerow, columns)
            for name, (at, columns, ends) in types.items()
            for number, pair in enumerate(ends)
        }
        for row in rows:
            if isinstance(row, Node):
                write, columns = nodes[row.label]
                write((row.node_id, row.name, *_values(row.properties, columns)))
            elif isinstance(row, EdgeRow):
                write, columns = edges[row.type, label_of(row.start), label_of(row.end)]
                write((row.start, row.end, *_values(row.properties, columns)))


def _values(properties: Mapping[str, Value], columns: Sequence[Property]) -> list[str]:
    return [
        _text(properties[column.name], column.type) if column.name in properties else "" for column in columns
    ]


def _text(value: Value, type_: PropertyType) -> str:
    if isinstance(value, tuple):
        items = [_text(item, type_) for item in value]
        return BETWEEN.join(items) if type_ == _TEXTS else f"[{','.join(items)}]"
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else repr(value)


def build(path: Path, folder: Path, schema: StoredSchema) -> None:
    """Build the database at ``path`` from the files of `write_tables`; the result is a single file."""
    with (
        closing(
            ladybug.Database(str(path), buffer_pool_size=_POOL_BYTES, max_db_size=_MOST_BYTES)
        ) as database,
        closing(ladybug.Connection(database)) as connection,
    ):
        for statement in _statements(folder, schema):
            connection.execute(statement)
        connection.execute("CHECKPOINT")


def _statements(folder: Path, schema: StoredSchema) -> Iterable[str]:
    for at, label in enumerate(schema.labels):
        columns = [f"{NODE_ID} STRING PRIMARY KEY", f"{NAME} STRING", *_columns(label.properties)]
        yield f"CREATE NODE TABLE `{label.name}`({', '.join(columns)})"
        rows = _rows((NODE_ID, NAME), label.properties, folder / f"n{at}.csv")
        yield f"COPY `{label.name}` FROM {rows}{'' if rows.startswith('(') else f' ({_CSV})'}"
    for at, kind in enumerate(schema.types):
        columns = [*(f"FROM `{start}` TO `{end}`" for start, end in kind.ends), *_columns(kind.properties)]
        yield f"CREATE REL TABLE `{kind.name}`({', '.join(columns)})"
        for number, (start, end) in enumerate(kind.ends):
            rows = _rows(("from", "to"), kind.properties, folder / f"e{at}-{number}.csv")
            options = f"from='{start}', to='{end}'"
            yield f"COPY `{kind.name}` FROM {rows} ({options if rows.startswith('(') else f'{_CSV}, {options}'})"


def _rows(first: tuple[str, str], properties: Sequence[Property], path: Path) -> str:
    """A table's rows: its file or, where some have lists of texts, for which the engine's CSV has no quotes, a query
    over it that makes them."""
    if all(column.type != _TEXTS for column in properties):
        return f"'{_quoted(path)}'"
    plain = [
        f"c{at} {'STRING' if column.type == _TEXTS else column.type}" for at, column in enumerate(properties)
    ]
    made = [
        f"string_split(c{at}, '{BETWEEN}')" if column.type == _TEXTS else f"c{at}"
        for at, column in enumerate(properties)
    ]
    heads = ", ".join([*(f"`{name}` STRING" for name in first), *plain])
    returned = ", ".join([*(f"`{name}`" for name in first), *made])
    return f"(LOAD WITH HEADERS ({heads}) FROM '{_quoted(path)}' ({_CSV}) RETURN {returned})"


def _columns(properties: Sequence[Property]) -> list[str]:
    return [f"`{column.name}` {column.type}" for column in properties]


def _quoted(path: Path) -> str:
    return str(path).replace("\\", "\\\\").replace("'", "\\'")
