"""``dualtrack courses ingest | list | delete``: the course materials of a stack, local or deployed."""

from __future__ import annotations

import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click
import httpx

from dualtrack_cli.client import ApiClient, Refused, Unreachable, is_loopback
from dualtrack_cli.command import Exit, exit_codes, json_option, print_json, report, stack_options
from dualtrack_cli.target import Wanted, dev_token, open_target
from dualtrack_cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dualtrack_cli.target import Target

_CORPUS: Final = "/v1/admin/corpora/courses"
_OPERATOR: Final = "operator"
_ENDINGS: Final = (".txt", ".md", ".markdown", ".pdf", ".docx")
_FILE_BYTES: Final = 20_000_000
_JOB_FILES: Final = 200
_UPLOAD_TIMEOUT: Final = httpx.Timeout(120, connect=5)
_POLL_SECONDS: Final = 1.0


@click.group("courses")
def course_commands() -> None:
    """The course materials that the profile `courses` searches.

    On a local stack no token is needed; on a deployed one it belongs to somebody in the group admin.
    """


@course_commands.command()
@click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH…",
    type=click.Path(exists=True, path_type=Path),
)
@click.option("--reset", is_flag=True, help="Remove every course that is not among the files.")
@stack_options
@json_option
def ingest(stack: Wanted, paths: tuple[Path, ...], *, reset: bool, as_json: bool) -> None:
    """Take in files, or the files of folders: text, Markdown, PDF, DOCX, at most 20 MB each.

    A course is known by its title: the same content is skipped, other content replaces it whole. What was there is
    searched until everything is in.

    \b
    Exit codes: 0 all are in, 2 usage, 4 no administrator, some files were refused, or the job failed,
    5 cannot reach the stack.
    """
    files = _files(paths)
    refused = [(path.name, reason) for path in files if (reason := _refusal(path))]
    good = [path for path in files if not _refusal(path)]
    if not files:
        raise click.UsageError("There are no files of these formats: text, Markdown, PDF, DOCX.")
    if len(files) > _JOB_FILES:
        raise click.UsageError(f"These are {len(files)} files; one job takes {_JOB_FILES}.")
    with exit_codes(), open_target(stack, report) as target, _as_admin(target) as client:
        job = _ingested(client, good, reset=reset) if good else None
    if as_json:
        print_json({"job": job, "refused": [{"name": name, "reason": reason} for name, reason in refused]})
    else:
        _print_summary(job, refused)
    failed = job is not None and (
        job["status"] == "failed" or any(one["state"] == "refused" for one in job["files"])
    )
    sys.exit(Exit.FAILED if failed or refused else Exit.ANSWERED)


@course_commands.command("list")
@stack_options
@json_option
def list_(stack: Wanted, *, as_json: bool) -> None:
    """What is there: courses with their lessons and chunks, version and model."""
    with exit_codes(), open_target(stack, report) as target, _as_admin(target) as client:
        corpus = client.call("GET", _CORPUS)
    if as_json:
        print_json(corpus)
        return
    for one in corpus["documents"]:
        click.echo(
            f"{one_line(one['title'], 100)}  ({_counted(one['counts'])}; {one_line(one['name'], 100)})"
        )
    ranked = corpus["model"] or "none: keywords alone"
    total = _counted({key: n for key, n in corpus["counts"].items() if key != "documents"})
    click.echo(f"Courses: {len(corpus['documents'])}{f', {total}' if total else ''}. Embeddings: {ranked}.")


@course_commands.command()
@click.argument("title")
@stack_options
def delete(stack: Wanted, title: str) -> None:
    """Remove the course of this TITLE."""
    with exit_codes(), open_target(stack, report) as target, _as_admin(target) as client:
        documents = client.call("GET", _CORPUS)["documents"]
        found = [one for one in documents if one["title"].casefold() == title.strip().casefold()]
        if not found:
            raise Refused(
                404, "not_found", f"There is no course '{title}'; `dualtrack courses list` shows them", {}
            )
        for one in found:
            job = _ended(client, client.call("DELETE", f"{_CORPUS}/documents/{one['document_id']}"), {})
            _fail_with(job)
            click.echo(f"{one['title']} is no longer searched.")


