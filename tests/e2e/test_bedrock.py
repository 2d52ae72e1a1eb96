"""The whole stack on Bedrock: turns, tools, search, summaries, signed with the user's credentials. The other tests of
this folder run on it too, with ``DUALTRACK_TEST_PROVIDER=bedrock`` (docs/aws/bedrock.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.local.loopback import serve_in_thread
from dualtrack_stack.local.sample_docs.server import create_app
from dualtrack_stack.local.stack import CannotStart, LocalStack

from tests.clients.stack_client import Person
from tests.servers.bedrock import serve_bedrock

if TYPE_CHECKING:
    from pathlib import Path


def test_turns_tools_search_and_summaries(tmp_path: Path) -> None:
    with (
        serve_bedrock() as bedrock,
        serve_in_thread(create_app()) as documents,
        LocalStack(tmp_path, environment={**bedrock.settings, "CONTEXT7_BASE_URL": documents}) as stack,
    ):
        ann = Person(stack.url, stack.token("ann"))
        first = ann.ask("How do I set up OAuth for the X Ads API?")
        assert (first["status"], first["stop"]) == ("done", "complete")
        assert [call["tool"] for call in first["tool_calls"]] == ["retrieve_documentation"]
        assert not first["tool_calls"][0]["is_error"]
        assert first["summary"]
        second = ann.ask("Show me the full result of the documentation again.", first["conversation_id"])
        assert second["status"] == "done"
        assert [call["tool"] for call in second["tool_calls"]] == ["retrieve_full_context"]
        ann.close()
    assert not bedrock.gate.refusals
    assert not [request.refused for request in bedrock.requests if request.refused]
    bodies = [request.body for request in bedrock.requests]
    assert {"answer"} == {tool["name"] for body in bodies if "tool_choice" in body for tool in body["tools"]}
    assert sum(bool(body.get("stream")) for body in bodies) >= 4


def test_without_credentials_and_address_it_says_what_to_do(tmp_path: Path) -> None:
    with (
        pytest.raises(CannotStart, match="needs AWS credentials"),
        LocalStack(tmp_path, environment={"DUALTRACK_PROVIDER": "bedrock"}),
    ):
        pass
