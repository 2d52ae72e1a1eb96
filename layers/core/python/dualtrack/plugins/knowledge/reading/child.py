"""The process that reads one file: ``python -m dualtrack.plugins.knowledge.reading.child NAME TITLE``.

It reads the file from standard input and writes the document to standard output, as JSON.
"""

from __future__ import annotations

import json
import sys
from dataclasses import astuple
from typing import Final

from dualtrack.extras import how_to_install
from dualtrack.plugins.knowledge.documents import DocumentRefused, ReadDocument, left_out_in_words
from dualtrack.plugins.knowledge.reading.blocks import MAX_TEXT, Blocks, TooLong
from dualtrack.plugins.knowledge.reading.limits import LIMITS
from dualtrack.plugins.knowledge.reading.readers import read_into
from dualtrack.plugins.knowledge.reading.titles import title_of
from dualtrack.runtime import bounded_process

_DEEPEST: Final = 20_000
"""Calls: pages of the web have some hundred elements in each other, each of which is read in two or three."""


def document_of(name: str, data: bytes, title: str) -> ReadDocument:
    """The document, read in this process. Raises `DocumentRefused`."""
    blocks = Blocks()
    try:
        kind, metadata = read_into(name, data, blocks)
    except TooLong as error:
        raise DocumentRefused(f"has more than {MAX_TEXT:,} characters of text: divide it") from error
    except RecursionError as error:
        raise DocumentRefused("is nested too deeply: save or print it as PDF") from error
    except ModuleNotFoundError as error:  # the layer always has it
        raise DocumentRefused(f"needs the extra `documents`: {how_to_install('documents')}") from error
    found = blocks.finished()
    if not found:
        left_out = left_out_in_words(blocks.left_out.items())
        raise DocumentRefused(f"has no text{f', only {left_out}' if left_out else ''}")
    chosen = title_of(title, metadata, blocks.first_heading, name)
    return ReadDocument(chosen, kind, found, tuple(sorted(blocks.left_out.items())))


def main(name: str, title: str) -> int:
    """Read standard input within the limits. Returns the exit code."""
    bounded_process.limit_this(LIMITS)
    sys.setrecursionlimit(_DEEPEST)
    try:
        found = document_of(name, sys.stdin.buffer.read(), title)
    except DocumentRefused as reason:
        return bounded_process.refuse(str(reason))
    blocks = [astuple(block) for block in found.blocks]
    answer = {"title": found.title, "kind": found.kind, "blocks": blocks, "left_out": found.left_out}
    sys.stdout.write(json.dumps(answer, ensure_ascii=True, separators=(",", ":")))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