def _files(paths: Sequence[Path]) -> list[Path]:
    """The files, those of folders in the order of their names."""
    found: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else ()
        found += [one for one in inside if one.is_file() and one.suffix.lower() in _ENDINGS]
        found += [path] if path.is_file() else []
    return found


def _refusal(path: Path) -> str:
    """Why a file need not be uploaded at all; empty if there is no reason."""
    size = path.stat().st_size
    if not size:
        return "is empty"
    if size > _FILE_BYTES:
        return f"has {size / 1e6:.1f} MB; at most {_FILE_BYTES / 1e6:.0f} MB are taken"
    return ""


@contextmanager
def _as_admin(target: Target) -> Iterator[ApiClient]:
    token = dev_token(target.url, _OPERATOR, admin=True)[0] if target.dev else target.token
    with ApiClient(target.url, token) as client:
        yield client


def _ingested(client: ApiClient, files: Sequence[Path], *, reset: bool) -> Mapping[str, Any]:
    body = {"files": [{"name": path.name, "size": path.stat().st_size} for path in files]}
    uploads = client.call("POST", f"{_CORPUS}/uploads", body=body)["uploads"]
    for path, upload in zip(files, uploads, strict=True):
        report(f"{path.name}: uploading")
        _put(upload, path.read_bytes())
    listed = [{"upload_id": upload["upload_id"], "name": upload["name"]} for upload in uploads]
    job = client.call("POST", f"{_CORPUS}/jobs", body={"files": listed, "reset": reset})
    return _ended(client, job, {})


def _put(upload: Mapping[str, Any], data: bytes) -> None:
    url = upload["url"]
    try:
        answer = httpx.put(
            url,
            content=data,
            headers=dict(upload["headers"]),
            timeout=_UPLOAD_TIMEOUT,
            trust_env=not is_loopback(url),
        )
    except httpx.TransportError as error:
        raise Unreachable(
            f"{upload['name']} could not be uploaded: {error or type(error).__name__}."
        ) from error
    if not answer.is_success:
        raise Unreachable(f"{upload['name']} could not be uploaded: HTTP {answer.status_code}.")


def _ended(client: ApiClient, job: Mapping[str, Any], told: dict[str, str]) -> Mapping[str, Any]:
    """The job when it has ended; ``told``: what of it was said before."""
    while True:
        _tell(job, told)
        if job["status"] in ("done", "failed"):
            return job
        time.sleep(_POLL_SECONDS)
        job = client.call("GET", job["url"])


def _tell(job: Mapping[str, Any], told: dict[str, str]) -> None:
    """Each file as soon as it is read or refused, and how many texts have their vectors."""
    lines = {one["name"]: _said(one) for one in job["files"] if one["state"] != "waiting"}
    if job["to_embed"]:
        lines["embedded"] = f"{job['embedded']} of {job['to_embed']} texts"
    for name, line in lines.items():
        if told.get(name) != line:
            told[name] = line
            report(f"{one_line(name, 100)}: {one_line(line, 400)}")


def _said(one: Mapping[str, Any]) -> str:
    if one["state"] == "refused":
        return f"refused, it {one['reason']}"
    outcome = one.get("outcome", "read")
    return f"{outcome}, '{one['title']}' ({_counted(one['counts'])})"


def _counted(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items(), reverse=True))


def _fail_with(job: Mapping[str, Any]) -> None:
    if job["status"] == "failed":
        raise Refused(500, "internal", job.get("error", "The job failed."), {})


def _print_summary(job: Mapping[str, Any] | None, refused: Sequence[tuple[str, str]]) -> None:
    files = job["files"] if job else ()
    taken = [one for one in files if one.get("outcome") in ("added", "replaced")]
    skipped = sum(one.get("outcome") == "skipped" for one in files)
    bad = [(one["name"], one["reason"]) for one in files if one["state"] == "refused"] + list(refused)
    totals = {name: sum(one["counts"][name] for one in taken) for name in ("lessons", "chunks")}
    for name, reason in bad:
        click.echo(f"Refused: {one_line(name, 100)} {one_line(reason, 300)}.", err=True)
    if job and job["status"] == "failed":
        click.echo(f"Error: {job.get('error', 'The job failed.')}", err=True)
        return
    click.echo(f"Courses: {len(taken)}, {_counted(totals)}. Skipped: {skipped}. Refused: {len(bad)}.")
