"""``dualtrack courses ingest | list | delete``: the course materials of a stack, local or deployed."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click
from dualtrack.text import folded_name

from dualtrack_stack.cli.client import RequestRefused
from dualtrack_stack.cli.command import Exit, exit_codes, json_option, print_json, report, stack_options
from dualtrack_stack.cli.corpora import (
    as_admin,
    corpus_path,
    counted,
    ended,
    fail_with,
    files_argument,
    files_in,
    has_failed,
    print_refused,
    refusal,
    refused_files,
    taken_in,
)
from dualtrack_stack.cli.target import TargetOptions, open_target
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from dualtrack import answers

_CORPUS: Final = "courses"
_ENDINGS: Final = (".txt", ".md", ".markdown", ".pdf", ".docx")


@click.group("courses")
def course_commands() -> None:
    """The course materials that the profile `courses` searches.

    On a local stack no token is needed; on a deployed one use the token of a member of the group admin.
    """


@course_commands.command()
@files_argument
@click.option("--reset", is_flag=True, help="Remove every course that is not among the files.")
@stack_options
@json_option
def ingest(stack: TargetOptions, paths: tuple[Path, ...], *, reset: bool, as_json: bool) -> None:
    """Load files, or the files of folders: text, Markdown, PDF, DOCX, at most 20 MB each. A course is
    identified by its title: unchanged content is skipped, changed content replaces the whole course. The old
    version is searched until the new one is complete.

    \b
    Exit codes: 0 all were loaded, 2 usage, 4 some were refused, the job
    failed, or the token is no administrator's, 5 cannot reach the stack.
    """
    files = files_in(paths, _ENDINGS, "text, Markdown, PDF, DOCX")
    refused = [(path.name, reason) for path in files if (reason := refusal(path))]
    good = [path for path in files if not refusal(path)]
    with exit_codes(), open_target(stack, report) as target, as_admin(target) as client:
        job = taken_in(client, _CORPUS, good, reset=reset) if good else None
    if as_json:
        print_json({"job": job, "refused": [{"name": name, "reason": reason} for name, reason in refused]})
    else:
        _print_summary(job, refused)
    sys.exit(Exit.FAILED if has_failed(job) or refused else Exit.ANSWERED)


@course_commands.command("list")
@stack_options
@json_option
def list_(stack: TargetOptions, *, as_json: bool) -> None:
    """List the courses with their lessons and chunks, version and model."""
    with exit_codes(), open_target(stack, report) as target, as_admin(target) as client:
        corpus: answers.Corpus = client.call("GET", corpus_path(_CORPUS))
    if as_json:
        print_json(corpus)
        return
    for document in corpus["documents"]:
        click.echo(
            f"{one_line(document['title'], 100)}  ({counted(document['counts'])}; {one_line(document['name'], 100)})"
        )
    ranked = corpus["model"] or "none (keywords only)"
    total = counted({key: n for key, n in corpus["counts"].items() if key != "documents"})
    click.echo(f"Courses: {len(corpus['documents'])}{f', {total}' if total else ''}. Embeddings: {ranked}.")


@course_commands.command()
@click.argument("title")
@stack_options
def delete(stack: TargetOptions, title: str) -> None:
    """Remove the course with this TITLE. Case and blanks need not be given exactly, as long as one course alone is
    meant.
    """
    with exit_codes(), open_target(stack, report) as target, as_admin(target) as client:
        documents: Sequence[answers.CorpusDocument] = client.call("GET", corpus_path(_CORPUS))["documents"]
        document = _of_title(documents, title)
        path = f"{corpus_path(_CORPUS)}/documents/{document['document_id']}"
        fail_with(ended(client, client.call("DELETE", path)))
        click.echo(f"{one_line(document['title'], 300)} is no longer searched.")


def _of_title(documents: Sequence[answers.CorpusDocument], title: str) -> answers.CorpusDocument:
    """The one document with this title: exactly, else but for case, blanks and normal form."""
    for form in (str, folded_name):
        named = [document for document in documents if form(document["title"]) == form(title)]
        if len(named) == 1:
            return named[0]
        if named:
            several = "; ".join(f"'{one_line(document['title'], 100)}'" for document in named)
            raise RequestRefused(
                404, "not_found", f"Several courses are called so: {several}. Name one exactly", {}
            )
    raise RequestRefused(
        404, "not_found", f"There is no course '{title}'; `dualtrack courses list` shows them", {}
    )


def _print_summary(job: answers.CorpusJob | None, refused: Sequence[tuple[str, str]]) -> None:
    files = job["files"] if job else ()
    taken = [file for file in files if file.get("outcome") in ("added", "replaced")]
    skipped = sum(file.get("outcome") == "skipped" for file in files)
    bad = [(file["name"], file["reason"]) for file in refused_files(job)] + list(refused)
    totals = {name: sum(file["counts"][name] for file in taken) for name in ("lessons", "chunks")}
    for name, reason in bad:
        print_refused(name, reason)
    if job and job["status"] == "failed":
        click.echo(f"Error: {job.get('error', 'The job failed.')}", err=True)
        return
    click.echo(f"Courses: {len(taken)}, {counted(totals)}. Skipped: {skipped}. Refused: {len(bad)}.")
