"""A project of one's own, from an empty folder: made by the wheel, run with the wheel, without a checkout.

One project with one environment and one local stack. It has folders and modules of the names that ours have, and of
modules of Python, which nobody must find in place of them.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
from typing import TYPE_CHECKING, Final

import httpx
import pytest
from dualtrack_stack.stacks.function_specs import SPECS

from tests.clients.stack_client import PATIENCE, wait_for
from tests.drivers.documents import ROOT
from tests.drivers.installs import Installed, built_wheel, client_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TAKEN: Final = (
    "infra/__init__.py",
    "functions/turn/handler.py",
    "layers/core/python/dualtrack/__init__.py",
    "dualtrack_stack/__init__.py",
    "json.py",
)
"""Names of ours and of Python's, in the project; nobody imports them."""

COURSE: Final = (
    "Course Title: Sailing\nCourse Link: https://example.com/sailing\n\nLesson 0: Knots\nA bowline holds.\n"
)
NODES: Final = "node_id,label,name\nharbour-1,Harbour,Old harbour\n"


class Project:
    """A project's folder, and the commands of whoever works in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        hidden = (
            "VIRTUAL_ENV",
            "UV_NO_SYNC",
            "UV_PROJECT_ENVIRONMENT",
            "PYTHONPATH",
            "PYTEST",
            "DUALTRACK",
            "AWS_",
        )
        self.environment = {key: value for key, value in os.environ.items() if not key.startswith(hidden)} | {
            "NO_PROXY": "127.0.0.1",
            "DUALTRACK_IDLE_SECONDS": "0",
        }

    def run(self, *command: str) -> str:
        """What a command prints. Raises AssertionError if it fails."""
        done = subprocess.run(
            command,
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=400,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def dualtrack(self, *arguments: str) -> str:
        return self.run("uv", "run", "--offline", "--no-sync", "dualtrack", *arguments)

    @property
    def installed(self) -> Installed:
        return Installed(self.folder / ".venv")

    def package_hashes(self) -> dict[str, str]:
        """Of the installed package's files, by their paths; bytecode aside, which Python writes."""
        packages = self.installed.site_packages
        return {
            path.relative_to(packages).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for name in ("dualtrack", "dualtrack_stack")
            for path in (packages / name).rglob("*")
            if path.is_file() and path.parent.name != "__pycache__"
        }


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """As `dualtrack new` of a client makes it, its environment installed. Layers are built at most once: a wheel's are
    those of the checkout."""
    folder = tmp_path_factory.mktemp("empty")
    client = client_of(built_wheel(folder / "dist"), folder / "client")
    subprocess.run([client.folder / "bin" / "dualtrack", "new", "my-agents"], cwd=folder, check=True)
    made = Project(folder / "my-agents")
    for name in TAKEN:
        (made.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (made.folder / name).write_text("raise SystemExit('a project file was imported')\n")
    (made.folder / "tools" / "json.py").write_text("UNITS = 'metric'\n")
    (ROOT / ".build" / "layers").mkdir(parents=True, exist_ok=True)
    (made.folder / ".build").mkdir()
    (made.folder / ".build" / "layers").symlink_to((ROOT / ".build" / "layers").resolve())
    made.run("uv", "sync", "--quiet")
    return made


@pytest.fixture(scope="module")
def unchanged(project: Project) -> Iterator[None]:
    """Whatever a project does, the installed package is only read."""
    before = project.package_hashes()
    assert len(before) > 500
    yield
    assert project.package_hashes() == before


@pytest.fixture(scope="module")
def url(project: Project, unchanged: None) -> Iterator[str]:
    """The project's stack while ``dualtrack dev`` runs."""
    del unchanged
    command = ("uv", "run", "--offline", "--no-sync", "dualtrack", "dev", "--port", "0")
    with (project.folder.parent / "dev.log").open("wb") as log:
        running = subprocess.Popen(
            command,
            cwd=project.folder,
            env=project.environment,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
        try:
            file = project.folder / ".dualtrack" / "dev.json"
            wait_for(lambda: file.is_file() or running.poll() is not None)
            assert running.poll() is None, (project.folder.parent / "dev.log").read_text()
            yield json.loads(file.read_text())["url"]
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGTERM)
            running.wait(timeout=PATIENCE)


def test_the_offline_model_calls_the_project_s_tool(project: Project, url: str) -> None:
    del url
    said = project.dualtrack("chat", "weather city=Ottawa")
    assert "weather" in said
    assert "-12 °C, snow" in said
    assert "7 credits" in said
    assert "You answer questions about the weather" in said, "the project's prompt is quoted"


def test_a_tool_that_raises_is_found_without_an_aws_tool(project: Project, url: str) -> None:
    """By the command itself, and with what it printed by `logs`: in the project's own lines."""
    del url
    command = ("uv", "run", "--offline", "--no-sync", "dualtrack", "chat", "weather city=Atlantis")
    done = subprocess.run(
        command, cwd=project.folder, env=project.environment, capture_output=True, text=True, check=True
    )
    place = re.search(r"^tools/weather\.py:\d+: ValueError: There is no forecast", done.stderr, re.MULTILINE)
    assert place, done.stderr
    chat_id = re.search(r"dualtrack logs (ch_\w+)", done.stderr)
    assert chat_id, done.stderr
    told = project.dualtrack("logs", chat_id[1])
    assert "Runs a tool" in told
    assert "raise ValueError(f" in told
    assert "frames that are not the project's" in told
    assert "time_limit.py" not in told
    assert chat_id[1] in project.dualtrack("logs")


def test_a_chat_becomes_a_case_and_is_replayed(project: Project, url: str) -> None:
    """As the stack has recorded it: the case passes with the recorded answers, and nothing differs in a replay."""
    del url
    chat = json.loads(project.dualtrack("chat", "--json", "weather city=Lisbon"))
    made = project.dualtrack("eval", "add", chat["chat_id"], "--name", "Lisbon")
    assert "evals/lisbon.toml has the case" in made
    case = (project.folder / "evals" / "lisbon.toml").read_text()
    assert f'origin = {{ chat = "{chat["chat_id"]}"' in case
    assert "16 °C, rain" in case
    assert "passed  lisbon/Lisbon  (recorded" in project.dualtrack("eval", "evals/lisbon.toml")
    assert "nothing differs" in project.dualtrack("replay", chat["chat_id"])
    tool = project.folder / "tools" / "weather.py"
    before = tool.read_text()
    tool.write_text(before.replace("16 °C, rain", "21 °C, clear"))
    again = project.dualtrack("replay", chat["chat_id"], "--from", "q1-t1")
    tool.write_text(before)
    assert "-16 °C, rain" in again
    assert "+21 °C, clear" in again


def test_the_page_is_served(url: str) -> None:
    page = httpx.get(f"{url}/")
    assert page.status_code == httpx.codes.OK
    script = re.search(r'src="([^"]+\.js)"', page.text)
    assert script is not None
    assert httpx.get(f"{url}/{script[1].lstrip('./')}").status_code == httpx.codes.OK


def test_courses_and_a_graph_are_loaded(project: Project, url: str) -> None:
    del url
    (project.folder / "sailing.txt").write_text(COURSE)
    (project.folder / "nodes.csv").write_text(NODES)
    project.dualtrack("courses", "ingest", "sailing.txt")
    assert "Sailing" in project.dualtrack("courses", "list")
    project.dualtrack("graph", "load", "--reset", "nodes.csv")
    assert "Harbour" in project.dualtrack("graph", "schema")


def test_its_tests_pass(project: Project, unchanged: None) -> None:
    """Its folder is on pytest's path, so that its own ``json.py`` would be found first, there alone."""
    del unchanged
    tested = project.run("uv", "run", "--offline", "--no-sync", "pytest", "-q", "-o", "pythonpath=")
    assert "2 passed" in tested


def test_its_case_passes(project: Project, unchanged: None) -> None:
    """Without a stack, a key or the network; what CI reads is written."""
    del unchanged
    said = project.dualtrack("eval", "evals/weather.toml", "--junit", "evals.xml", "--html", "evals.html")
    assert "passed  weather/Boots in Ottawa  (offline" in said
    assert "1 of 1 passed" in said
    assert 'failures="0"' in (project.folder / "evals.xml").read_text()


def test_a_stage_is_synthesised(project: Project, unchanged: None) -> None:
    """With the project's profile in its library, and its tool in the function of its tools."""
    del unchanged
    project.dualtrack("aws", "synth", "--stage", "prod", "-o", "out/prod")
    written = project.folder / "out" / "prod"
    chat = json.loads((written / "Chat.template.json").read_text())
    functions = [r["Properties"] for r in chat["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    assert SPECS["own"].description in [function.get("Description") for function in functions]
    assert [path.read_text() for path in written.glob("asset.*/tools/weather.py")] == [
        (project.folder / "tools" / "weather.py").read_text()
    ]
    (profile,) = written.glob("asset.*/python/dualtrack/profiles/assistant.json")
    assert profile.read_text() == (project.folder / "profiles" / "assistant.json").read_text()
    shutil.rmtree(written)


def test_a_chat_s_price_is_counted_from_them(project: Project, unchanged: None) -> None:
    del unchanged
    priced = json.loads(project.dualtrack("aws", "cost", "--json"))
    assert priced["stage"] == "staging"
    assert {bill["what"] for bill in priced["bills"]} >= {"A month without chats"}


def test_what_is_written_is_the_project_s(project: Project, url: str) -> None:
    del url
    assert {"data", "logs"} & {path.name for path in (project.folder / ".dualtrack").iterdir()}
    assert (project.folder / ".build").is_dir()
