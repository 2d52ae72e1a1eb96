"""Vector indexes of Amazon S3 Vectors: one for each version of a corpus, complete before it is published, never
changed.

Limits are those of the service (Amazon S3 User Guide, "Limitations and restrictions" of S3 Vectors). boto3 has had all
these calls since the service began (1.39.5), so Lambda's version is enough.
"""

from __future__ import annotations

import itertools
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

MetadataValue = str | int

MAX_NUMBERS: Final = 4_096
"""Maximum numbers of a vector."""

MAX_FILTERABLE_BYTES: Final = 2_048
"""Maximum size of a vector's filterable metadata."""

MAX_NEAREST: Final = 100
"""Maximum vectors in the answer to a query."""

AT_ONCE: Final = 500
"""Vectors in a write request, which may have 20 MiB: 4,096 numbers of five characters for each are 10 MB."""


@dataclass(frozen=True, slots=True)
class VectorEntry:
    """A vector and its key. ``filterable``: metadata that a query may filter by; ``shown``: other metadata. The service
    refuses a vector of zeros."""

    key: str
    numbers: Sequence[float]
    filterable: Mapping[str, MetadataValue]
    shown: Mapping[str, MetadataValue]


@dataclass(frozen=True, slots=True)
class VectorIndexes:
    """The indexes of one vector bucket. ``client``: of the service ``s3vectors``."""

    client: Any
    bucket: str

    def write(self, name: str, entries: Iterable[VectorEntry], numbers: int, shown: Sequence[str]) -> None:
        """Write an index of this name with these entries, each a vector of ``numbers`` numbers; ``shown`` names the
        metadata that is not filterable. Overwrites existing entries. Raises ValueError for invalid entries."""
        if not 1 <= numbers <= MAX_NUMBERS:
            raise ValueError(f"a vector of {numbers} numbers: an index takes 1 to {MAX_NUMBERS}")
        self._create(name, numbers, shown)
        rest = map(_vector, entries)
        while batch := list(itertools.islice(rest, AT_ONCE)):
            self.client.put_vectors(vectorBucketName=self.bucket, indexName=name, vectors=batch)

    def nearest(
        self, name: str, numbers: Sequence[float], wanted: Mapping[str, MetadataValue], limit: int
    ) -> dict[str, float]:
        """The keys of the nearest vectors, at most `MAX_NEAREST`, with their cosines; only those whose metadata equal
        ``wanted``. Raises botocore's errors."""
        query: dict[str, Any] = {
            "vectorBucketName": self.bucket,
            "indexName": name,
            "topK": min(limit, MAX_NEAREST),
            "queryVector": {"float32": list(numbers)},
            "returnDistance": True,
        }
        equals = [{key: {"$eq": value}} for key, value in wanted.items()]
        if equals:
            query["filter"] = equals[0] if len(equals) == 1 else {"$and": equals}
        answer = self.client.query_vectors(**query)
        vectors = list(answer["vectors"])
        while "nextToken" in answer and len(vectors) < query["topK"]:
            answer = self.client.query_vectors(**query, nextToken=answer["nextToken"])
            vectors += answer["vectors"]
        return {vector["key"]: 1.0 - vector["distance"] for vector in vectors}

    def names(self, prefix: str) -> list[str]:
        """The names of the indexes that begin with ``prefix``."""
        pages = self.client.get_paginator("list_indexes").paginate(
            vectorBucketName=self.bucket, prefix=prefix
        )
        return [index["indexName"] for page in pages for index in page["indexes"]]

    def delete(self, name: str) -> None:
        """Delete an index, if it exists."""
        try:
            self.client.delete_index(vectorBucketName=self.bucket, indexName=name)
        except ClientError as error:
            if error.response["Error"]["Code"] != "NotFoundException":
                raise

    def _create(self, name: str, numbers: int, shown: Sequence[str]) -> None:
        try:
            self.client.create_index(
                vectorBucketName=self.bucket,
                indexName=name,
                dataType="float32",
                dimension=numbers,
                distanceMetric="cosine",
                metadataConfiguration={"nonFilterableMetadataKeys": list(shown)},
            )
        except ClientError as error:
            if error.response["Error"]["Code"] != "ConflictException":
                raise


def index_name(corpus: str, version: str) -> str:
    """The name of a version's index, or the prefix of all such names: 3 to 63 lower-case letters, digits, hyphens."""
    return f"{corpus}-{version.replace('_', '-').replace('.', '-')}"


def _vector(entry: VectorEntry) -> dict[str, Any]:
    size = len(json.dumps(dict(entry.filterable), ensure_ascii=False).encode())
    if size > MAX_FILTERABLE_BYTES:
        raise ValueError(f"{entry.key}: {size} bytes to filter by; an index takes {MAX_FILTERABLE_BYTES}")
    return {
        "key": entry.key,
        "data": {"float32": list(entry.numbers)},
        "metadata": {**entry.filterable, **entry.shown},
    }
