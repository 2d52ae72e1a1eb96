"""An index of S3 Vectors in memory, as strict as the service (Amazon S3 User Guide, "Limitations and restrictions").

The search is exact; the service's is approximate.
"""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{1,61}[a-z0-9]")
_PAYLOAD_BYTES: Final = 20 * 1024 * 1024


class VectorIndex:
    """One index. What the service would refuse raises its ``ValidationException``."""

    def __init__(self, request: Mapping[str, Any]) -> None:
        _must(_NAME.fullmatch(request["indexName"]) is not None, request["indexName"])
        _must(request["dataType"] == "float32" and request["distanceMetric"] == "cosine", "type or metric")
        _must(1 <= request["dimension"] <= 4_096, "dimension")
        shown = request["metadataConfiguration"]["nonFilterableMetadataKeys"]
        _must(1 <= len(shown) <= 10, "keys that are not filterable")
        self.dimension, self._shown = request["dimension"], frozenset(shown)
        self.vectors: dict[str, tuple[np.ndarray[Any, Any], dict[str, Any]]] = {}

    def put(self, vectors: Sequence[Mapping[str, Any]]) -> None:
        """PutVectors."""
        _must(1 <= len(vectors) <= 500, f"{len(vectors)} vectors")
        _must(len(json.dumps(vectors)) <= _PAYLOAD_BYTES, "payload")
        for vector in vectors:
            _must(1 <= len(vector["key"]) <= 1_024, "key")
            numbers, metadata = self._numbers(vector["data"]), vector["metadata"]
            filterable = {key: value for key, value in metadata.items() if key not in self._shown}
            _must(len(metadata) <= 50 and _size(metadata) <= 40_960, "metadata")
            _must(_size(filterable) <= 2_048, "filterable metadata")
            self.vectors[vector["key"]] = numbers, dict(metadata)

    def nearest(self, request: Mapping[str, Any]) -> list[dict[str, Any]]:
        """QueryVectors."""
        _must(1 <= request["topK"] <= 100, "topK")
        query, wanted = self._numbers(request["queryVector"]), request.get("filter", {})
        nearest: list[dict[str, Any]] = [
            {"key": key, "distance": 1.0 - float(query @ numbers)}
            for key, (numbers, metadata) in self.vectors.items()
            if self._fits(metadata, wanted)
        ]
        return sorted(nearest, key=lambda vector: vector["distance"])[: request["topK"]]

    def _numbers(self, data: Mapping[str, Any]) -> np.ndarray[Any, Any]:
        values = data["float32"]
        _must(len(values) == self.dimension, "dimension")
        _must(all(math.isfinite(value) for value in values) and any(values), "a vector without direction")
        numbers = np.array(values, np.float32)
        unit: np.ndarray[Any, Any] = numbers / np.linalg.norm(numbers)
        return unit

    def _fits(self, metadata: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
        for key, value in wanted.items():
            if key == "$and":
                _must(bool(value), "$and of nothing")
                if not all(self._fits(metadata, condition) for condition in value):
                    return False
                continue
            _must(key not in self._shown and list(value) == ["$eq"], f"filter by {key}")
            if metadata.get(key) != value["$eq"]:
                return False
        return True


def _size(metadata: Mapping[str, Any]) -> int:
    return len(json.dumps(metadata, ensure_ascii=False).encode())


def _must(fits: bool, what: str) -> None:
    if not fits:
        response: Any = {"Error": {"Code": "ValidationException", "Message": f"{what} (test)"}}
        raise ClientError(response, "S3 Vectors")
