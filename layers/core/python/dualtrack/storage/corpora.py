"""Corpora: their versions, of which one is published, and their objects in the bucket.

history table   pk CORPUS#<corpus>   sk CURRENT              the published version: model, counts, time
bucket          corpora/<corpus>/versions/<version>/index       what tools read (a graph: the database); never changes
                corpora/<corpus>/versions/<version>/documents   its documents: titles, digests, counts (JSON)
                corpora/graph/versions/<version>/schema         labels, types, properties (JSON)
                corpora/graph/versions/<version>/sources/<n>    its files, from which the next version is made
                corpora/<corpus>/parts/<job>/…                  what a job has read and embedded so far
                corpora/uploads/<corpus>/<upload>               files for a job; a lifecycle rule removes them

A version is complete before one conditional write makes it `CURRENT`, so a reader sees either the old or the new one.
"""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from botocore.exceptions import ClientError

from dualtrack.codec import decode, dump, encode, load, stored
from dualtrack.errors import Gone
from dualtrack.ids import is_upload_of
from dualtrack.storage.dynamo import get, put, transact

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from botocore.response import StreamingBody
    from mypy_boto3_dynamodb.client import DynamoDBClient
    from mypy_boto3_s3.client import S3Client

    from dualtrack.storage.dynamo import Action

FOLDER: Final = "corpora/"
"""The prefix of the keys of all these objects."""

_CURRENT: Final = "CURRENT"
_ABSENT: Final = frozenset({"NoSuchKey", "AccessDenied", "404"})
"""S3 returns the second to a role that may not list the bucket."""

_PIECE: Final = 1 << 20
"""Bytes of a large object in memory at a time."""


