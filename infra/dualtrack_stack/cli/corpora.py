"""Shared by the commands on a corpus: uploads, the job that processes them, permissions (CONTRACT 4)."""

from __future__ import annotations

import hashlib
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from dualtrack_stack.cli.client import ApiClient, RequestRefused
from dualtrack_stack.cli.command import report
from dualtrack_stack.cli.target import OPERATOR, dev_token
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.cli.uploads import put

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from dualtrack import answers

    from dualtrack_stack.cli.target import ChosenStack

FILE_BYTES: Final = 20_000_000

_JOB_FILES: Final = 200
_POLL_SECONDS: Final = 1.0


files_argument: Final = click.argument(
    "paths",
    nargs=-1,
    required=True,
    metavar="PATH…",
    type=click.Path(exists=True, path_type=Path),
)
"""The files and folders that a command uploads."""


def corpus_path(corpus: str) -> str:
    """Where a corpus is in the API."""
    return f"/v1/admin/corpora/{corpus}"


@contextmanager
def as_admin(target: ChosenStack) -> Iterator[ApiClient]:
    """A client that may change corpora: on a local stack the operator, else the token's user."""
    token = dev_token(target.url, OPERATOR, admin=True).token if target.dev else target.token
    with ApiClient(target.url, token) as client:
        yield client


def files_in(paths: Sequence[Path], endings: Collection[str], formats: str) -> list[Path]:
    """The files, those of a folder sorted by name. Raises `click.UsageError` for none, or too many."""
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else ()
        files += [inner for inner in inside if inner.is_file() and inner.suffix.lower() in endings]
        files += [path] if path.is_file() else []
    if not files:
        raise click.UsageError(f"There are no files of these formats: {formats}.")
    check_number(files)
    return files


def check_number(files: Sequence[object]) -> None:
    """Raises `click.UsageError` for more files than a job takes."""
    if len(files) > _JOB_FILES:
        raise click.UsageError(f"{len(files)} files are too many: a job takes at most {_JOB_FILES}.")


def refusal(path: Path) -> str:
    """Why a file cannot be uploaded; empty if it can."""
    size = path.stat().st_size
    if not size:
        return "is empty"
    if size > FILE_BYTES:
        return f"has {size / 1e6:.1f} MB; at most {FILE_BYTES / 1e6:.0f} MB are allowed"
    return ""


def taken_in(client: ApiClient, corpus: str, files: Sequence[Path], *, reset: bool) -> answers.CorpusJob:
    """Upload the files and return their job when it has ended."""
    body = {"files": [announced(path) for path in files]}
    uploads: Sequence[answers.Upload] = client.call("POST", f"{corpus_path(corpus)}/uploads", body=body)[
        "uploads"
    ]
    for path, upload in zip(files, uploads, strict=True):
        report(f"{path.name}: uploading")
        put(upload, path.read_bytes())
    listed = [{"upload_id": upload["upload_id"], "name": upload["name"]} for upload in uploads]
    return ended(
        client, client.call("POST", f"{corpus_path(corpus)}/jobs", body={"files": listed, "reset": reset})
    )


def announced(path: Path) -> dict[str, str | int]:
    """A file by its name, size and checksum: the address that it gets takes no other bytes."""
    with path.open("rb") as file:
        sha256 = hashlib.file_digest(file, "sha256").hexdigest()
    return {"name": path.name, "size": path.stat().st_size, "sha256": sha256}


def ended(client: ApiClient, job: answers.CorpusJob) -> answers.CorpusJob:
    """The job when it has ended; reports its progress until then."""
    reported: dict[str, str] = {}
    while True:
        _tell(job, reported)
        if job["status"] in ("done", "failed"):
            return job
        time.sleep(_POLL_SECONDS)
        job = client.call("GET", job["url"])


def _tell(job: answers.CorpusJob, reported: dict[str, str]) -> None:
    """Report each file once it is read or refused, and how many texts have their vectors."""
    lines = {file["name"]: _said(file) for file in job["files"] if file["state"] != "waiting"}
    if job["to_embed"]:
        lines["embedded"] = f"{job['embedded']} of {job['to_embed']} texts"
    for name, line in lines.items():
        if reported.get(name) != line:
            reported[name] = line
            report(f"{one_line(name, 100)}: {one_line(line, 400)}")


def _said(file: answers.JobFile) -> str:
    if file["state"] == "refused":
        return f"refused, it {file['reason']}"
    outcome, title = file.get("outcome", "read"), file["title"]
    named = "" if title == file["name"] else f", '{title}'"
    return f"{outcome}{named} ({counted(file['counts'])})"


def counted(counts: Mapping[str, int]) -> str:
    """``3 lessons, 12 chunks``."""
    return ", ".join(f"{number:,} {name}" for name, number in sorted(counts.items(), reverse=True))


def fail_with(job: answers.CorpusJob) -> None:
    """Raises `RequestRefused` if the job has failed."""
    if job["status"] == "failed":
        raise RequestRefused(500, "internal", job.get("error", "The job failed."), {})


def refused_files(job: answers.CorpusJob | None) -> list[answers.JobFile]:
    """The files that a job has refused."""
    return [file for file in (job["files"] if job else ()) if file["state"] == "refused"]


def has_failed(job: answers.CorpusJob | None) -> bool:
    """Whether the job has failed, or a file of it was refused."""
    return job is not None and (job["status"] == "failed" or bool(refused_files(job)))


def print_refused(name: str, reason: str, problems: Sequence[str] = ()) -> None:
    """A refused file and its bad rows."""
    click.echo(f"Refused: {one_line(name, 100)} {one_line(reason, 300)}.", err=True)
    for problem in problems:
        click.echo(f"  {one_line(problem, 300)}", err=True)
