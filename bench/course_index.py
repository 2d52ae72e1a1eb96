"""What course materials cost by size: seconds and memory of a whole job, milliseconds and memory of a search.

    uv run --group test python -m bench.course_index 400 40000

Texts are the documentation that botocore ships: a service is a course, an operation or a shape a lesson. Vectors are
random, 384 numbers as the local model's: neither time nor memory depends on their values, and the model itself would
take half an hour for 40,000 (``--model`` measures its rate). Each step runs in its own process; objects are stored in
files, so that they do not count as its memory. With S3 Vectors only the network is left out: requests are built and
signed, but not sent.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, MutableMapping
from functools import cache
from itertools import islice
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

import boto3
import botocore
import numpy as np
from botocore.awsrequest import AWSResponse
from botocore.config import Config
from botocore.loaders import Loader
from dualtrack.corpora import courses as kind
from dualtrack.storage.vector_indexes import VectorIndexes, index_name
from dualtrack.tools.courses import vector_index
from dualtrack.tools.courses.chunking import chunks_of
from dualtrack.tools.courses.documents import read_document
from dualtrack.tools.courses.index import head, load
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.values import embedded_text

from tests.drivers.corpus_world import CORPUS, CorpusWorld
from tests.drivers.documents import ROOT
from tests.drivers.memory_aws import MemoryAws

if TYPE_CHECKING:
    from collections.abc import Sequence

WIDTH = 384
A_JOB, LESSONS = 200, 1_900
QUERIES = (
    "How do I limit the number of requests?",
    "create a table with a sort key",
    "which permissions does a query need",
    "delete an object that has versions",
)


def main() -> None:
    """Ingest in one process, search in the next."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chunks", type=int, nargs="*")
    parser.add_argument("--model", action="store_true", help="also measure the local model's rate")
    parser.add_argument("--step", nargs=2, help="one of the processes")
    options = parser.parse_args()
    if options.step:
        step, folder = options.step
        print(json.dumps(STEPS[step](options.chunks[0], Path(folder))))
        return
    for chunks in options.chunks:
        with tempfile.TemporaryDirectory() as folder:
            for step in list(STEPS)[:-1]:
                print(chunks, step, _in_a_process(chunks, step, folder), flush=True)
    if options.model:
        print(_in_a_process(100, "model", ""))


def _in_a_process(chunks: int, step: str, folder: str) -> str:
    command = [sys.executable, "-m", "bench.course_index", str(chunks), "--step", step, folder]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


# ── a whole job ───────────────────────────────────────────────────────────────────────────────────


def _files(count: int, folder: Path) -> dict[str, str]:
    """Write at most 200 files with about this many chunks in all; their texts by name."""
    folder.mkdir()
    done, files = 0, {}
    for name, whole in islice(_documents(), A_JOB):
        if done >= 0.97 * count:  # the last file would be nearly empty
            break
        text, chunks = whole, chunks_of(read_document(name, whole.encode()))
        if done + len(chunks) > count:  # only the lessons still needed
            kept = {chunk.lesson_number for chunk in chunks[: count - done]}
            parts = re.split(r"(?=^Lesson \d+: )", whole, flags=re.MULTILINE)
            text = "".join(parts[: len(kept) + 1])
            chunks = chunks_of(read_document(name, text.encode()))
        done += len(chunks)
        (folder / name).write_text(text)
        files[name] = text
    return files


def _documents() -> Iterator[tuple[str, str]]:
    """A file for each service that botocore describes, those with the longest description first."""
    loader = Loader()
    for path in sorted(Path(botocore.__file__).parent.glob("data/*/*/service-2.json.gz"), key=_size):
        name = path.parent.parent.name
        model = loader.load_service_model(name, "service-2", path.parent.name)
        parts = [f"Course Title: {name} {path.parent.name}", "", ""]
        described = sorted({**model["operations"], **model["shapes"]}.items())[:LESSONS]
        for number, (title, said) in enumerate(described):
            texts = [
                _plain(part.get("documentation", "")) for part in (said, *said.get("members", {}).values())
            ]
            parts += [f"Lesson {number}: {title}", "\n".join(filter(None, texts)), ""]
        yield f"{path.parent.parent.name}-{path.parent.name}.txt", "\n".join(parts)


