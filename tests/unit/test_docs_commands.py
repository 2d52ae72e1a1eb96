"""Every command that README and docs name exists: `tests/e2e/test_documents.py` runs those that a laptop can run."""

from __future__ import annotations

import re
import shlex
import subprocess
from importlib.util import find_spec
from typing import TYPE_CHECKING

import click
import pytest
from dualtrack_stack.cli.main import main

from tests.drivers.document_commands import benches_of, commands_in, commands_of, sessions
from tests.drivers.documents import DOCUMENTS, ROOT, commands, shell_blocks

if TYPE_CHECKING:
    from pathlib import Path


def unknown(line: str) -> str | None:
    """What of ``dualtrack LINE`` is no command or option of ours; the arguments may be anything."""
    command: click.Command = main
    path = "dualtrack"
    for word in _words(line):
        if word.startswith("--") or re.fullmatch(r"-\w", word):
            if word.partition("=")[0] not in _options(command):
                return f"{path} {word}"
        elif isinstance(command, click.Group):
            names = word.split("|")
            matches = [command.get_command(click.Context(command), name) for name in names]
            if not all(matches) and re.fullmatch(r"[a-z|]+", word):
                return f"{path} {word}"
            if matches[0] is None:
                return None
            command, path = matches[0], f"{path} {names[0]}"
    return None


def _words(line: str) -> list[str]:
    plain = line.replace("\\|", "|").replace("[", " ").replace("]", " ").replace("…", " … ")
    try:
        return shlex.split(plain)
    except ValueError:  # a quotation that ends in another line
        return plain.split()


def _expanded(path: str) -> list[str]:
    """The paths behind ``a_{b,c}.py``."""
    if braces := re.fullmatch(r"(.*)\{(.*)\}(.*)", path):
        return [f"{braces[1]}{name}{braces[3]}" for name in braces[2].split(",")]
    return [path.partition("::")[0]]


def _options(command: click.Command) -> set[str]:
    own = {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)}
    return own | {"--help", "-h"}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_its_commands_exist(path: Path) -> None:
    text = path.read_text()
    assert [line for line in commands(text, "uv run dualtrack ") if unknown(line)] == []
    modules = [*benches_of(path), *(line.split()[0] for line in commands(text, "uv run python -m "))]
    assert [module for module in modules if find_spec(module) is None] == []
    tests = [
        path
        for line in commands(text, "uv run pytest ")
        for word in line.split()
        if word.startswith("tests/")
        for path in _expanded(word)
    ]
    made = re.findall(r"New file `([^`]+)`", text)  # by the reader of a recipe (tests/unit/test_extend.py)
    assert [test for test in tests if test not in made and not (ROOT / test).exists()] == []
    scripts = re.findall(r"(?:bash|sh) (\.ci/\w+(?:\.sh)?)(?![\w*])", text)
    assert [script for script in scripts if not (ROOT / script).is_file()] == []


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_a_user_made_by_hand_has_a_verified_address(path: Path) -> None:
    """Cognito mails no code to one that is not, so a forgotten password would be lost."""
    made = re.findall(r"admin-create-user(?:[^\n]*\\\n)*[^\n]*", path.read_text())
    assert [command for command in made if "Name=email_verified,Value=true" not in command] == []


def test_a_recipe_of_just_exists() -> None:
    recipes = set(re.findall(r"^([\w-]+)[^:\n]*:$", (ROOT / "justfile").read_text(), re.MULTILINE))
    lines = "\n".join(line for path in DOCUMENTS for line in commands_of(path))
    named = set(re.findall(r"uv run just ([\w-]+)", lines))
    assert named
    assert named <= recipes


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_its_shell_blocks_are_shell(path: Path) -> None:
    text = path.read_text()
    for block in (*shell_blocks(text), *sessions(text)):
        assert list(commands_in(block)), "of no known kind: tests/drivers/document_commands.py"
        done = subprocess.run(["bash", "-n"], input=block, capture_output=True, text=True, check=False)
        assert done.returncode == 0, (block, done.stderr)


@pytest.mark.parametrize(
    ("line", "wrong"),
    [
        ('chat --last "Show me"', None),
        ('chat --latest "Show me"', "dualtrack chat --latest"),
        ("chats", "dualtrack chats"),
        ("credits show|spending|grant", None),
        ("credits show|spend", "dualtrack credits show|spend"),
        ("courses ingest notes/ --rest", "dualtrack courses ingest --rest"),
        ("…", None),
    ],
)
def test_a_command_that_is_none_is_seen(line: str, wrong: str | None) -> None:
    assert unknown(line) == wrong
