"""``dualtrack documents add | list | delete | collections`` (docs/documents.md)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack_stack.cli.client import RequestRefused
from dualtrack_stack.cli.command import Exit, exit_codes, json_option, print_json, report, stack_options
from dualtrack_stack.cli.corpora import (
    announced,
    as_admin,
    check_number,
    counted,
    ended,
    fail_with,
    files_argument,
    has_failed,
    print_refused,
)
from dualtrack_stack.cli.id_types import id_check
from dualtrack_stack.cli.target import TargetOptions, open_target
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.cli.uploads import put

from dualtrack.plugins.knowledge.limits import FILE_BYTES
from dualtrack.text import folded_name

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager
    from pathlib import Path

    from dualtrack_stack.cli.client import ApiClient
    from dualtrack_stack.cli.target import ChosenStack

    from dualtrack.plugins.knowledge import types

DEFAULT: Final = "Documents"
"""The collection that files go to if none is named; it is made for the first of them."""

collection_option = click.option(
    "--collection", "-c", metavar="NAME", help="A collection, by its name or id."
)


shared_option = click.option(
    "--shared", is_flag=True, help="The stage's collections, which profiles name; for administrators."
)


def _client(target: ChosenStack, *, shared: bool) -> AbstractContextManager[ApiClient]:
    """On a local stack the operator changes what is the stage's."""
    return as_admin(target) if shared else target.client()


@click.group("documents")
def commands() -> None:
    """Your documents, which agents search. A key needs the scope knowledge."""


@commands.command()
@files_argument
@collection_option
@click.option("--title", metavar="T", help="The title, for one file; by default what the file says.")
@shared_option
@stack_options
@json_option
def add(
    paths: tuple[Path, ...],
    *,
    collection: str | None,
    title: str | None,
    shared: bool,
    stack: TargetOptions,
    as_json: bool,
) -> None:
    """Add files, or the files of folders, at most 100 MB each. A document of the same title is replaced, unchanged
    content is skipped. The collection is made if there is none of its name; by default it is "Documents".

    \b
    Exit codes: 0 all were read, 2 usage, 4 some were refused or the job
    failed, 5 cannot reach the stack.
    """
    files = _files(paths)
    if title and len(files) > 1:
        raise click.UsageError("--title is for one file.")
    bad = [(path.name, reason) for path in files if (reason := _refusal(path))]
    good = [path for path in files if not _refusal(path)]
    with exit_codes(), open_target(stack, report) as target, _client(target, shared=shared) as client:
        path = _path(_found_or_made(client, collection or DEFAULT, shared=shared))
        job = _read(client, path, good, title) if good else None
    if as_json:
        print_json({"job": job, "refused": [{"name": name, "reason": reason} for name, reason in bad]})
    else:
        _summary(job, bad)
    sys.exit(Exit.FAILED if has_failed(job) or bad else Exit.ANSWERED)


@commands.command("list")
@collection_option
@stack_options
@json_option
def list_(*, collection: str | None, stack: TargetOptions, as_json: bool) -> None:
    """List the documents of all collections, or of one."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        listed = [_named(client, collection)] if collection else list(_collections(client))
        found: list[Any] = [{**one, "documents": list(_documents(client, one))} for one in listed]
        if as_json:
            print_json({"collections": found})
            return
        for one in found:
            click.echo(_line(one))
            for document in one["documents"]:
                left_out = f"; left out: {document['left_out']}" if document["left_out"] else ""
                told = f"{counted(document['counts'])}{left_out}"
                click.echo(f"  {document['document_id']}  {one_line(document['title'], 100)}  ({told})")
        if not found:
            click.echo("There are no collections. Add a file: dualtrack documents add PATH", err=True)


@commands.command()
@click.argument("document")
@collection_option
@shared_option
@stack_options
def delete(document: str, *, collection: str | None, shared: bool, stack: TargetOptions) -> None:
    """Delete DOCUMENT, by its title or id. Case and blanks need not be given exactly."""
    with exit_codes(), open_target(stack, report) as target, _client(target, shared=shared) as client:
        listed = [_named(client, collection)] if collection else list(_collections(client))
        named = [
            (one, found)
            for one in listed
            for found in _documents(client, one)
            if document == found["document_id"] or folded_name(document) == folded_name(found["title"])
        ]
        if len(named) != 1:
            said = (
                "Several documents are called so: name its collection, or its id"
                if named
                else "There is none"
            )
            raise RequestRefused(404, "not_found", f"'{document}': {said}. `dualtrack documents list`", {})
        one, found = named[0]
        job: Any = client.call("DELETE", f"{_path(one)}/documents/{found['document_id']}")
        fail_with(ended(client, job))
        click.echo(f"{one_line(found['title'], 300)} is no longer searched.")


@commands.group("collections", invoke_without_command=True)
@click.pass_context
def collections(context: click.Context) -> None:
    """Make, list and delete collections."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help())


@collections.command("list")
@stack_options
@json_option
def collections_list(*, stack: TargetOptions, as_json: bool) -> None:
    """List the stage's and your own."""
    with exit_codes(), open_target(stack, report) as target, target.client() as client:
        listed = list(_collections(client))
        if as_json:
            print_json({"collections": listed})
            return
        for one in listed:
            click.echo(_line(one))


