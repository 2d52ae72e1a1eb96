"""The documents' tables of settings are those of the declarations, and nothing else reads the environment."""

from __future__ import annotations

import ast
import dataclasses
import re
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack.settings import declared
from dualtrack_stack.setting_tables import DOCUMENTS, filled, table
from dualtrack_stack.stages import StageSettings

from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

READERS: Final = {
    "layers/core/python/dualtrack/settings.py": "settings",
    "layers/core/python/dualtrack/runtime/environment.py": "Lambda's variables, STAGE, a child's libraries",
    "infra/dualtrack_stack/app.py": "settings of a stage; the account that the CDK found",
    "infra/dualtrack_stack/bytecode.py": "XDG_CACHE_HOME",
    "infra/dualtrack_stack/layers.py": "the environment of uv",
    "infra/dualtrack_stack/local/emulator.py": "the emulator's own variables",
    "infra/dualtrack_stack/local/fork_server.py": "a copy's environment is its function's",
    "infra/dualtrack_stack/local/forks.py": "what Python reads as it begins",
    "infra/dualtrack_stack/local/stack.py": "settings; the environment of children",
    "infra/dualtrack_stack/local/started_with.py": "PYTHONPATH: whose code a stack runs",
    "infra/dualtrack_stack/local/shared.py": "settings that a running stack was started with",
    "infra/dualtrack_stack/local/testing/agents.py": "settings of the local stage",
    "infra/dualtrack_stack/local/synth.py": "the environment of the app",
    "infra/dualtrack_stack/costs.py": "JSII_NODE",
    "infra/dualtrack_stack/stacks/chat.py": "the region that the CDK found",
    "infra/dualtrack_stack/cli/check_command.py": "settings of the local stage",
    "infra/dualtrack_stack/cli/price_command.py": "settings of a stage",
    "infra/dualtrack_stack/cli/asking.py": "VISUAL, EDITOR",
    "infra/dualtrack_stack/cli/login_commands.py": "SSH_CONNECTION: no browser leads back to this machine",
    "infra/dualtrack_stack/evals/services.py": "settings of the local stage, the key of its model",
    "infra/dualtrack_stack/cli/aws/month.py": "settings of a stage",
    "infra/dualtrack_stack/cli/log_commands.py": "values of the project's secrets, to mask them",
    "infra/dualtrack_stack/cli/command.py": "NO_COLOR",
    "infra/dualtrack_stack/project/read.py": "settings of a stage",
    "infra/dualtrack_stack/cli/aws_commands.py": "settings of a stage",
    "infra/dualtrack_stack/cli/aws/cdk.py": "the environment of the CDK, PATH",
    "infra/dualtrack_stack/cli/aws/up.py": "settings of a stage",
}
"""The modules that read the environment, and what of it."""


@pytest.mark.parametrize("name", DOCUMENTS)
def test_the_tables_are_those_of_the_declarations(name: str) -> None:
    """``python -m dualtrack_stack.setting_tables`` writes them."""
    text = (ROOT / name).read_text(encoding="utf-8")
    assert filled(text) == text


def test_each_setting_stands_in_one_table() -> None:
    """What is documented can be set, and what can be set is documented."""
    documents = "".join((ROOT / name).read_text(encoding="utf-8") for name in DOCUMENTS)
    names = re.findall(r"<!-- settings: ([\w ]+) -->", documents)
    assert len(names) == len(set(names))
    rows = [line for name in names if name != "stage" for line in table(name).splitlines()]
    assert sorted(re.findall(r"^\| `(\w+)`", "\n".join(rows), re.MULTILINE)) == sorted(declared())


def test_each_field_of_a_stage_is_described() -> None:
    described = re.findall(r"`(\w+)`", "".join(re.findall(r"^\| (`.*?`) \|", table("stage"), re.MULTILINE)))
    assert sorted(described) == sorted({item.name for item in dataclasses.fields(StageSettings)} - {"name"})


def _reads_the_environment(path: Path) -> bool:
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return any(isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv") for node in nodes)


def _sources() -> Iterator[Path]:
    for folder in ("layers/core/python", "functions", "infra"):
        yield from (ROOT / folder).rglob("*.py")


def test_nothing_else_reads_the_environment() -> None:
    found = {str(path.relative_to(ROOT)) for path in _sources() if _reads_the_environment(path)}
    assert found == READERS.keys()
