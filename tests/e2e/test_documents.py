"""The commands of README and docs, run as their reader copies them, in order, on a copy of the project."""

from __future__ import annotations

import importlib
import json
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack_stack.local.runner import KEEPER_FILE, is_locked
from dualtrack_stack.local.shared import shared_stack

from tests.clients.stack_client import wait_for
from tests.drivers.document_commands import benches_of, commands_in, here, inline, sessions
from tests.drivers.documents import DOCUMENTS, ROOT, copied_to, shell_blocks
from tests.long_forms import LONG
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.drivers.documents import Copy

pytestmark = pytest.mark.timeout(600)

FIRST: Final = "docs/first-hour.md"
"""Goes on where the README ends."""

RECIPES: Final = "docs/extend.md"
"""Followed by tests/unit/test_extend.py."""

SHOWN: Final = (
    "retrieve_full_context", "[q1-r]", "[q1-r-sum]", "turn 1", '"status":', "-12 °C", "“You answer questions about the weather",
)  # fmt: skip
"""Words of these commands, in what they print: the follow-up, a record, the summarised track, a receipt, the API, the
answer of a project's own tool, the prompt of its own agent."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """The project as a newcomer has it."""
    return copied_to(tmp_path_factory.mktemp("newcomer"), free_port())


def blocks_of(path: Path) -> list[str]:
    """The shell blocks and sessions of a document without what is not run here."""
    text = path.read_text()
    kept = map(here, (*shell_blocks(text), *sessions(text)))
    return [block for block in kept if list(commands_in(block))]


def test_the_readme_s_commands_work_as_they_stand(copy: Copy) -> None:
    """And those of the first minutes behind it, which end in a project of its own."""
    done = copy.run([*blocks_of(ROOT / "README.md"), *blocks_of(ROOT / FIRST)])
    assert done.returncode == 0, done.stdout[-6_000:]
    for shown in SHOWN:
        assert shown in done.stdout, (shown, done.stdout[-6_000:])
    assert "Traceback" not in done.stdout


@pytest.mark.skipif(not LONG, reason="the README's alone; all: DUALTRACK_LONG=1")
def test_the_commands_of_docs_work_as_they_stand(copy: Copy) -> None:
    """After the README's question and its follow-ups, which documents show; ``ch_…`` is that follow-up's chat,
    ``key_…`` a key."""
    readme = [*blocks_of(ROOT / "README.md"), *blocks_of(ROOT / FIRST)]
    start = next(block for block in readme if "dualtrack dev &" in block)
    used = [
        next(block for block in readme if word in block) for word in ("field()", ">.dualtrack/answer.json")
    ]
    others = {ROOT / name for name in ("README.md", "CONTRIBUTING.md", FIRST, RECIPES)}
    paths = sorted(set(DOCUMENTS) - others, key=lambda path: (path.name != "terminal.md", path))
    blocks = [block for path in paths for block in blocks_of(path)]
    lines = list(
        dict.fromkeys(line for path in (*paths, ROOT / "README.md") for line in inline(path.read_text()))
    )
    assert len(blocks) >= 8
    assert len(lines) >= 4
    made = "uv run dualtrack keys create documents --json >.dualtrack/key.json"
    chat, key = (
        f'"$(field {name}_id <.dualtrack/{file}.json)"' for name, file in (("chat", "answer"), ("key", "key"))
    )
    shown = [text.replace("ch_…", chat).replace("key_…", key) for text in (*blocks, *lines)]
    done = copy.run([start, readme[0], *used, made, *shown])
    assert done.returncode == 0, done.stdout[-6_000:]
    assert "Traceback" not in done.stdout


@pytest.mark.skipif(not LONG, reason="they import numpy, models and the CDK: DUALTRACK_LONG=1")
def test_the_benches_of_docs_start() -> None:
    """Their modules can be imported; what they measure takes minutes to hours."""
    modules = {module for path in DOCUMENTS for module in benches_of(path)}
    assert len(modules) >= 20
    for module in sorted(modules):
        is_package = (ROOT / module.replace(".", "/")).is_dir()
        importlib.import_module(f"{module}.__main__" if is_package else module)


def test_a_stack_in_the_background_is_not_at_the_address_of_an_earlier_dev(tmp_path: Path) -> None:
    """Else it answers, for its last second, whoever waits there for the next `dev`."""
    earlier = free_port()
    (tmp_path / "ports.json").write_text(json.dumps({"front": earlier}))
    with shared_stack(tmp_path, lambda _step: None) as url:
        assert not url.endswith(f":{earlier}")
    wait_for(lambda: not is_locked(tmp_path / KEEPER_FILE))