@collections.command()
@click.argument("name")
@click.option("--description", default="", help="What it holds.")
@shared_option
@stack_options
def create(name: str, *, description: str, shared: bool, stack: TargetOptions) -> None:
    """Make a collection called NAME."""
    body = {"name": name, "description": description, "shared": shared}
    with exit_codes(), open_target(stack, report) as target, _client(target, shared=shared) as client:
        made: types.Collection = client.call("POST", "/v1/collections", body=body)
        click.echo(made["collection_id"])


@collections.command("delete")
@click.argument("collection_id", metavar="COLLECTION", callback=id_check("collection_id"))
@shared_option
@stack_options
def collections_delete(collection_id: str, *, shared: bool, stack: TargetOptions) -> None:
    """Delete COLLECTION, by its id, with all of its documents."""
    with exit_codes(), open_target(stack, report) as target, _client(target, shared=shared) as client:
        client.call("DELETE", f"/v1/collections/{collection_id}")
        click.echo(f"{collection_id} is deleted.")


def _files(paths: Sequence[Path]) -> list[Path]:
    files: list[Path] = []
    for path in paths:
        inside = sorted(path.rglob("*")) if path.is_dir() else [path]
        files += [inner for inner in inside if inner.is_file() and not inner.name.startswith(".")]
    if not files:
        raise click.UsageError("There are no files.")
    check_number(files)
    return files


def _refusal(path: Path) -> str:
    """Why a file cannot be uploaded; empty if it can."""
    size = path.stat().st_size
    if size > FILE_BYTES:
        return f"has {size / 1e6:.1f} MB; at most {FILE_BYTES / 1e6:.0f} MB are allowed: divide it"
    return "" if size else "is empty"


def _read(client: ApiClient, path: str, files: Sequence[Path], title: str | None) -> Any:
    """Upload the files and return their job when it has ended."""
    body = {"files": [announced(file) for file in files]}
    uploads: Any = client.call("POST", f"{path}/documents", body=body)["uploads"]
    for file, upload in zip(files, uploads, strict=True):
        report(f"{file.name}: uploading")
        put(upload, file.read_bytes())
    more = {"title": title} if title else {}
    listed = [{"upload_id": upload["upload_id"], "name": upload["name"], **more} for upload in uploads]
    return ended(client, client.call("POST", f"{path}/jobs", body={"files": listed}))


def _summary(job: types.CollectionJob | None, bad: Sequence[tuple[str, str]]) -> None:
    files = job["files"] if job else ()
    for file in files:
        if left_out := file.get("left_out"):
            report(f"{one_line(file['name'], 100)}: left out: {one_line(left_out, 300)}")
    refused = [(file["name"], file.get("reason", "")) for file in files if file["state"] == "refused"]
    for name, reason in (*refused, *bad):
        print_refused(name, reason)
    if job and job["status"] == "failed":
        click.echo(f"Error: {job.get('error', 'The job failed.')}", err=True)
        return
    outcomes = [file.get("outcome") for file in files]
    told = ", ".join(f"{outcomes.count(name)} {name}" for name in ("added", "replaced", "skipped"))
    click.echo(f"Documents: {told}, {len(refused) + len(bad)} refused.")


def _collections(client: ApiClient) -> Iterator[types.Collection]:
    yield from _all(client, "/v1/collections", "collections")


def _documents(client: ApiClient, one: types.Collection) -> Iterator[types.CollectedDocument]:
    yield from _all(client, f"{_path(one)}/documents", "documents")


def _all(client: ApiClient, path: str, name: str) -> Iterator[Any]:
    params = {"limit": "100"}
    while True:
        page = client.call("GET", path, params=params)
        yield from page[name]
        if "cursor" not in page:
            return
        params = {"limit": "100", "cursor": page["cursor"]}


def _named(client: ApiClient, name: str, *, shared: bool = False) -> types.Collection:
    """One's own before the stage's of the same name; with ``shared`` the stage's."""
    found = [
        one
        for one in _collections(client)
        if (one["shared"] or not shared)
        and (name == one["collection_id"] or folded_name(name) == folded_name(one["name"]))
    ]
    if not found:
        raise RequestRefused(
            404, "not_found", f"There is no collection '{name}': `dualtrack documents list`", {}
        )
    return min(found, key=lambda one: one["shared"])


def _found_or_made(client: ApiClient, name: str, *, shared: bool) -> types.Collection:
    """One of that name that may be filled: never the stage's by accident."""
    try:
        found = _named(client, name, shared=shared)
    except RequestRefused:
        found = None
    if found is not None and found["shared"] == shared:
        return found
    body = {"name": name, "shared": shared}
    made: types.Collection = client.call("POST", "/v1/collections", body=body)
    return made


def _path(one: types.Collection) -> str:
    return f"/v1/collections/{one['collection_id']}"


def _line(one: Any) -> str:
    whose = " (shared)" if one["shared"] else ""
    return f"{one['collection_id']}  {one_line(one['name'], 100)}{whose}: {counted(one['counts']) or '0 documents'}"
