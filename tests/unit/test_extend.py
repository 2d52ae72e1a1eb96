"""docs/extend.md, followed literally: its blocks are written into a copy of the project, its commands are run there."""

from __future__ import annotations

import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from tests.drivers.documents import ROOT, copy_project
from tests.long_forms import LONG
from tests.servers.processes import free_port

if TYPE_CHECKING:
    from collections.abc import Iterator

DOCUMENT: Final = ROOT / "docs" / "extend.md"
PORT: Final = "8765"
"""The one thing that is not taken literally: a free port stands in its place."""

_BLOCK: Final = re.compile(r"^```(?P<language>\w+)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
_FILE: Final = re.compile(r"(?P<how>New file|In) `(?P<path>[^`]+)`:")
STACK: Final = "On the local stack"
ASIDE: Final = "In a terminal of its own:"

PROOFS: Final = {
    "A tool": """
from dualtrack.tool_values import Injected
from dualtrack.tools.registry import IN_HOUSE, in_house_tools as run
tool = IN_HOUSE.get('days_between')
print(tool is not None and tool.name in run(tool.kind, Injected).tools)
""",
    "A profile": """
from dualtrack_stack.project.model import packaged
from dualtrack_stack.project.read import read_project
from dualtrack_stack.roots import project_root
print(any(b'Plans with dates.' in content for content in packaged(read_project(project_root(), environ={})).values()))
""",
    "An MCP server": """
from dualtrack_stack.settings import read_settings
from dualtrack.tools.mcp.config import parse_servers
servers = read_settings('staging', {}).checked().mcp_servers
print([server.url for server in parse_servers(servers)] == ['https://shelf.example.com/mcp'])
""",
    "A price": """
from dualtrack.api.tool_list import tools_json
from dualtrack.profiles import all_profiles
from dualtrack.tools.mcp.catalogue import Catalogue
from dataclasses import replace
from dualtrack.tools.registry import IN_HOUSE
profile = replace(all_profiles()['assistant'], tools=tuple(IN_HOUSE))
tools = tools_json([profile], Catalogue(), '')['tools']
print([tool['price'] for tool in tools if tool['name'] == 'days_between'] == [1])
""",
    "A route": """
from dualtrack.api.openapi import openapi_document
from dualtrack.api.table import ROUTES
print('get' in openapi_document(ROUTES)['paths'].get('/v1/plans', {}))
""",
    "A provider of the model": """
from dualtrack.checked_settings import allowed, checked
from dualtrack.settings import declared
from dualtrack_stack.stacks.model_services import unused_keys, used
chosen = {'DUALTRACK_PROVIDER': 'portico'}
is_there = 'portico' in allowed(declared()['DUALTRACK_PROVIDER'])
print(is_there and [provider.title for provider in used(checked(chosen))] == ['Portico'] and not unused_keys(checked(chosen)))
""",
    "A function": """
from dualtrack_stack.stacks.function_specs import SPECS
from dualtrack_stack.machines import CHAT, steps_of
print(SPECS.get('dates') in steps_of(CHAT))
""",
}
"""For each recipe a program that prints True when it was followed, and False before."""

DEPLOYED: Final = """
import json
from tests.drivers.documents import ROOT
template = json.loads((ROOT / 'infra' / 'dualtrack_stack' / 'local' / 'templates' / 'Chat.template.json').read_text())
resources = template['Resources'].values()
def of(kind):
    return [resource['Properties'] for resource in resources if resource['Type'] == kind]
machines = of('AWS::StepFunctions::StateMachine')
called = [machine for machine in machines if 'Dates' in machine.get('DefinitionSubstitutions', {})]
functions = of('AWS::Lambda::Function')
named = [function['Environment']['Variables'].get('POWERTOOLS_SERVICE_NAME') for function in functions]
print('dates' in named and len(called) == 1)
"""
"""Likewise of the function, when its templates were written: in the long form."""

SLOW: Final = "A function"
"""Its commands synthesise the templates: for the long form alone."""


@dataclass(frozen=True, slots=True)
class Block:
    """A block of the document and the sentence before it."""

    before: str
    language: str
    text: str


@dataclass(frozen=True, slots=True)
class Copy:
    """A copy of the project, which runs with the packages of this checkout."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """Without what tests have told this process; the local stack has a state of its own."""
        kept = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "DUALTRACK"))
        }
        paths = (self.folder, self.folder / "layers" / "core" / "python", self.folder / "infra")
        return kept | {
            "PYTHONPATH": os.pathsep.join(map(str, paths)),
            "UV_PROJECT_ENVIRONMENT": sys.prefix,
            "UV_NO_SYNC": "1",
            "UV_OFFLINE": "1",
            "XDG_STATE_HOME": str(self.folder / "state"),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        }

    def run(self, script: str) -> str:
        """What a script prints; it must succeed."""
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", script],
            cwd=self.folder,
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=600,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    @contextlib.contextmanager
    def beside(self, script: str, port: int) -> Iterator[None]:
        """While it runs, from when its port is open."""
        process = subprocess.Popen(
            ["bash", "-c", script], cwd=self.folder, env=self.environment(), process_group=0
        )
        try:
            _await_port(process, port)
            yield
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            process.wait()

    def write(self, block: Block) -> None:
        """Do with a block what the sentence before it says."""
        named = _FILE.fullmatch(block.before)
        assert named, f"no file is named: {block.before}"
        path = self.folder / named["path"]
        if named["how"] == "New file":
            assert not path.exists(), f"{path} is there"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text)
        else:
            path.write_text(changed(path.read_text(), block.text, named["path"]))


def changed(text: str, diff: str, where: str) -> str:
    """The text with a change that has no line numbers: what stands there now must do so once."""
    lines = [(line[:1], line[1:]) for line in diff.splitlines()]
    old = "".join(f"{line}\n" for sign, line in lines if sign != "+")
    new = "".join(f"{line}\n" for sign, line in lines if sign != "-")
    there = re.compile(f"^{re.escape(old)}", re.MULTILINE)
    times = len(there.findall(text))
    assert times == 1, f"{where} has {times} times:\n{old}"
    return there.sub(lambda _: new, text)


def recipes() -> dict[str, list[Block]]:
    """The blocks of each chapter on what is done in this repository."""
    text = DOCUMENT.read_text().partition("\n## In this repository\n")[2]
    chapters = re.split(r"^## (.+)$", text, flags=re.MULTILINE)[1:]
    return {title: list(blocks_of(text)) for title, text in zip(chapters[::2], chapters[1::2], strict=True)}


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a chapter."""
    for block in _BLOCK.finditer(text):
        before = text[: block.start()].strip().splitlines()[-1]
        yield Block(before, block["language"], block["text"])


def follow(copy: Copy, blocks: list[Block], *, with_commands: bool) -> None:
    """All that a recipe says, in its order; what is for the local stack in the long form alone."""
    port = free_port()
    blocks = [replace(block, text=block.text.replace(PORT, str(port))) for block in blocks]
    for block in blocks:
        if _FILE.fullmatch(block.before):
            copy.write(block)
    if not with_commands:
        return
    commands = [
        block for block in blocks if block.language == "sh" and (LONG or not block.before.startswith(STACK))
    ]
    script = "".join(command.text for command in commands if command.before != ASIDE)
    with contextlib.ExitStack() as beside:
        for command in commands:
            if command.before == ASIDE:
                beside.enter_context(copy.beside(command.text, port))
        printed = copy.run(script)
    for block in blocks:
        if block.language == "text":
            assert block.text in printed, f"{block.text}is not in\n{printed}"


def _await_port(process: subprocess.Popen[bytes], port: int) -> None:
    while process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        time.sleep(0.05)
    raise AssertionError(f"it ended with {process.returncode}")


@pytest.mark.timeout(1_800)
@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="no clone: what belongs to the project is not known")
def test_every_recipe_works_on_a_copy_of_the_project(tmp_path: Path) -> None:
    followed = recipes()
    assert [title for title in followed if title in PROOFS] == list(PROOFS)
    copy_project(tmp_path)
    copy = Copy(tmp_path)
    proofs = "".join([*PROOFS.values(), DEPLOYED if LONG else ""])
    proof = f"uv run python -c {shlex.quote(proofs)}"
    count = proofs.count("print(")
    assert copy.run(proof).split() == ["False"] * count
    for title in PROOFS:
        follow(copy, followed[title], with_commands=LONG or title != SLOW)
    assert copy.run(proof).split() == ["True"] * count
    if shutil.which("ruff"):  # of the group `lint`, which a plain `uv sync` leaves out
        copy.run("ruff check . && ruff format --check .")


@pytest.mark.parametrize("text", ["a\nd\n", "a\nb\na\nb\n", "xa\nb\n", "a\nbx\n"])
def test_a_change_that_no_longer_fits_is_seen(text: str) -> None:
    diff = " a\n-b\n+c\n"
    assert changed("a\nb\nd\n", diff, "x") == "a\nc\nd\n"
    with pytest.raises(AssertionError, match="x has"):
        changed(text, diff, "x")
