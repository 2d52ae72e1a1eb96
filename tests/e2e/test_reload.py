"""A stack takes up what is saved in its project's folder: a project of its own, with a stack of its own."""

from __future__ import annotations

import json
import threading
import uuid
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from dualtrack_stack.local.reload import Reload
from dualtrack_stack.local.shared import shared_stack
from dualtrack_stack.local.stack import LocalStack
from dualtrack_stack.profiles import LIBRARY

from tests.clients.stack_client import KEYS, PATIENCE, Person, wait_for
from tests.servers.provider import ON_BEDROCK, model_settings
from tests.servers.tool_server import NAME

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from dualtrack_stack.local.offline_model.server import OfflineModel

    from tests.clients.script import Script
    from tests.servers.tool_server import ToolServer


@dataclass
class Dev:
    """A stack that looks at its project, and what its terminal says."""

    project: Path
    state_dir: Path
    stack: LocalStack
    said: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.reload = Reload(self.stack, self.said.append)

    def profile(self, name: str, **more: Any) -> None:
        """Save a profile as an editor does."""
        assistant = json.loads((LIBRARY / "assistant.json").read_text())
        self.save(f"profiles/{name}.json", json.dumps({**assistant, "name": name, "mcp": ["*"], **more}))

    def save(self, name: str, text: str) -> None:
        path = self.project / name
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(text)
        beside.replace(path)

    def taken_up(self) -> list[str]:
        """What is said until the stack has taken up what is saved."""
        before = len(self.said)
        self.until(self._is_taken_up)
        return self.said[before:]

    def _is_taken_up(self) -> bool:
        told = json.loads((self.state_dir / "dev.json").read_text())
        return bool(told["seen"] == self.stack.saved().digest())

    def until(self, true: Callable[[], object]) -> None:
        """Look until something is true."""

        def looked() -> object:
            self.reload.look()
            return true()

        wait_for(looked)

    def versions(self) -> int:
        """The versions of the function that calls the model."""
        name = self.stack.outputs["TurnFunction"]
        functions = self.stack.aws.client("lambda")
        return len(functions.list_versions_by_function(FunctionName=name)["Versions"]) - 1


