"""``dualtrack courses`` against the API itself: output, refusals and exit codes."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result
from dualtrack_stack.cli import corpora
from dualtrack_stack.cli.main import main

from tests.clients.api_client import make_api
from tests.drivers.corpus_world import course, long_course
from tests.servers.corpora_server import serve_corpora

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.clients.api_client import Api
    from tests.servers.corpora_server import CorporaServer

A = course("Sailing", "The wind fills the sail.", "A knot holds the rope.")
B = course("Baking", "Flour and water become dough.")


@pytest.fixture(scope="module")
def api() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api


@pytest.fixture
def stack(api: Api, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[tuple[str, CorporaServer]]:
    monkeypatch.delenv("DUALTRACK_TOKEN", raising=False)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setattr(corpora, "_POLL_SECONDS", 0)
    monkeypatch.chdir(tmp_path)
    with serve_corpora(api) as served:
        run(served[0], "ingest", str(_written(tmp_path / "before", {"b.txt": B})), "--reset")
        served[1].puts.clear()
        yield served


def run(url: str, command: str, *arguments: str) -> Result:
    return CliRunner().invoke(main, ["courses", command, "--url", url, *arguments])


def _written(folder: Path, files: dict[str, bytes]) -> Path:
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return folder


def titles(url: str) -> list[str]:
    listed: Any = json.loads(run(url, "list", "--json").stdout)
    return [document["title"] for document in listed["documents"]]


def test_files_of_folders_are_ingested_and_each_is_reported(
    stack: tuple[str, CorporaServer], tmp_path: Path
) -> None:
    url, server = stack
    files = {
        "a.txt": A,
        "deep/long.md": long_course("Long", 2_500),
        "b.txt": B,
        "notes.odt": b"not of a format",
    }
    result = run(url, "ingest", str(_written(tmp_path / "in", files)))
    assert result.exit_code == 0, result.output
    assert sorted(server.puts) == sorted(len(data) for name, data in files.items() if name != "notes.odt")
    lines = result.stderr.splitlines()
    assert lines[:3] == ["a.txt: uploading", "b.txt: uploading", "long.md: uploading"]
    assert "a.txt: read, 'Sailing' (2 lessons, 2 chunks)" in lines
    progress = [line for line in lines if line.startswith("embedded: ")]
    assert len(progress) == len(set(progress)) >= 2, "each line once"
    assert progress[-1] == f"embedded: {progress[-1].split()[3]} of {progress[-1].split()[3]} texts"
    outcomes = [line for line in lines if ": added, " in line or ": skipped, " in line]
    assert outcomes[:2] == [
        "a.txt: added, 'Sailing' (2 lessons, 2 chunks)",
        "b.txt: skipped, 'Baking' (1 lessons, 1 chunks)",
    ]
    assert outcomes[2].startswith("long.md: added, 'Long' (1 lessons, ")
    assert result.stdout.startswith("Courses: 2, 3 lessons, ")
    assert result.stdout.endswith(" chunks. Skipped: 1. Refused: 0.\n")
    assert titles(url) == ["Baking", "Sailing", "Long"]


def test_refused_files_are_named_and_the_others_are_ingested(
    stack: tuple[str, CorporaServer], tmp_path: Path
) -> None:
    url, server = stack
    large = tmp_path / "in" / "large.txt"
    _written(tmp_path / "in", {"a.txt": A, "latin.txt": "Käse".encode("latin-1"), "none.txt": b""})
    with large.open("wb") as file:
        file.truncate(50_000_000)
    result = run(url, "ingest", str(tmp_path / "in"), "--reset")
    assert result.exit_code == 4
    assert "latin.txt: refused, it is not UTF-8" in result.stderr
    assert [line for line in result.stderr.splitlines() if line.startswith("Refused: ")] == [
        "Refused: latin.txt is not UTF-8 (byte 2): save it in that encoding.",
        "Refused: large.txt has 50.0 MB; at most 20 MB are allowed.",
        "Refused: none.txt is empty.",
    ]
    assert result.stdout == "Courses: 1, 2 lessons, 2 chunks. Skipped: 0. Refused: 3.\n"
    assert sorted(server.puts) == [4, len(A)], "a file that would be refused is not uploaded"
    assert titles(url) == ["Sailing"]


def test_one_json_object_has_the_job_and_the_refused_files(
    stack: tuple[str, CorporaServer], tmp_path: Path
) -> None:
    folder = _written(tmp_path / "in", {"a.txt": A, "none.txt": b""})
    result = run(stack[0], "ingest", "--json", str(folder))
    printed = json.loads(result.stdout)
    assert (result.exit_code, printed["job"]["status"]) == (4, "done")
    assert printed["refused"] == [{"name": "none.txt", "reason": "is empty"}]
    assert [file["outcome"] for file in printed["job"]["files"]] == ["added"]


def test_a_job_that_fails_says_why(stack: tuple[str, CorporaServer], tmp_path: Path) -> None:
    url, server = stack
    server.broken = True
    result = run(url, "ingest", str(_written(tmp_path / "in", {"a.txt": A}) / "a.txt"))
    assert (result.exit_code, result.stdout) == (4, "")
    assert result.stderr.endswith("Error: Something went wrong on our side. Try again.\n")
    assert run(url, "delete", "baking").exit_code == 4
    server.broken = False
    assert titles(url) == ["Baking"]


def test_a_course_is_removed_by_its_title(stack: tuple[str, CorporaServer], tmp_path: Path) -> None:
    url, _ = stack
    unknown = run(url, "delete", "Boxing")
    assert unknown.exit_code == 2
    assert "There is no course 'Boxing'; `dualtrack courses list` shows them" in unknown.stderr
    result = run(url, "delete", " baking ")
    assert (result.exit_code, result.stdout) == (0, "Baking is no longer searched.\n")
    assert titles(url) == []
    assert run(url, "list").stdout == "Courses: 0. Embeddings: words.\n"


def test_a_list_shows_each_course_and_the_model(stack: tuple[str, CorporaServer]) -> None:
    assert run(stack[0], "list").stdout.splitlines() == [
        "Baking  (1 lessons, 1 chunks; b.txt)",
        "Courses: 1, 1 lessons, 1 chunks. Embeddings: words.",
    ]


@pytest.mark.parametrize("command", [["list"], ["delete", "Baking"], ["ingest", "."]])
def test_only_an_administrator(stack: tuple[str, CorporaServer], command: list[str], tmp_path: Path) -> None:
    url, server = stack
    _written(tmp_path, {"a.txt": A})
    result = run(url, *command, "--token", "somebody")
    assert result.exit_code == 4
    assert "(forbidden)" in result.stderr
    assert server.puts == []
    assert titles(url) == ["Baking"]


def test_an_upload_address_that_fails(stack: tuple[str, CorporaServer], tmp_path: Path) -> None:
    url, server = stack
    server.full = True
    result = run(url, "ingest", str(_written(tmp_path / "in", {"a.txt": A})))
    assert result.exit_code == 5
    assert "a.txt could not be uploaded: HTTP 403." in result.stderr
    assert titles(url) == ["Baking"]


def test_a_stack_that_cannot_be_reached(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{probe.getsockname()[1]}"
    result = run(url, "ingest", str(_written(tmp_path, {"a.txt": A})))
    assert result.exit_code == 5
    assert result.stderr.startswith("Error: ")


def test_wrong_usage(tmp_path: Path) -> None:
    nowhere = "http://127.0.0.1:1"
    assert run(nowhere, "ingest", str(tmp_path / "missing.txt")).exit_code == 2
    empty = run(nowhere, "ingest", str(tmp_path))
    assert (empty.exit_code, "no files of these formats" in empty.stderr) == (2, True)
    _written(tmp_path, {f"{n}.txt": A for n in range(201)})
    many = run(nowhere, "ingest", str(tmp_path))
    assert (many.exit_code, "201 files are too many: a job takes at most 200" in many.stderr) == (2, True)
