"""Corpora: their versions, of which one is published, and what lies in the bucket for them.

history table   pk CORPUS#<corpus>   sk CURRENT              the version that is published: model, counts, when
bucket          corpora/<corpus>/versions/<version>/index       what tools read (a graph: the database); never changes
                corpora/<corpus>/versions/<version>/documents   what is in it: titles, digests, counts (JSON)
                corpora/graph/versions/<version>/schema         labels, types, properties (JSON)
                corpora/graph/versions/<version>/sources/<n>    its files, of which the next version is made
                corpora/<corpus>/parts/<job>/…                  what a job has read and embedded so far
                corpora/uploads/<corpus>/<upload>               files for a job; a lifecycle rule removes them

A version is written whole before `CURRENT` names it, by one conditional write, so a reader sees the old one
or the new one.
"""

from __future__ import annotations

import itertools
import json
import shutil
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from botocore.exceptions import ClientError

from dualtrack.errors import Gone
from dualtrack.storage.dynamo import get, put, transact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from botocore.response import StreamingBody
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from dualtrack.storage.dynamo import Action

FOLDER: Final = "corpora/"
"""What the keys of all objects here begin with."""

_CURRENT: Final = "CURRENT"
_ABSENT: Final = frozenset({"NoSuchKey", "AccessDenied", "404"})
"""S3 says the second to a role that may not list the bucket."""

_PIECE: Final = 1 << 20
"""Bytes of a large object that are in memory at once."""


@dataclass(frozen=True, slots=True)
class Document:
    """One of a version. ``title`` is the key, ``digest`` that of what it says, ``name`` the file's; ``counts`` of its
    parts: lessons, chunks; ``at``: epoch seconds when it was taken in."""

    title: str
    digest: str
    name: str
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    at: int = 0


@dataclass(frozen=True, slots=True)
class Published:
    """The version that is current. ``model``: of its vectors, empty for none; ``at``: epoch seconds.

    ``head``: where a vector index has its vectors too (`dualtrack.storage.vector_indexes`), the bytes of the
    index in front of them, which are all that a search reads; 0 where there is no vector index.
    """

    version: str
    model: str
    counts: Mapping[str, int]
    at: int
    head: int = 0


