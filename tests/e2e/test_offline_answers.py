"""Without any key: every suggestion of every agent and every example in the documents gets a real answer."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.profiles import all_profiles
from dualtrack_stack.local.offline_model.answer import MARK
from dualtrack_stack.local.stack import LocalStack

from tests.clients.stack_client import Person
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[2]
EMPTY = ("I know nothing about that", "gave no result", "nothing in it matches", "I cannot write")
"""Phrases of answers without content."""


class Reader(Person):
    """A user who asks agents."""

    def talk(self, message: str, **body: Any) -> dict[str, Any]:
        """The finished chat; ``body``: further fields of POST /v1/chats."""
        return self.finish(self.begin(message, **body))

    def begin(self, message: str, **body: Any) -> str:
        """Start a chat; its id."""
        response = self.http.post("/v1/chats", json={"message": message, **body})
        assert response.status_code == 202, response.text
        return str(response.json()["chat_id"])


@pytest.fixture(scope="module")
def reader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reader]:
    """A user with enough credits on a stack without any setting."""
    with LocalStack(tmp_path_factory.mktemp("offline"), environment={}) as stack:
        person = Reader(stack.url, stack.token("reader"))
        admin = Person(stack.url, stack.token("operator", admin=True))
        body = {"credits": 1000, "reason": "a test", "grant_id": "test"}
        admin.http.post(f"/v1/admin/users/{person.id}/grants", json=body).raise_for_status()
        admin.close()
        yield person
        person.close()


def examples() -> list[tuple[str, str, bool]]:
    """(profile, message, whether it goes on) of the ``dualtrack chat`` commands in the documents, in order.

    Without those that need a file or an agent of the reader's own (`test_documents` and `test_extend` run them), or
    another stack.
    """
    commands = []
    for path in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
        if path.name == "extend.md":
            continue
        # what is piped into a command is part of its question: tests/e2e/test_documents.py runs these
        for line in re.findall(r"^[^|\n]*\bdualtrack (chat [^`\n]*)", path.read_text(), re.MULTILINE):
            words = shlex.split(line, comments=True) if line.count('"') % 2 == 0 else []
            words = [word for word in words if not word.startswith((">", "<"))]
            if (
                len(words) < 2
                or words[-1] in {"…", "MESSAGE"}
                or '"' not in line
                or {"--file", "--url", "--schema"} & {*words}
            ):
                continue
            profile = words[words.index("--profile") + 1] if "--profile" in words else "assistant"
            if profile in all_profiles():
                goes_on = any(option in words for option in ("--last", "--conversation", "--fork"))
                commands.append((profile, words[-1], goes_on))
    return commands


def real(chat: dict[str, Any]) -> dict[str, Any]:
    """The chat; its answer must have content."""
    said = chat["response"]
    assert chat["status"] == "done", chat
    assert not [sign for sign in EMPTY if sign in said], said
    assert len(said.removeprefix(MARK).strip()) > 30, said
    return chat


@pytest.mark.parametrize("profile", list(all_profiles()))
def test_the_suggestions(reader: Reader, profile: str) -> None:
    started = [reader.begin(message, profile=profile) for message in all_profiles()[profile].suggestions]
    assert started
    for chat_id in started:
        chat = real(reader.finish(chat_id))
        assert chat["tool_calls"], chat
        assert not [call for call in chat["tool_calls"] if call["is_error"]], chat


@pytest.mark.skipif(not LONG, reason="a chat after the other: DUALTRACK_LONG=1")
def test_the_examples_of_the_documents(reader: Reader) -> None:
    asked = examples()
    assert len(asked) >= 5
    before: dict[str, Any] = {}
    for profile, message, goes_on in asked:
        target = {"conversation_id": before["conversation_id"]} if goes_on else {"profile": profile}
        before = real(reader.talk(message, **target))


def test_what_no_sample_shows_calls_no_tool(reader: Reader) -> None:
    """And the answer says how tools are called."""
    talk = ("Hello.", "Thanks!", "Write me a function.", "Who was Ada?")
    for chat_id in [reader.begin(message) for message in talk]:
        chat = reader.finish(chat_id)
        assert (chat["tool_calls"], chat["credits_used"]) == ([], 5), chat
        assert "`retrieve_documentation query=…`" in chat["response"]


def test_several_tools_are_called_by_their_names(reader: Reader) -> None:
    message = 'count_by_label label=Asset, find_node name="Biofilter 11"'
    chat = real(reader.talk(message, profile="graph"))
    assert [(call["tool"], call["input"]) for call in chat["tool_calls"]] == [
        ("count_by_label", {"label": "Asset"}),
        ("find_node", {"name": "Biofilter 11"}),
    ]
    assert "- total_count: 430" in chat["response"]