def _size(path: Path) -> tuple[int, Path]:
    return -path.stat().st_size, path


def _plain(html: str) -> str:
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", "", html)).strip()


class Files(MutableMapping[str, bytes]):
    """A bucket: objects in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def __getitem__(self, key: str) -> bytes:
        path = self.folder / quote(key, safe="")
        if not path.exists():
            raise KeyError(key)
        return path.read_bytes()

    def __setitem__(self, key: str, value: bytes) -> None:
        (self.folder / quote(key, safe="")).write_bytes(value)

    def __delitem__(self, key: str) -> None:
        (self.folder / quote(key, safe="")).unlink()

    def __iter__(self) -> Iterator[str]:
        return (unquote(path.name) for path in self.folder.iterdir())

    def __len__(self) -> int:
        return len(list(self.folder.iterdir()))


class Random:
    """Random embeddings."""

    model = "random"

    def __init__(self) -> None:
        self.numbers = np.random.default_rng(5)

    async def embed(self, texts: Sequence[str], input_type: str, timeout: float) -> tuple[bytes, ...]:
        return tuple(row.tobytes() for row in self.numbers.standard_normal((len(texts), WIDTH)).astype("<f4"))


def _world(folder: Path) -> CorpusWorld:
    aws: Any = MemoryAws(objects=Files(folder / "bucket"))  # type: ignore[arg-type]
    return CorpusWorld(model=Random.model, embedder=Random(), aws=aws)


def _make(count: int, folder: Path) -> dict[str, Any]:
    files = _files(count, folder / "files")
    return {"files": len(files), "characters": sum(map(len, files.values()))}


def _ingest(count: int, folder: Path) -> dict[str, Any]:
    world, before = _world(folder), _peak()
    files = {path.name: path for path in sorted((folder / "files").iterdir())}
    job = world.begin({name: path.read_bytes() for name, path in files.items()})
    started, cpu = time.perf_counter(), time.process_time()
    done = world.run(job)
    took = {"seconds": time.perf_counter() - started, "cpu_s": time.process_time() - cpu}
    assert done.status == "done", done
    refused = [file.name for file in world.files(job).values() if file.state == "refused"]
    version = world.published().version
    index = world.stores().corpora.index(CORPUS, version)
    (folder / "index").write_bytes(index)
    chunks = world.published().counts["chunks"]
    sizes = {"chunks": chunks, "object_mb": len(index) / 1e6, "head_mb": head(index) / 1e6}
    return _rounded({**sizes, **took, "before_mb": before, "peak_mb": _peak()}) | {"refused": refused}


def _replace(_: int, folder: Path) -> dict[str, Any]:
    """Add one small course; everything else is kept."""
    world = _world(folder)
    world.run(world.begin({path.name: path.read_bytes() for path in (folder / "files").iterdir()}))
    started = time.process_time()
    world.run(world.begin({"one.txt": b"Course Title: One more\n\nLesson 0: One\nOne more course.\n"}))
    return _rounded({"cpu_s": time.process_time() - started, "peak_mb": _peak()})


# ── S3 Vectors ────────────────────────────────────────────────────────────────────────────────────


class _Raw(io.BytesIO):
    """A response body as urllib3 provides it."""

    def stream(self) -> Iterator[bytes]:
        yield self.read()


class _Sent:
    """Counts the requests that would have been sent."""

    def __init__(self, answer: bytes) -> None:
        self.requests, self.bytes, self._answer = 0, 0, answer

    def __call__(self, request: Any, **_: Any) -> AWSResponse:
        self.requests, self.bytes = self.requests + 1, self.bytes + len(request.body)
        raw: Any = _Raw(self._answer)
        headers: Any = {"content-type": "application/json"}
        return AWSResponse(request.url, 200, headers, raw)


def _unsent(answer: bytes) -> tuple[VectorIndexes, _Sent]:
    client: Any = boto3.client(
        "s3vectors", "us-east-1", aws_access_key_id="a", aws_secret_access_key="b", config=Config()
    )
    sent = _Sent(answer)
    client.meta.events.register("before-send.s3vectors", sent)
    return VectorIndexes(client, "vectors"), sent


def _put_vectors(_: int, folder: Path) -> dict[str, Any]:
    data = (folder / "index").read_bytes()
    indexes, sent = _unsent(b"{}")
    before, started = _peak(), time.process_time()
    kind.put_vectors(indexes, "a-version", data)
    took = time.process_time() - started
    return _rounded(
        {"cpu_s": took, "requests": sent.requests, "mb": sent.bytes / 1e6, "added_mb": _peak() - before}
    )


# ── a search ──────────────────────────────────────────────────────────────────────────────────────


def _search(_: int, folder: Path) -> dict[str, Any]:
    return _searched(folder, beside=False)


def _search_beside(_: int, folder: Path) -> dict[str, Any]:
    return _searched(folder, beside=True)


def _searched(folder: Path, *, beside: bool) -> dict[str, Any]:
    path, vector = folder / "index", np.random.default_rng(6).standard_normal(WIDTH).astype("<f4").tobytes()
    in_front = head(path.read_bytes()) if beside else -1
    answered = [{"key": str(n), "distance": 0.5 + n / 1_000} for n in range(100)]
    indexes, _ = _unsent(json.dumps({"vectors": answered, "distanceMetric": "cosine"}).encode())
    before, started = _current(), time.process_time()
    with path.open("rb") as file:
        index = load(file.read(in_front), index_name(CORPUS, "v") if beside else "")
    loaded = time.process_time() - started

    def once(query: str, query_vector: bytes | None, lesson: int | None = None) -> float:
        begun = time.process_time()
        near = (
            vector_index.nearest(indexes, index, vector, None, lesson, 100)
            if beside and query_vector
            else None
        )
        search(index, query, query_vector, lesson_number=lesson, near=near)
        return 1_000 * (time.process_time() - begun)

    first = once(QUERIES[0], vector)
    return _rounded(
        {
            "read_ms": 1_000 * loaded,
            "first_ms": first,
            "hybrid_ms": median(once(query, vector) for query in QUERIES * 5),
            "keywords_ms": median(once(query, None) for query in QUERIES * 5),
            "one_lesson_ms": median(once(query, vector, 3) for query in QUERIES * 5),
            "added_mb": _current() - before,
            "peak_mb": _peak(),
        }
    )


def _model(count: int, _: Path) -> dict[str, Any]:
    """Chunks of the sample courses embedded per second, on one thread."""
    from dualtrack.knowledge import minilm

    model = minilm.load(ROOT / "functions" / "embed" / "tokenizer.json")
    paths = sorted((ROOT / "infra" / "dualtrack_stack" / "local" / "sample_courses").glob("*.[tm]*"))
    chunks = [chunk for path in paths for chunk in chunks_of(read_document(path.name, path.read_bytes()))]
    started = time.process_time()
    for chunk in chunks[:count]:
        model.embed(embedded_text(chunk))
    return _rounded({"chunks_a_cpu_second": count / (time.process_time() - started)})


STEPS = {
    "make": _make,
    "ingest": _ingest,
    "replace": _replace,
    "put-vectors": _put_vectors,
    "search": _search,
    "search-beside": _search_beside,
    "model": _model,
}


def _rounded(figures: dict[str, Any]) -> dict[str, Any]:
    return {name: round(value, 1) if isinstance(value, float) else value for name, value in figures.items()}


def _peak() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000


@cache
def _page() -> int:
    return resource.getpagesize()


def _current() -> float:
    """Megabytes that the process has in memory now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * _page() / 1e6


if __name__ == "__main__":
    main()
