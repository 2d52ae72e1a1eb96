"""What an index of many chunks costs: seconds and bytes to build, to load, and milliseconds to search.

    uv run python -m tests.bench.course_index 40000

Texts are the sample courses' sentences in a random order, vectors random: neither time nor memory depends on what
they say. Each step's memory is the process's own, in a process of its own.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np
from dualtrack.tools.courses.chunking import sentence_ends
from dualtrack.tools.courses.documents import read_document
from dualtrack.tools.courses.index import build, load, save
from dualtrack.tools.courses.ranking import search
from dualtrack.tools.courses.values import Chunk, Course, Lesson

from infra.layers import ROOT

WIDTH = 384
A_COURSE = 100
QUERIES = (
    "What is prompt caching?",
    "How do I limit the number of tasks that run at once?",
    "streaming answers",
)


def main() -> None:
    """Build in one process, search in the next."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("chunks", type=int, nargs="+")
    parser.add_argument("--step", nargs=2, help="one of the two processes")
    given = parser.parse_args()
    if given.step:
        step, path = given.step
        print(json.dumps(_build(given.chunks[0], Path(path)) if step == "build" else _search(Path(path))))
        return
    for chunks in given.chunks:
        with tempfile.NamedTemporaryFile() as file:
            for step in ("build", "search"):
                command = [
                    sys.executable,
                    "-m",
                    "tests.bench.course_index",
                    str(chunks),
                    "--step",
                    step,
                    file.name,
                ]
                print(
                    chunks,
                    step,
                    subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip(),
                )


def _build(count: int, path: Path) -> dict[str, float]:
    courses, chunks = _corpus(count)
    numbers = np.random.default_rng(5)
    vectors = [numbers.standard_normal(WIDTH).astype("<f4").tobytes() for _ in chunks]
    started = time.process_time()
    path.write_bytes(save(build(courses, chunks, "m", vectors, vectors[: len(courses)])))
    return {
        "cpu_s": round(time.process_time() - started, 1),
        "object_mb": path.stat().st_size / 1e6,
        "peak_mb": _peak(),
    }


def _search(path: Path) -> dict[str, float]:
    before = _peak()
    started = time.process_time()
    index = load(path.read_bytes())
    loaded = time.process_time() - started
    vector = np.ones(WIDTH, "<f4").tobytes()

    def milliseconds(given: bytes | None, lesson: int | None = None) -> float:
        taken = []
        for query in QUERIES * 5:
            begun = time.process_time()
            search(index, query, given, lesson_number=lesson)
            taken.append(1_000 * (time.process_time() - begun))
        return round(median(taken), 1)

    return {
        "load_ms": round(1_000 * loaded, 1),
        "hybrid_ms": milliseconds(vector),
        "keywords_ms": milliseconds(None),
        "one_lesson_ms": milliseconds(vector, 3),
        "added_mb": round(_peak() - before),
        "peak_mb": _peak(),
    }


def _corpus(count: int) -> tuple[list[Course], list[Chunk]]:
    """Courses of a hundred chunks in ten lessons each."""
    files = sorted((ROOT / "infra" / "local" / "sample_courses").glob("*.[tm]*"))
    read = [lesson.text for file in files for lesson in read_document(file.name, file.read_bytes()).lessons]
    sentences = [
        text[a:b]
        for text in read
        for ends in [sentence_ends(text)]
        for a, b in zip([0, *ends], ends, strict=False)
    ]
    chosen = random.Random(5)
    courses = [
        Course(f"Course {n}", "", "", tuple(Lesson(k, f"Lesson {k}", "", "") for k in range(10)))
        for n in range(-(-count // A_COURSE))
    ]
    chunks = [
        Chunk(
            courses[n // A_COURSE].title,
            n % A_COURSE // 10,
            n % A_COURSE,
            f"{''.join(chosen.choices(sentences, k=6))} term{n}",
        )
        for n in range(count)
    ]
    return courses, chunks


def _peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1_000)


if __name__ == "__main__":
    main()
