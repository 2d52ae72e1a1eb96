"""``dualtrack graph``: uploads, output and exit codes."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from dualtrack.corpora.graph.rows import rows_of
from dualtrack_stack.cli import graph_commands
from dualtrack_stack.cli.csv_parts import CsvPart, RowTooLong, other_parts, parts_of
from dualtrack_stack.cli.main import main
from hypothesis import given
from hypothesis import strategies as st

from tests.servers.corpus_server import TOKEN, Published, corpus_server

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

SCHEMA = {
    "labels": [
        {"name": "Asset", "count": 1_200, "properties": [{"name": "size", "type": "INT64"}]},
        {"name": "Location", "count": 1, "properties": []},
    ],
    "types": [
        {"name": "LOCATED_IN", "count": 1_300, "ends": [["Asset", "Location"]], "properties": []},
    ],
}
NODES = "node_id,label,name\na1,Asset,Pump\n"
EDGES = "from,type,to\na1,LOCATED_IN,l1\n"


def run(published: Published, *arguments: str, token: str = TOKEN) -> Result:
    with corpus_server(published) as url:
        return CliRunner().invoke(main, ["graph", *arguments, "--url", url, "--token", token])


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Published:
    """Uploads of at most 60 bytes."""
    monkeypatch.setattr("dualtrack_stack.cli.corpora.FILE_BYTES", 60)
    monkeypatch.setattr(graph_commands, "FILE_BYTES", 60)
    return Published(most=60, schema=SCHEMA)


def file(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def rows(number: int, prefix: str = "a") -> str:
    return "".join(f"{prefix}{at},Asset,Pump {at}\n" for at in range(number))


class TestLoad:
    def test_files_are_uploaded_and_the_schema_is_shown(self, tmp_path: Path) -> None:
        published = Published(schema=SCHEMA)
        result = run(
            published, "load", file(tmp_path, "nodes.csv", NODES), file(tmp_path, "edges.csv", EDGES)
        )
        assert result.exit_code == 0, result.output
        assert published.files == {"nodes.csv": NODES.encode(), "edges.csv": EDGES.encode()}
        assert result.stdout.splitlines() == [
            "Asset           1,200  (size INT64)",
            "Location            1",
            "",
            "LOCATED_IN      1,300  Asset → Location",
            "Nodes: 1,201 of 2 labels. Relationships: 1,300 of 1 type.",
        ]
        assert "nodes.csv: added (1 nodes)" in result.stderr

    def test_a_folder_means_its_csv_and_json_files(self, tmp_path: Path) -> None:
        file(tmp_path, "b.csv", EDGES)
        file(tmp_path, "a.json", '{"nodes": [{"node_id": 1, "label": "Asset", "name": "Pump"}]}')
        file(tmp_path, "notes.txt", "no graph")
        published = Published(schema=SCHEMA)
        assert run(published, "load", str(tmp_path)).exit_code == 0
        assert list(published.files) == ["a.json", "b.csv"]

    def test_reset_keeps_only_these_files(self, tmp_path: Path) -> None:
        published = Published(schema=SCHEMA, files={"old.csv": b""})
        assert run(published, "load", file(tmp_path, "nodes.csv", NODES)).exit_code == 0
        assert list(published.files) == ["old.csv", "nodes.csv"]
        assert run(published, "load", file(tmp_path, "nodes.csv", NODES), "--reset").exit_code == 0
        assert list(published.files) == ["nodes.csv"]

    def test_bad_rows_are_shown_and_nothing_is_loaded(self, tmp_path: Path) -> None:
        published = Published(schema=SCHEMA)
        bad = file(tmp_path, "nodes.csv", "node_id,label,name\na1,Asset,\n")
        result = run(published, "load", bad)
        assert (result.exit_code, published.files, result.stdout) == (4, {}, "")
        assert "Refused: nodes.csv has 1 bad rows." in result.stderr
        assert "line 2: name is empty" in result.stderr
        assert "Error: Nothing was loaded." in result.stderr

    def test_an_empty_file_stops_the_load(self, tmp_path: Path) -> None:
        published = Published()
        given_files = (file(tmp_path, "nodes.csv", NODES), file(tmp_path, "edges.csv", ""))
        result = run(published, "load", *given_files, "--json")
        assert (result.exit_code, published.jobs) == (4, [])
        refused = [{"name": "edges.csv", "reason": "is empty"}]
        assert json.loads(result.stdout) == {"job": None, "refused": refused, "schema": None}

    def test_json_has_the_job_and_the_schema(self, tmp_path: Path) -> None:
        result = run(Published(schema=SCHEMA), "load", file(tmp_path, "nodes.csv", NODES), "--json")
        printed = json.loads(result.stdout)
        assert (printed["job"]["status"], printed["refused"], printed["schema"]) == ("done", [], SCHEMA)

    def test_a_user_who_is_no_administrator_is_refused(self, tmp_path: Path) -> None:
        result = run(Published(), "load", file(tmp_path, "nodes.csv", NODES), token="of-somebody-else")
        assert result.exit_code == 4
        assert "Only for the group admin (forbidden)" in result.stderr

    def test_a_folder_without_such_files_is_wrong_usage(self, tmp_path: Path) -> None:
        assert run(Published(), "load", str(tmp_path)).exit_code == 2


class TestParts:
    def test_a_large_csv_is_loaded_in_parts(self, tmp_path: Path, small: Published) -> None:
        text = "node_id,label,name\n" + rows(5)
        result = run(small, "load", file(tmp_path, "nodes.csv", text))
        assert result.exit_code == 0, result.output
        assert list(small.files) == ["nodes.part1.csv", "nodes.part2.csv", "nodes.part3.csv"]
        assert read(list(small.files.values())) == list(csv.reader(text.splitlines()))[1:]

    def test_a_large_json_is_refused(self, tmp_path: Path, small: Published) -> None:
        result = run(small, "load", file(tmp_path, "nodes.json", '{"nodes": []}' + " " * 60))
        assert result.exit_code == 4
        assert "Refused: nodes.json has" in result.stderr

    def test_a_bad_row_is_named_with_its_line_in_the_whole_file(
        self, tmp_path: Path, small: Published
    ) -> None:
        text = "node_id,label,name\n" + rows(4) + "a9,Asset,\n"
        result = run(small, "load", file(tmp_path, "nodes.csv", text))
        assert result.exit_code == 4
        assert "Refused: nodes.csv has 1 bad rows." in result.stderr
        assert "line 6: name is empty" in result.stderr

    def test_a_quote_that_is_never_closed_is_refused(self, tmp_path: Path, small: Published) -> None:
        text = 'node_id,label,name\na1,Asset,"Pump\n' + rows(5)
        result = run(small, "load", file(tmp_path, "nodes.csv", text))
        assert (result.exit_code, small.jobs) == (4, [])
        assert "a quote that is never closed" in result.stderr

    def test_parts_loaded_before_are_replaced(self, tmp_path: Path, small: Published) -> None:
        """Otherwise the relationships of the former parts would be duplicated."""
        assert (
            run(small, "load", file(tmp_path, "nodes.csv", "node_id,label,name\n" + rows(5))).exit_code == 0
        )
        fewer = file(tmp_path, "nodes.csv", "node_id,label,name\n" + rows(3))
        result = run(small, "load", fewer)
        assert (result.exit_code, len(small.jobs)) == (4, 1)
        assert "Refused: nodes.part3.csv was loaded before as another part" in result.stderr
        assert run(small, "load", fewer, "--reset").exit_code == 0
        assert list(small.files) == ["nodes.part1.csv", "nodes.part2.csv"]


@pytest.mark.parametrize(
    ("title", "source", "is_other"),
    [
        ("e.part3.csv", "e.csv", True),
        ("e.part1.csv", "e.csv", False),  # replaced
        ("e.csv", "e.csv", True),  # whole before
        ("f.part3.csv", "e.csv", False),
        ("e.part3.json", "e.csv", False),
    ],
)
def test_a_former_part_is_recognised(tmp_path: Path, title: str, source: str, is_other: bool) -> None:
    assert bool(other_parts([title], [CsvPart(tmp_path / "e.part1.csv", source)])) is is_other


def test_a_whole_file_replaces_itself(tmp_path: Path) -> None:
    assert other_parts(["e.csv"], [CsvPart(tmp_path / "e.csv", "e.csv")]) == []
    assert other_parts(["e.part1.csv"], [CsvPart(tmp_path / "e.csv", "e.csv")]) == ["e.part1.csv"]


def read(parts: Sequence[bytes]) -> list[list[str]]:
    """All rows but the headers."""
    return [row for part in parts for row in list(csv.reader(part.decode("utf-8-sig").splitlines(True)))[1:]]


FIELD = st.text(st.sampled_from('ab,"\n é'), min_size=1, max_size=8)


@given(st.lists(st.tuples(FIELD, FIELD), min_size=1, max_size=30), st.integers(60, 200), st.booleans())
def test_parts_have_all_rows_once_in_order_and_with_their_line_numbers(
    tmp_path_factory: pytest.TempPathFactory, given_rows: list[tuple[str, str]], most: int, mark: bool
) -> None:
    folder = tmp_path_factory.mktemp("parts")
    path = folder / "rows.csv"
    with path.open("w", encoding="utf-8-sig" if mark else "utf-8", newline="") as out:
        csv.writer(out, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows([("one", "two"), *given_rows])
    parts = parts_of(path, folder, most)
    data = [part.path.read_bytes() for part in parts]
    assert max(map(len, data)) <= most
    assert read(data) == [list(row) for row in given_rows]
    whole = path.read_bytes().split(b"\n")
    for part, piece in zip(parts, data, strict=True):
        assert whole[1 + part.skipped] == piece.split(b"\n")[1]
        assert part.told("line 2: is bad") == f"line {2 + part.skipped}: is bad"


def test_a_row_too_long_for_a_part(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("one,two\n" + "a" * 30 + ",b\n")
    with pytest.raises(RowTooLong):
        parts_of(path, tmp_path, 35)


def test_the_loader_accepts_every_part(tmp_path: Path) -> None:
    """Each part has the header, with or without a UTF-8 byte order mark."""
    path = tmp_path / "nodes.csv"
    path.write_text("node_id,label,name\n" + rows(9), encoding="utf-8-sig")
    taken: list[Any] = []
    for part in parts_of(path, tmp_path, 60):
        taken += rows_of(part.path.name, part.path.read_bytes())
    assert [node.node_id for node in taken] == [f"a{at}" for at in range(9)]


def test_the_schema_alone(tmp_path: Path) -> None:
    assert "No graph is loaded" in run(Published(), "schema").stdout
    assert json.loads(run(Published(schema=SCHEMA), "schema", "--json").stdout) == SCHEMA
    assert "1,201 of 2 labels" in run(Published(schema=SCHEMA), "schema").stdout
