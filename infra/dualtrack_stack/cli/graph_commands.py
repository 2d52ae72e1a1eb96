"""``dualtrack graph load | schema``: the graph of a stack, local or deployed."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from dualtrack_stack.cli.command import Exit, exit_codes, json_option, print_json, report, stack_options
from dualtrack_stack.cli.corpora import (
    FILE_BYTES,
    as_admin,
    check_number,
    corpus_path,
    files_argument,
    files_in,
    has_failed,
    print_refused,
    refusal,
    refused_files,
    taken_in,
)
from dualtrack_stack.cli.csv_parts import CsvPart, RowTooLong, other_parts, parts_of
from dualtrack_stack.cli.target import TargetOptions, open_target
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dualtrack import answers

_CORPUS: Final = "graph"
_ENDINGS: Final = (".csv", ".json")


@click.group("graph")
def graph_commands() -> None:
    """The graph that the profile `graph` queries. On a local stack no token is needed; on a deployed one use
    the token of a member of the group admin.
    """


@graph_commands.command()
@files_argument
@click.option("--reset", is_flag=True, help="Remove every file that is not among these.")
@stack_options
@json_option
def load(stack: TargetOptions, paths: tuple[Path, ...], *, reset: bool, as_json: bool) -> None:
    """Load files, or the files of folders: nodes and relationships as CSV or JSON.

    CSV of nodes begins `node_id,label,name`, CSV of relationships `from,type,to`; further columns are properties.
    A CSV file of over 20 MB is loaded in parts; JSON has at most 20 MB. A file replaces an earlier one of the
    same name, the others stay. All or nothing: with one bad row in one file nothing is loaded, and the previous graph
    stays in use.

    \b
    Exit codes: 0 loaded, 2 usage, 4 something was refused, the job failed,
    or the token is no administrator's, 5 cannot reach the stack.
    """
    files = files_in(paths, _ENDINGS, "CSV, JSON")
    with tempfile.TemporaryDirectory(prefix="dualtrack-") as scratch:
        parts, refused = _parts(files, Path(scratch))
        if refused:  # all or nothing
            _end_refused(refused, as_json=as_json)
        with exit_codes(), open_target(stack, report) as target, as_admin(target) as client:
            titles = [document["title"] for document in client.call("GET", corpus_path(_CORPUS))["documents"]]
            if stale := other_parts(titles, parts) if not reset else []:
                _end_refused([_left_over(stale)], as_json=as_json)
            job = taken_in(client, _CORPUS, [part.path for part in parts], reset=reset)
            schema = _schema(client.call("GET", corpus_path(_CORPUS)))
    _print_bad(job, parts)
    if job["status"] == "failed":
        click.echo(f"Error: {one_line(job.get('error', 'The job failed.'), 600)}", err=True)
    if as_json:
        print_json({"job": job, "refused": [], "schema": schema})
    elif not has_failed(job):
        _print_schema(schema)
    sys.exit(Exit.FAILED if has_failed(job) else Exit.ANSWERED)


def _parts(files: Sequence[Path], scratch: Path) -> tuple[list[CsvPart], list[dict[str, str]]]:
    """The files to upload, and the refused ones."""
    parts: list[CsvPart] = []
    refused: list[dict[str, str]] = []
    for number, path in enumerate(files):
        reason = refusal(path)
        if not reason:
            parts.append(CsvPart(path, path.name))
        elif path.suffix.lower() == ".csv" and path.stat().st_size > FILE_BYTES:
            folder = scratch / str(number)
            folder.mkdir()
            try:
                parts += parts_of(path, folder, FILE_BYTES)
            except RowTooLong:
                reason = "has a row of over 20 MB, or a quote that is never closed"
                refused.append({"name": path.name, "reason": reason})
        else:
            refused.append({"name": path.name, "reason": reason})
    check_number(parts)
    return parts, refused


def _left_over(stale: Sequence[str]) -> dict[str, str]:
    more = f" (and {len(stale) - 1} more)" if len(stale) > 1 else ""
    return {
        "name": stale[0],
        "reason": f"was loaded before as another part of the same file{more}: use --reset, or delete it first",
    }


def _end_refused(refused: Sequence[Mapping[str, str]], *, as_json: bool) -> NoReturn:
    for file in refused:
        print_refused(file["name"], file["reason"])
    if as_json:
        print_json({"job": None, "refused": refused, "schema": None})
    sys.exit(Exit.FAILED)


def _print_bad(job: answers.CorpusJob, parts: Sequence[CsvPart]) -> None:
    """The refused files; rows of a part with their lines in the whole file."""
    for bad in refused_files(job):
        part = next(candidate for candidate in parts if candidate.path.name == bad["name"])
        problems = [part.told(problem) for problem in bad.get("problems", ())]
        print_refused(part.source, bad["reason"], problems)


@graph_commands.command("schema")
@stack_options
@json_option
def show_schema(stack: TargetOptions, *, as_json: bool) -> None:
    """Show the loaded labels, types and properties, with counts."""
    with exit_codes(), open_target(stack, report) as target, as_admin(target) as client:
        schema = _schema(client.call("GET", corpus_path(_CORPUS)))
    if as_json:
        print_json(schema)
    else:
        _print_schema(schema)


def _schema(corpus: answers.Corpus) -> answers.GraphSchema:
    """The schema of a corpus; an empty one before the first load."""
    return corpus.get("schema") or {"labels": [], "types": []}


def _print_schema(schema: answers.GraphSchema) -> None:
    labels, types = schema["labels"], schema["types"]
    if not labels:
        click.echo("No graph is loaded; `dualtrack graph load PATH…` loads one.")
        return
    width = max(len(entry["name"]) for entry in (*labels, *types))
    for entry in labels:
        click.echo(
            f"{entry['name']:<{width}}  {entry['count']:>9,}  {_properties(entry['properties'])}".rstrip()
        )
    click.echo()
    for entry in types:
        ends = ", ".join(f"{start} → {end}" for start, end in entry["ends"])
        click.echo(
            f"{entry['name']:<{width}}  {entry['count']:>9,}  {ends}  {_properties(entry['properties'])}".rstrip()
        )
    nodes, edges = (sum(entry["count"] for entry in some) for some in (labels, types))
    click.echo(
        f"Nodes: {nodes:,} of {_many(len(labels), 'label')}. Relationships: {edges:,} of {_many(len(types), 'type')}."
    )


def _properties(listed: Sequence[answers.GraphProperty]) -> str:
    shown = ", ".join(f"{listed_property['name']} {listed_property['type']}" for listed_property in listed)
    return f"({shown})" if shown else ""


def _many(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
