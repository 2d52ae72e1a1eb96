"""The commands of README and docs, run as their reader copies them, in order, on a copy of the project."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

import pytest

from infra.local.runner import KEEPER_FILE, is_locked
from infra.local.shared import shared_stack
from tests.clients.stack_client import wait_for
from tests.drivers.documents import ROOT, copied_to, shell_blocks
from tests.long_forms import LONG
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from pathlib import Path

    from tests.drivers.documents import Copy

pytestmark = pytest.mark.timeout(600)

ON_AWS: Final = ("npx aws-cdk", "--stage", "aws ", "uv run pytest", "uv run python -m tests.bench")
"""What is not run here: it needs an account, or is a test by itself (tests/unit/test_docs_commands.py looks at it)."""

DOCS: Final = ("courses.md", "graph.md", "credits.md")
"""Documents whose commands a laptop runs; README keeps the stack that they are run on."""


SHOWN: Final = ("retrieve_full_context", "[q1-r]", "[q1-r-sum]", "turn 1", '"status":')
"""Words of the README's commands, in what they print: the follow-up, a record, the short track, a receipt, the API."""


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    """The project as a newcomer has it."""
    return copied_to(tmp_path_factory.mktemp("newcomer"), free_port())


def runnable(path: Path) -> list[str]:
    """The blocks of a document without what is not run here."""
    kept = ("\n".join(filter(_runs, block.splitlines())) for block in shell_blocks(path.read_text()))
    return [block for block in kept if block.strip()]


def _runs(line: str) -> bool:
    return not any(word in line for word in ON_AWS)


def test_the_readme_s_commands_work_as_they_stand(copy: Copy) -> None:
    done = copy.run(runnable(ROOT / "README.md"))
    assert done.returncode == 0, done.stdout[-6_000:]
    for shown in SHOWN:
        assert shown in done.stdout, (shown, done.stdout[-6_000:])
    assert "Traceback" not in done.stdout


@pytest.mark.skipif(not LONG, reason="the short form runs the README's commands alone")
def test_the_commands_of_docs_work_as_they_stand(copy: Copy) -> None:
    start = next(block for block in runnable(ROOT / "README.md") if "dualtrack dev &" in block)
    blocks = [block for name in DOCS for block in runnable(ROOT / "docs" / name)]
    assert len(blocks) >= 5
    done = copy.run([start, *blocks])
    assert done.returncode == 0, done.stdout[-6_000:]
    assert "Traceback" not in done.stdout


def test_a_stack_in_the_background_is_not_at_the_address_of_an_earlier_dev(tmp_path: Path) -> None:
    """Else it answers, for its last second, whoever waits there for the next `dev`."""
    earlier = free_port()
    (tmp_path / "ports.json").write_text(json.dumps({"front": earlier}))
    with shared_stack(tmp_path, lambda _step: None) as url:
        assert not url.endswith(f":{earlier}")
    wait_for(lambda: not is_locked(tmp_path / KEEPER_FILE))