@dataclass(frozen=True, slots=True)
class CorpusStore:
    """The versions of all corpora, which belong to no user."""

    dynamodb: DynamoDBClient
    s3: S3Client
    table: str
    bucket: str

    def current(self, corpus: str) -> str | None:
        """The version that is published; None before the first."""
        published = self.published(corpus)
        return published.version if published else None

    def published(self, corpus: str) -> Published | None:
        """What is published; None before the first."""
        item = get(self.dynamodb, self.table, {"pk": partition(corpus), "sk": _CURRENT})
        if item is None:
            return None
        counts = MappingProxyType(item["counts"])
        return Published(item["version"], item["model"], counts, item["at"], item.get("head", 0))

    def index(self, corpus: str, version: str, head: int = 0) -> bytes:
        """A version's index, or as many bytes of it as ``head`` says. Raises `Gone` where it was deleted."""
        return self._read(f"{_version(corpus, version)}index", head)

    def documents(self, corpus: str, version: str) -> tuple[Document, ...]:
        """What is in a version, in order. Raises `Gone` where it was deleted."""
        listed = json.loads(self._read(f"{_version(corpus, version)}documents"))
        return tuple(Document(**{**one, "counts": MappingProxyType(one["counts"])}) for one in listed)

    def published_documents(self, corpus: str) -> tuple[Published | None, tuple[Document, ...]]:
        """What is published, and what is in it. A version that is replaced between the two reads stays long enough for
        the second."""
        published = self.published(corpus)
        return published, self.documents(corpus, published.version) if published else ()

    def schema(self, corpus: str, version: str) -> bytes:
        """A graph's schema, as JSON. Raises `Gone` where the version was deleted."""
        return self._read(f"{_version(corpus, version)}schema")

    def fetch(self, corpus: str, version: str, name: str, file: BinaryIO) -> None:
        """Copy an object of a version into a file, piece by piece. Raises `Gone` where it was deleted."""
        shutil.copyfileobj(self._open(f"{_version(corpus, version)}{name}"), file, _PIECE)

    def write_version(self, corpus: str, version: str, index: bytes, documents: Sequence[Document]) -> None:
        """Both objects of a version that nobody knows yet."""
        self._write(f"{_version(corpus, version)}index", index)
        self.write_documents(corpus, version, documents)

    def write_file(self, corpus: str, version: str, name: str, path: Path) -> None:
        """An object of a version that nobody knows yet, from the disk."""
        with path.open("rb") as file:
            self.s3.put_object(Bucket=self.bucket, Key=f"{_version(corpus, version)}{name}", Body=file)

    def write_schema(self, corpus: str, version: str, schema: bytes) -> None:
        """A graph's schema, of a version that nobody knows yet."""
        self._write(f"{_version(corpus, version)}schema", schema)

    def write_documents(self, corpus: str, version: str, documents: Sequence[Document]) -> None:
        """What is in a version that nobody knows yet."""
        listed = [
            {
                "title": one.title,
                "digest": one.digest,
                "name": one.name,
                "counts": dict(one.counts),
                "at": one.at,
            }
            for one in documents
        ]
        self._write(f"{_version(corpus, version)}documents", json.dumps(listed).encode())

    def publish(self, corpus: str, new: Published, base: str | None, also: Sequence[Action] = ()) -> None:
        """Make a version current, if the one that it was made from still is, together with what else is to happen then.

        Raises `Lost`, as ``current`` where another was faster.
        """
        transact(self.dynamodb, [self._publication(corpus, new, base), *also])

    def _publication(self, corpus: str, new: Published, base: str | None) -> Action:
        item = {
            "pk": partition(corpus),
            "sk": _CURRENT,
            "version": new.version,
            "model": new.model,
            "counts": dict(new.counts),
            "at": new.at,
            **({"head": new.head} if new.head else {}),
        }
        if base is None:
            return put("current", self.table, item, "attribute_not_exists(pk)")
        return put("current", self.table, item, "version = :base", {":base": base})

    # ── what a job works with ─────────────────────────────────────────────────────────────────────

    def upload(self, corpus: str, upload_id: str) -> bytes:
        """A file that was uploaded. Raises `Gone` where there is none."""
        return self._read(upload_key(corpus, upload_id))

    def write_part(self, corpus: str, job_id: str, name: str, data: bytes) -> None:
        """Keep a part of a job's work; the same name always gets the same bytes."""
        self._write(f"{_parts(corpus, job_id)}{name}", data)

    def part(self, corpus: str, job_id: str, name: str) -> bytes:
        """A part. Raises `Gone` where there is none."""
        return self._read(f"{_parts(corpus, job_id)}{name}")

    def part_names(self, corpus: str, job_id: str) -> frozenset[str]:
        """The parts that are there."""
        prefix = _parts(corpus, job_id)
        return frozenset(key.removeprefix(prefix) for key in self._listed(prefix))

    # ── what nobody needs any more ────────────────────────────────────────────────────────────────

    def objects(self, corpus: str) -> list[str]:
        """The keys of all versions and parts."""
        return list(self._listed(f"{FOLDER}{corpus}/"))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are gone do no harm."""
        rest = iter(keys)
        while some := list(itertools.islice(rest, 1_000)):
            listed = [{"Key": key} for key in some]
            self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": listed, "Quiet": True})  # type: ignore[typeddict-item]

    def _listed(self, prefix: str) -> Iterator[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        for page in pages:
            for one in page.get("Contents", []):
                yield one["Key"]

    def _write(self, key: str, data: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)

    def _read(self, key: str, head: int = 0) -> bytes:
        return self._open(key, head).read()

    def _open(self, key: str, head: int = 0) -> StreamingBody:
        part: dict[str, Any] = {"Range": f"bytes=0-{head - 1}"} if head else {}
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key, **part)["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ABSENT:
                raise
            raise Gone(key) from error


def partition(corpus: str) -> str:
    """Where everything of a corpus lies in the history table."""
    return f"CORPUS#{corpus}"


def upload_key(corpus: str, upload_id: str) -> str:
    """Where a file is uploaded to."""
    return f"{FOLDER}uploads/{corpus}/{upload_id}"


def owner(corpus: str, key: str) -> tuple[str, str]:
    """Of an object of `CorpusStore.objects`: ``versions`` or ``parts``, and the version's or the job's name."""
    kind, name, *_ = [*key.removeprefix(f"{FOLDER}{corpus}/").split("/"), "", ""]
    return kind, name


def _version(corpus: str, version: str) -> str:
    return f"{FOLDER}{corpus}/versions/{version}/"


def _parts(corpus: str, job_id: str) -> str:
    return f"{FOLDER}{corpus}/parts/{job_id}/"