@pytest.fixture(scope="module")
def running(
    model: OfflineModel, tools: ToolServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Dev]:
    project, state_dir = tmp_path_factory.mktemp("project"), tmp_path_factory.mktemp("state")
    (project / "profiles").mkdir()
    (project / "tools").mkdir()
    (project / "dualtrack.toml").touch()
    settings = {
        **KEYS,
        **model_settings(model),
        "MCP_SERVERS": json.dumps([{"name": NAME, "url": tools.url, "price_class": "other"}]),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(project)
        with LocalStack(state_dir, environment=settings) as stack:
            yield Dev(project, state_dir, stack)


@pytest.fixture
def dev(running: Dev) -> Iterator[Dev]:
    """A project with the profile ``helper`` alone."""
    running.profile("helper")
    running.taken_up()
    yield running
    for folder in ("profiles", "tools"):
        for path in (running.project / folder).glob("*.*"):
            path.unlink()
    running.save("dualtrack.toml", "")
    running.taken_up()


@pytest.fixture
def person(dev: Dev) -> Iterator[Person]:
    someone = Person(dev.stack.url, dev.stack.token(f"user-{uuid.uuid4().hex[:12]}"))
    yield someone
    someone.close()


WEATHER = """
import os
from dualtrack import tool

@tool(effect="reads")
def weather(city: str) -> str:
    \"\"\"Forecast for a city.\"\"\"
    return f"{city}: SKY, {os.environ.get('UNIT', 'Celsius')}"
"""


@dataclass(frozen=True)
class Asking:
    """A user whose chats call the project's tool."""

    dev: Dev
    person: Person
    script: Script

    def weather(self) -> str:
        """What the tool gives in a chat that begins now."""
        self.script.asks(("weather", {"city": "Ottawa"}))
        self.script.says("Done.")
        asked = {"message": self.script.question(), "profile": "helper"}
        started = self.person.http.post("/v1/chats", json=asked)
        assert started.status_code == 202, started.text
        chat = self.person.finish(started.json()["chat_id"])
        assert chat["status"] == "done", chat
        return json.dumps(self.script.requests()[-1]["messages"][-1]["content"])


@pytest.fixture
def asking(dev: Dev, person: Person, script: Script) -> Asking:
    """With the tool, and an agent that has it."""
    dev.save("tools/weather.py", WEATHER.replace("SKY", "sunny"))
    dev.profile("helper", tools=["weather"])
    (line,) = dev.taken_up()
    assert "tools/weather.py added: 1 tool, 1 profile, from the next chat on (" in line
    return Asking(dev, person, script)


def test_a_saved_tool_counts_from_the_next_chat_on(asking: Asking) -> None:
    """And only its own function is deployed anew if its signature stays."""
    before = asking.dev.versions()
    assert "Ottawa: sunny, Celsius" in asking.weather()
    asking.dev.save("tools/weather.py", WEATHER.replace("SKY", "cloudy"))
    (line,) = asking.dev.taken_up()
    assert line.startswith("tools/weather.py changed: 1 tool, 1 profile, from the next chat on (")
    assert "Ottawa: cloudy, Celsius" in asking.weather()
    assert asking.dev.versions() == before


def test_a_broken_tool_is_named_with_its_line_and_the_last_good_one_answers(asking: Asking) -> None:
    asking.dev.save("tools/weather.py", WEATHER.replace("city: str", "city"))
    (line,) = asking.dev.taken_up()
    assert line.startswith("tools/weather.py:5: ")
    assert line.endswith("The last good version stays.")
    assert "Ottawa: sunny, Celsius" in asking.weather()
    asking.dev.save("tools/weather.py", WEATHER.replace("SKY", "cloudy"))
    (line,) = asking.dev.taken_up()
    assert line.startswith("tools/weather.py changed: mended, ")
    assert "Ottawa: cloudy, Celsius" in asking.weather()


def test_a_tool_that_an_agent_names_cannot_be_deleted_alone(asking: Asking) -> None:
    (asking.dev.project / "tools" / "weather.py").unlink()
    (line,) = asking.dev.taken_up()
    assert "profiles/helper.json:" in line
    assert "there is no tool 'weather'" in line
    assert "Ottawa: sunny" in asking.weather()
    asking.dev.profile("helper")
    (line,) = asking.dev.taken_up()
    assert line.startswith("profiles/helper.json changed: mended, 1 profile, from the next chat on (")
    assert "weather" not in {tool["name"] for tool in asking.person.get("/v1/tools")["tools"]}


def test_settings_of_the_tools_and_of_the_stack(asking: Asking) -> None:
    """What decides which processes run counts from the next start on, and is named."""
    asking.dev.save("dualtrack.toml", '[tools]\nenvironment = {UNIT = "Fahrenheit"}\n')
    (line,) = asking.dev.taken_up()
    assert line.startswith("dualtrack.toml changed: 1 tool, 1 profile, from the next chat on (")
    assert "Ottawa: sunny, Fahrenheit" in asking.weather()
    settings = '[settings]\nDUALTRACK_MODEL = "claude-opus-5"\nALLOWED_ORIGINS = "https://a.example"\n'
    asking.dev.save("dualtrack.toml", settings)
    changed, later = asking.dev.taken_up()
    assert changed.startswith("dualtrack.toml changed: ")
    assert later == "ALLOWED_ORIGINS: from the next start on (Ctrl-C, then dev again)"
    asking.weather()
    assert asking.script.requests()[-1]["model"] == "claude-opus-5"
    asking.dev.until(
        lambda: httpx.get(f"{asking.dev.stack.url}/dev/status").json()["model"] == "claude-opus-5"
    )
    asking.dev.save("dualtrack.toml", "[settings]\nDUALTRACK_MODELL = 'x'\n")
    (line,) = asking.dev.taken_up()
    assert line.startswith("dualtrack.toml:2: ")
    assert line.endswith("The last good version stays.")


def listed(person: Person) -> dict[str, str]:
    """The descriptions of the agents, as a page has them after its reload."""
    return {profile["name"]: profile["description"] for profile in person.get("/v1/tools")["profiles"]}


def test_a_saved_profile_counts_from_the_next_chat_on(dev: Dev, person: Person, script: Script) -> None:
    dev.profile("helper", description="Second.", system=["You are the second."])
    (line,) = dev.taken_up()
    assert line.startswith("profiles/helper.json changed: 1 profile, from the next chat on (")
    assert listed(person)["helper"] == "Second."
    script.says("Done.")
    asked = {"message": script.question(), "profile": "helper"}
    chat = person.http.post("/v1/chats", json=asked, params={"wait": "25"}).json()
    assert chat["status"] == "answered"
    (request,) = script.requests()
    assert "You are the second." in json.dumps(request["system"])


def test_a_broken_file_keeps_the_last_good_version(dev: Dev, person: Person) -> None:
    before = dev.versions()
    dev.save("profiles/helper.json", '{"name": "helper",}')
    (line,) = dev.taken_up()
    assert "profiles/helper.json" in line
    assert line.endswith("The last good version stays.")
    assert "helper" in listed(person)
    assert dev.versions() == before
    dev.profile("helper", description="Mended.")
    (line,) = dev.taken_up()
    assert line.startswith("profiles/helper.json changed: mended, 1 profile, from the next chat on (")
    assert listed(person)["helper"] == "Mended."


def test_a_renamed_and_a_deleted_file(dev: Dev, person: Person) -> None:
    dev.profile("other")
    (dev.project / "profiles" / "helper.json").unlink()
    (line,) = dev.taken_up()
    assert line.startswith("profiles/helper.json deleted, profiles/other.json added: 1 profile, ")
    assert "other" in listed(person)
    assert "helper" not in listed(person)
    (dev.project / "profiles" / "other.json").unlink()
    (line,) = dev.taken_up()
    assert line.startswith("profiles/other.json deleted: no tools or profiles of its own, ")
    assert "other" not in listed(person)


def test_fifty_files_are_one_deployment(dev: Dev) -> None:
    before = dev.versions()
    for number in range(50):
        dev.profile(f"p{number}")
        dev.reload.look()  # while they are being written
    (line,) = dev.taken_up()
    assert line.startswith(
        "profiles/p0.json added, profiles/p1.json added, profiles/p10.json added and 47 more:"
    )
    assert "51 profiles" in line
    assert dev.versions() == before + 1


def test_a_chat_that_runs_goes_on(dev: Dev, person: Person, script: Script, tools: ToolServer) -> None:
    """With the agent with which it began; the versions that it may use are deleted after its end."""
    name = script.marker
    dev.profile("helper", system=["You are the first."])
    dev.taken_up()
    script.asks((f"{NAME}_hold", {"name": name}))
    script.says("It went on.")
    asked = {"message": script.question(), "profile": "helper"}
    chat_id = person.http.post("/v1/chats", json=asked).json()["chat_id"]
    assert tools.gate(name).arrived.wait(60)
    before = dev.versions()
    dev.profile("helper", system=["You are the second."])
    dev.taken_up()
    assert dev.versions() == before + 1
    tools.gate(name).released.set()
    assert [event.data.get("text") for event in person.events(chat_id) if event.kind == "done"]
    chat = person.chat(chat_id)
    assert (chat["status"], chat["response"]) == ("done", "It went on.")
    assert all("You are the first." in json.dumps(request["system"]) for request in script.requests())
    dev.until(lambda: dev.versions() == 1)
    assert listed(person)


def test_a_command_waits_until_the_stack_has_taken_up_what_is_saved(dev: Dev, person: Person) -> None:
    """The stack looks in this thread, the command runs in another."""
    answers: list[Any] = []
    headers = {"Authorization": f"Bearer {person.identity.token}"}

    def command() -> None:
        told: list[str] = []
        with shared_stack(dev.state_dir, told.append) as url:
            tools = httpx.get(f"{url}/v1/tools", headers=headers, timeout=PATIENCE)
        helper = [p["description"] for p in tools.json()["profiles"] if p["name"] == "helper"]
        answers.append((helper, told))

    def ask() -> None:
        thread = threading.Thread(target=command)
        thread.start()
        dev.until(lambda: not thread.is_alive())

    dev.profile("helper", description="Saved just now.")
    ask()
    dev.save("profiles/helper.json", "{")
    ask()
    (good, broken) = answers
    assert good == (["Saved just now."], [])
    assert broken[0] == ["Saved just now."]
    assert "profiles/helper.json" in broken[1][0]
    assert broken[1][0].endswith("The last good version answers.")


@pytest.mark.skipif(ON_BEDROCK, reason="Bedrock's endpoint has no cache diagnostics")
def test_another_system_text_is_told_by_the_service_in_the_receipt(
    dev: Dev, person: Person, script: Script
) -> None:
    """What was cached of the conversation is paid again: the one who saved the profile can see why."""
    for text in ("One.", "Two.", "Three."):
        script.says(text)
    asked = {"message": script.question("one"), "profile": "helper"}
    first = person.finish(person.http.post("/v1/chats", json=asked).json()["chat_id"])
    second = person.ask(script.question("two"), first["conversation_id"])
    dev.profile("helper", system=["You are another helper, who answers in one word."])
    dev.taken_up()
    third = person.ask(script.question("three"), first["conversation_id"])
    said = [
        [line["cache_miss"] for line in receipt["lines"] if line["kind"] == "model"]
        for receipt in (person.get(f"/v1/chats/{chat['chat_id']}/receipt") for chat in (second, third))
    ]
    assert said[0] == [None]
    ((miss,),) = said[1:]
    assert miss["reason"] == "system_changed"
    assert miss["tokens"] > 0
