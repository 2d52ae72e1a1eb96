"""Which commands README and docs have, and where each kind of them is run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from tests.drivers.documents import FENCED, inline_code, shell_blocks, without_uv_options

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_COMMAND: Final = re.compile(
    r"(?:^|(?<=[\s;&|(]))(?:uv (?:run|sync)(?= \S)|aws (?=[a-z0-9-]+ [a-z])|npx |crane |curl |(?:bash|sh) \.ci/)"
    r"|^(?:node |python -m )"
)
_ENVIRONMENT: Final = re.compile(r"^(?:[A-Z_]+=\S+ )+")

KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "tests": re.compile(r"uv run pytest"),
    "benches": re.compile(r"python -m (?:tests|bench)\."),
    "tools": re.compile(r"(?:bash|sh) \.ci/|uv sync|uv run just|python -m dualtrack_stack\.page\.vendor"),
    "account": re.compile(
        r"^(?:aws |npx |crane |curl (?!.*127\.0\.0\.1))|dualtrack aws (?!cost)|https://|--token |dualtrack (?!aws cost).*--stage "
    ),
    "run": re.compile(r"uv run |python -m dualtrack_stack\.|^curl "),
}
"""Kinds of commands, by what they look like; the first that fits counts."""

SHOWN: Final = re.compile(r"[…\\|]|\b[A-Z]{4,}\b|\bdualtrack (?:dev|stop)\b|--offline")
"""A command as it is spoken of: with a part left out, `dev`, which serves until it is stopped, or `stop`, which ends
what the others need."""


def kind_of(command: str) -> str:
    """One of `KINDS`; ``""`` for a command of none."""
    plain = without_uv_options(command)
    return next((kind for kind, pattern in KINDS.items() if pattern.search(plain)), "")


def commands_of(path: Path) -> Iterator[str]:
    """Every command of a document: of its shell blocks, of its sessions (``$ …``), and of its lines."""
    text = path.read_text()
    for block in shell_blocks(text):
        yield from commands_in(block)
    for session in sessions(text):
        yield from commands_in(session)
    for code in inline_code(text):
        if _COMMAND.match(plain := _ENVIRONMENT.sub("", code)):
            yield plain


def benches_of(path: Path) -> Iterator[str]:
    """The modules of measurements that a document names: in its commands, and alone, as in ``bench.imports``."""
    for code in (*commands_of(path), *inline_code(path.read_text())):
        yield from re.findall(r"(?:^|python -m )((?:tests|bench)\.[a-z][\w.]*)", code)


def sessions(text: str) -> Iterator[str]:
    """The commands of blocks that show what a terminal prints, a block each."""
    for block in FENCED.finditer(text):
        typed = [line[2:] for line in block["text"].splitlines() if line.startswith("$ ")]
        if typed and block["language"] == "":
            yield "\n".join(typed)


def inline(text: str) -> Iterator[str]:
    """The commands in a document's lines that can be copied as they are."""
    for code in inline_code(text):
        if code.startswith("uv run ") and kind_of(code) == "run" and not SHOWN.search(code):
            yield code


def here(block: str) -> str:
    """A block without the lines that are not run here, or run as something else."""
    lines = block.replace("\\\n", " ").splitlines()
    return "\n".join(
        line for line in lines if all(kind_of(command) == "run" for command in commands_in(line))
    )


def commands_in(block: str) -> Iterator[str]:
    """A line each, without what a shell has by itself."""
    for line in block.replace("\\\n", " ").splitlines():
        plain = re.sub(r"\s+#.*", "", line)
        if starts := [match.start() for match in _COMMAND.finditer(plain)]:
            ends = [*starts[1:], len(plain)]
            yield from (plain[start:end].strip() for start, end in zip(starts, ends, strict=True))