@stored
@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of a version. ``title`` is the key, ``digest`` the hash of its content, ``name`` that of the file;
    ``counts``: numbers of its lessons and chunks; ``at``: epoch seconds when it was added; ``facts``: what its kind
    says of it."""

    title: str
    digest: str
    name: str
    counts: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    at: int = 0
    facts: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))


@stored
@dataclass(frozen=True, slots=True)
class PublishedVersion:
    """The published version. ``model``: of its vectors, empty for none; ``at``: epoch seconds.

    ``head``: if a vector index has its vectors too (`dualtrack.storage.vector_indexes`), the size of the part of the
    index before the vectors, which is all that a search reads; 0 if there is no vector index.
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
        """The id of the published version; None before the first."""
        published = self.published(corpus)
        return published.version if published else None

    def published(self, corpus: str) -> PublishedVersion | None:
        """The published version; None before the first."""
        item = get(self.dynamodb, self.table, {"pk": partition(corpus), "sk": _CURRENT})
        return decode(PublishedVersion, item) if item else None

    def index(self, corpus: str, version: str, head: int = 0) -> bytes:
        """A version's index, or its first ``head`` bytes. Raises `Gone` if it was deleted."""
        return self._read(f"{_version(corpus, version)}index", head)

    def index_part(self, corpus: str, version: str, start: int, end: int) -> bytes:
        """The bytes of an index from ``start`` up to ``end``, or to its end. Raises `Gone` if it was deleted."""
        return self._open(f"{_version(corpus, version)}index", f"{start}-{end - 1}").read()

    def documents(self, corpus: str, version: str) -> tuple[StoredDocument, ...]:
        """The documents of a version, in order. Raises `Gone` if it was deleted."""
        return load(tuple[StoredDocument, ...], self._read(f"{_version(corpus, version)}documents"))

    def published_documents(self, corpus: str) -> tuple[PublishedVersion | None, tuple[StoredDocument, ...]]:
        """The published version and its documents. A version that is replaced between the two reads exists long
        enough for the second."""
        published = self.published(corpus)
        return published, self.documents(corpus, published.version) if published else ()

    def schema(self, corpus: str, version: str) -> bytes:
        """A graph's schema, as JSON. Raises `Gone` if the version was deleted."""
        return self._read(f"{_version(corpus, version)}schema")

    def fetch(self, corpus: str, version: str, name: str, file: BinaryIO) -> None:
        """Copy an object of a version into a file, in pieces. Raises `Gone` if it was deleted."""
        shutil.copyfileobj(self._open(f"{_version(corpus, version)}{name}"), file, _PIECE)

    def write_version(
        self, corpus: str, version: str, index: bytes, documents: Sequence[StoredDocument]
    ) -> None:
        """Write both objects of a version before it is published."""
        self._write(f"{_version(corpus, version)}index", index)
        self.write_documents(corpus, version, documents)

    def write_file(self, corpus: str, version: str, name: str, path: Path) -> None:
        """Write an object of a version before it is published, from the disk."""
        with path.open("rb") as file:
            self.s3.put_object(Bucket=self.bucket, Key=f"{_version(corpus, version)}{name}", Body=file)

    def write_schema(self, corpus: str, version: str, schema: bytes) -> None:
        """Write a graph's schema, of a version before it is published."""
        self._write(f"{_version(corpus, version)}schema", schema)

    def write_documents(self, corpus: str, version: str, documents: Sequence[StoredDocument]) -> None:
        """Write the list of documents of a version before it is published."""
        self._write(f"{_version(corpus, version)}documents", dump(tuple(documents)).encode())

    def publish(
        self, corpus: str, new: PublishedVersion, base: str | None, also: Sequence[Action] = ()
    ) -> None:
        """Make a version current, if the one it was made from still is, in one transaction with ``also``.

        Raises `Lost`, with the name ``current`` if another version was published meanwhile.
        """
        transact(self.dynamodb, [self._publication(corpus, new, base), *also])

    def _publication(self, corpus: str, new: PublishedVersion, base: str | None) -> Action:
        item = {"pk": partition(corpus), "sk": _CURRENT, **encode(new)}
        if base is None:
            return put("current", self.table, item, "attribute_not_exists(pk)")
        return put("current", self.table, item, "version = :base", {":base": base})

    # ── objects of jobs ───────────────────────────────────────────────────────────────────────────

    def upload(self, corpus: str, upload_id: str) -> bytes:
        """An uploaded file. Raises `Gone` if there is none, or if its bytes are not those that were announced."""
        key = upload_key(corpus, upload_id)
        data = self._read(key)
        if not is_upload_of(upload_id, data):
            raise Gone(key)
        return data

    def write_part(self, corpus: str, job_id: str, name: str, data: bytes) -> None:
        """Store a part of a job's work; a name always has the same bytes."""
        self._write(f"{_parts(corpus, job_id)}{name}", data)

    def part(self, corpus: str, job_id: str, name: str) -> bytes:
        """A part. Raises `Gone` if there is none."""
        return self._read(f"{_parts(corpus, job_id)}{name}")

    def part_names(self, corpus: str, job_id: str) -> frozenset[str]:
        """The names of the stored parts."""
        prefix = _parts(corpus, job_id)
        return frozenset(key.removeprefix(prefix) for key in self._listed(prefix))

    # ── cleaning up ───────────────────────────────────────────────────────────────────────────────

    def objects(self, corpus: str) -> list[str]:
        """The keys of all objects of versions and parts."""
        return list(self._listed(f"{FOLDER}{corpus}/"))

    def uploaded(self, corpus: str) -> list[str]:
        """The keys of files that were uploaded for it."""
        return list(self._listed(upload_key(corpus, "")))

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; missing ones are ignored."""
        rest = iter(keys)
        while batch := list(itertools.islice(rest, 1_000)):
            listed = [{"Key": key} for key in batch]
            self.s3.delete_objects(Bucket=self.bucket, Delete={"Objects": listed, "Quiet": True})  # type: ignore[typeddict-item]

    def _listed(self, prefix: str) -> Iterator[str]:
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix)
        for page in pages:
            for entry in page.get("Contents", []):
                yield entry["Key"]

    def _write(self, key: str, data: bytes) -> None:
        self.s3.put_object(Bucket=self.bucket, Key=key, Body=data)

    def _read(self, key: str, head: int = 0) -> bytes:
        return self._open(key, f"0-{head - 1}" if head else "").read()

    def _open(self, key: str, span: str = "") -> StreamingBody:
        part: dict[str, Any] = {"Range": f"bytes={span}"} if span else {}
        try:
            return self.s3.get_object(Bucket=self.bucket, Key=key, **part)["Body"]
        except ClientError as error:
            if error.response["Error"]["Code"] not in _ABSENT:
                raise
            raise Gone(key) from error


def partition(corpus: str) -> str:
    """The partition of a corpus in the history table."""
    return f"CORPUS#{corpus}"


def upload_key(corpus: str, upload_id: str) -> str:
    """The key that a file is uploaded to."""
    return f"{FOLDER}uploads/{corpus}/{upload_id}"


def owner(corpus: str, key: str) -> tuple[str, str]:
    """For a key of `CorpusStore.objects`: ``versions`` or ``parts``, and the id of the version or job."""
    kind, name, *_ = [*key.removeprefix(f"{FOLDER}{corpus}/").split("/"), "", ""]
    return kind, name


def _version(corpus: str, version: str) -> str:
    return f"{FOLDER}{corpus}/versions/{version}/"


def _parts(corpus: str, job_id: str) -> str:
    return f"{FOLDER}{corpus}/parts/{job_id}/"
