"""Vector buckets and their indexes as Amazon S3 Vectors has them, by region; without vectors. The emulator has none.

One item a page. A bucket that still has indexes is not deleted (Amazon S3 API Reference, DeleteVectorBucket).
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

from dualtrack_stack.local.loopback import serve_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator

_REGION: Final = re.compile(r"Credential=[^/]+/\d+/([^/]+)/s3vectors/")


class _Refused(Exception):
    """``ConflictException`` with 409, and so on."""


@dataclass
class VectorBuckets:
    """Region → ARN of the bucket → ARNs of its indexes; tags by ARN."""

    url: str = ""
    indexes: dict[str, dict[str, list[str]]] = field(default_factory=lambda: defaultdict(dict))
    tags: dict[str, dict[str, str]] = field(default_factory=dict)

    def add(self, region: str, name: str, tags: dict[str, str], *indexes: str) -> None:
        """A bucket with these indexes."""
        arn = f"arn:aws:s3vectors:{region}:000000000000:bucket/{name}"
        self.indexes[region][arn] = [f"{arn}/index/{index}" for index in indexes]
        self.tags[arn] = tags

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """One request."""
        body = json.loads((await receive())["body"] or "{}")
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        signed = _REGION.search(headers["authorization"])
        assert signed, headers
        try:
            answer, status, error = self._answer(signed[1], unquote(scope["path"]), body), 200, ""
        except _Refused as refused:
            answer, status, error = {"message": str(refused)}, *refused.args[1:]
        more = [(b"x-amzn-errortype", error.encode())] if error else []
        await send({"type": "http.response.start", "status": status, "headers": more})
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    def _answer(self, region: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
        buckets = self.indexes[region]
        if path == "/ListVectorBuckets":
            arns = [arn for arn in buckets if arn.split("/")[1].startswith(body.get("prefix", ""))]
            return _page("vectorBuckets", [_named("vectorBucket", arn) for arn in arns], body)
        if path.startswith("/tags/"):
            return {"tags": self.tags[path.removeprefix("/tags/")]}
        if path == "/DeleteIndex":
            bucket = _there(buckets, body["indexArn"].split("/index/")[0])
            buckets[bucket].remove(body["indexArn"])
            return {}
        bucket = _there(buckets, body["vectorBucketArn"])
        if path == "/ListIndexes":
            return _page("indexes", [_named("index", arn) for arn in buckets[bucket]], body)
        assert path == "/DeleteVectorBucket", path
        if buckets[bucket]:
            raise _Refused(
                "The vector bucket you tried to delete still has indexes.", 409, "ConflictException"
            )
        del buckets[bucket]
        return {}


def _there(buckets: dict[str, list[str]], arn: str) -> str:
    if arn not in buckets:
        raise _Refused("The specified vector bucket does not exist.", 404, "NotFoundException")
    return arn


def _named(kind: str, arn: str) -> dict[str, Any]:
    return {f"{kind}Name": arn.rsplit("/", 1)[1], f"{kind}Arn": arn, "creationTime": 1_795_000_000}


def _page(name: str, items: list[dict[str, Any]], request: dict[str, Any]) -> dict[str, Any]:
    start = int(request.get("nextToken", 0))
    more = {"nextToken": str(start + 1)} if start + 1 < len(items) else {}
    return {name: items[start : start + 1], **more}


@contextmanager
def vector_buckets() -> Iterator[VectorBuckets]:
    """None at first; ``url`` is for ``AWS_ENDPOINT_URL_S3VECTORS``."""
    buckets = VectorBuckets()
    with serve_in_thread(buckets) as url:
        buckets.url = url
        yield buckets
