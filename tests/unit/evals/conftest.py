"""One project for all tests here: its tools are imported, as modules, into this process."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack_stack.cli.main import main
from dualtrack_stack.cli.new_command import project_files
from dualtrack_stack.local.testing.agents import project_at

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from click.testing import Result

BRIEF = {
    "name": "brief",
    "description": "Says little.",
    "system": ["You answer in one line."],
    "tools": ["retrieve_full_context"],
    "mcp": [],
    "max_turns": 3,
    "max_tokens": 1_000,
    "result_limit": 10_000,
}
ORDERS = '''"""Orders, which change something."""
from dualtrack import tool

MADE: list[str] = []


@tool
def order(item: str) -> str:
    """Orders an item."""
    MADE.append(item)
    return f"ordered {item}"


@tool(approval="never")
def ship(item: str) -> str:
    """Ships an item, which nobody is asked about."""
    MADE.append(item)
    return f"shipped {item}"
'''


@pytest.fixture(scope="session")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """As `dualtrack new` makes it, with a second agent and a tool that changes something."""
    root = tmp_path_factory.mktemp("evaluated") / "evaluated"
    for path, text in project_files("evaluated", "").items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    (root / "profiles" / "brief.json").write_text(json.dumps(BRIEF))
    (root / "tools" / "orders.py").write_text(ORDERS)
    assistant = json.loads((root / "profiles" / "assistant.json").read_text())
    (root / "profiles" / "assistant.json").write_text(
        json.dumps({**assistant, "tools": [*assistant["tools"], "order", "ship"]})
    )
    before = {name for name in sys.modules if name.partition(".")[0] == "tools"}
    yield root
    project_at.cache_clear()
    sys.path[:] = [place for place in sys.path if place != str(root)]
    for name in {name for name in sys.modules if name.partition(".")[0] == "tools"} - before:
        del sys.modules[name]


@pytest.fixture
def root(made: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The project, in which the test is, with the cases that a new one has and nothing recorded."""
    monkeypatch.chdir(made)
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL", "DUALTRACK_MODEL"):
        monkeypatch.delenv(name, raising=False)
    first = (made / "evals" / "weather.toml").read_text()
    yield made
    subprocess.run(["rm", "-rf", str(made / "evals")], check=True)
    (made / "evals").mkdir()
    (made / "evals" / "weather.toml").write_text(first)


@pytest.fixture
def evaluate(root: Path) -> Callable[..., Result]:
    """`dualtrack eval` in the project, on other cases if they are given."""

    def run(*arguments: str, cases: str = "") -> Any:
        if cases:
            (root / "evals" / "weather.toml").write_text(cases)
        return CliRunner().invoke(main, ["eval", *arguments])

    return run
