"""Claude on Bedrock, on the wire: signed with IAM credentials, with only the fields that the endpoint accepts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.models.open_model import open_model
from dualtrack.models.provider import provider_of
from dualtrack.models.providers.bedrock.client import BedrockClaude, connect
from dualtrack.models.providers.bedrock.provider import SIGNING
from dualtrack.models.thinking import Thinking, short_fields, turn_fields
from dualtrack.runtime.secrets import MissingKey
from dualtrack.settings import Settings
from dualtrack_stack.local.loopback import serve_in_thread
from pydantic import BaseModel
from starlette.applications import Starlette
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from tests.servers.bedrock import KEYS, REGION, serve_bedrock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from starlette.requests import Request

    from tests.servers.bedrock import Bedrock

HAIKU = "claude-haiku-5-5"
ASKED: dict[str, Any] = {"messages": [{"role": "user", "content": "Say something of it."}]}
GIVEN = {
    "aws_access_key": KEYS["AWS_ACCESS_KEY_ID"],
    "aws_secret_key": KEYS["AWS_SECRET_ACCESS_KEY"],
    "aws_session_token": KEYS["AWS_SESSION_TOKEN"],
}


class Colour(BaseModel):
    """A colour."""

    name: str


@pytest.fixture(scope="module")
def served() -> Iterator[Bedrock]:
    with serve_bedrock() as endpoint:
        yield endpoint


@pytest.fixture
def bedrock(served: Bedrock, monkeypatch: pytest.MonkeyPatch) -> Bedrock:
    """With the role's credentials in the environment, as Lambda puts them there."""
    served.reset()
    served.gate.refusals.clear()
    for name, value in {**KEYS, "AWS_REGION": REGION}.items():
        monkeypatch.setenv(name, value)
    return served


@pytest.fixture
def client(bedrock: Bedrock) -> Iterator[Callable[..., BedrockClaude]]:
    """Create clients that are closed after the test."""
    made: list[BedrockClaude] = []

    def make(**change: str) -> BedrockClaude:
        made.append(connect.__wrapped__(bedrock.url, json.dumps({**GIVEN, **change})))
        return made[-1]

    yield make
    for created in made:
        created.claude.client.close()


@pytest.fixture
def model(client: Callable[..., BedrockClaude]) -> BedrockClaude:
    return client()


def body(bedrock: Bedrock) -> dict[str, Any]:
    return dict(bedrock.requests[-1].body)


def test_a_turn_thinks_calls_tools_and_reads_the_cache(bedrock: Bedrock, model: BedrockClaude) -> None:
    tool = {"name": "look", "description": "Looks.", "input_schema": {"type": "object", "properties": {}}}
    system = [{"type": "text", "text": "word " * 3_000, "cache_control": {"type": "ephemeral"}}]
    request = {**turn_fields(HAIKU, 500, Thinking(effort="low")), **ASKED, "tools": [tool], "system": system}
    bedrock.script.add({"content": [{"type": "tool_use", "name": "look", "input": {}}]})
    texts: list[str] = []
    first = model.stream(request, texts.append)
    assert [block["name"] for block in first.content if block["type"] == "tool_use"] == ["look"]
    assert not texts
    second = model.stream(request, texts.append)
    assert "".join(texts) == "".join(block["text"] for block in second.content if block["type"] == "text")
    assert {block["type"] for block in second.content} == {"thinking", "text"}
    assert 0 < first.usage.cache_write_tokens == second.usage.cache_read_tokens
    assert body(bedrock)["thinking"] == {"type": "adaptive", "display": "summarized"}
    assert body(bedrock)["output_config"] == {"effort": "low"}


def test_a_short_answer_is_its_text_and_its_tokens(bedrock: Bedrock, model: BedrockClaude) -> None:
    bedrock.script.add({"text": "A short one."})
    text, usage = model.complete({**short_fields(HAIKU, 100, Thinking()), **ASKED}, 30)
    assert text == "A short one."
    assert usage.output_tokens > 0


def answer(**fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "tool_use", "name": "answer", "input": fields}]}


def test_a_structured_answer_is_the_input_of_a_tool(bedrock: Bedrock, model: BedrockClaude) -> None:
    bedrock.script.add(answer(name="red"))
    said, usage = model.parse({**short_fields(HAIKU, 100, Thinking()), **ASKED}, Colour, 30)
    assert said == Colour(name="red")
    assert usage.prompt_tokens > 0 < usage.output_tokens
    choice = {"type": "tool", "name": "answer", "disable_parallel_tool_use": True}
    assert body(bedrock)["tool_choice"] == choice


def test_a_model_that_always_thinks_is_told_to_call_it(bedrock: Bedrock, model: BedrockClaude) -> None:
    bedrock.script.add(answer(name="red"))
    asked = {**short_fields("claude-opus-5-5", 100, Thinking()), **ASKED, "system": "You name colours."}
    assert model.parse(asked, Colour, 30)[0] == Colour(name="red")
    assert body(bedrock)["tool_choice"]["type"] == "auto"
    assert body(bedrock)["system"].startswith("You name colours.\nGive your answer by calling the tool")


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ({"text": "Red."}, "end_turn"),
        ({"content": [], "stop_reason": "refusal"}, "refusal"),
        (answer(hue=3), "ValidationError"),
        ({"content": answer(name="red")["content"] * 2}, "2 answers"),
        ({"status": 529}, "529"),
    ],
)
def test_a_declined_or_malformed_answer_is_rejected(
    bedrock: Bedrock, model: BedrockClaude, said: dict[str, Any], reason: str
) -> None:
    bedrock.script.add(said)
    with pytest.raises(ModelUnavailable, match=reason):
        model.parse({**short_fields(HAIKU, 100, Thinking()), **ASKED}, Colour, 30)


def test_the_role_of_the_function_signs(bedrock: Bedrock) -> None:
    settings = Settings(dualtrack_provider="bedrock", bedrock_base_url=bedrock.url)
    bedrock.script.add({"text": "Signed."})
    opened = open_model(settings)
    assert isinstance(opened, BedrockClaude)
    assert opened.complete({**short_fields(HAIKU, 9, Thinking()), **ASKED}, 30)[0] == "Signed."
    opened.claude.client.close()
    connect.cache_clear()
    sent = bedrock.requests[-1].headers
    assert "x-api-key" not in sent
    assert sent["anthropic-version"]


def test_a_chat_begun_with_another_provider_stays_there(bedrock: Bedrock) -> None:
    settings = Settings(dualtrack_provider="anthropic", bedrock_base_url=bedrock.url)
    assert open_model(settings, "bedrock") is connect(bedrock.url, "")
    connect.cache_clear()


@pytest.mark.parametrize("change", [{"aws_secret_key": "another"}, {"aws_access_key": "AKIASTRANGER"}])
def test_a_wrong_signature_is_refused(
    bedrock: Bedrock, client: Callable[..., BedrockClaude], change: dict[str, str]
) -> None:
    with pytest.raises(ModelRefused, match="403"):
        client(**change).complete({**short_fields(HAIKU, 9, Thinking()), **ASKED}, 30)
    assert not bedrock.requests


def test_a_signature_for_another_region_is_refused(
    bedrock: Bedrock, client: Callable[..., BedrockClaude], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    with pytest.raises(ModelRefused, match="403"):
        client().complete({**short_fields(HAIKU, 9, Thinking()), **ASKED}, 30)
    assert bedrock.gate.refusals == ["signed for bedrock-mantle in eu-west-1"]


def test_the_endpoint_refuses_structured_output(bedrock: Bedrock, model: BedrockClaude) -> None:
    """The reason for the replacement: the plain client's form is refused."""
    with pytest.raises(ModelRefused, match="400"):
        model.claude.parse({**short_fields("anthropic.claude-haiku-5-5", 9, Thinking()), **ASKED}, Colour, 30)


def test_a_signature_is_sent_only_to_its_own_address() -> None:
    paths: list[str] = []

    async def away(request: Request) -> Response:
        paths.append(request.url.path)
        return RedirectResponse("/elsewhere", status_code=307)

    with serve_in_thread(Starlette(routes=[Route("/{rest:path}", away, methods=["GET", "POST"])])) as url:
        service = connect.__wrapped__(f"{url}/anthropic", json.dumps(GIVEN))
        with pytest.raises(ModelUnavailable):
            service.complete({**short_fields(HAIKU, 9, Thinking()), **ASKED}, 30)
        service.claude.client.close()
    assert paths == ["/anthropic/v1/messages"]


def test_missing_credentials_are_reported(bedrock: Bedrock, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in KEYS:
        monkeypatch.delenv(name)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(MissingKey, match="AWS_ACCESS_KEY_ID"):
        connect.__wrapped__(bedrock.url)


@pytest.mark.parametrize(
    ("name", "sent"),
    [
        ("claude-haiku-5-5", "anthropic.claude-haiku-5-5"),
        ("claude-haiku-4-5-20251001", "anthropic.claude-haiku-4-5"),
        ("anthropic.claude-opus-5-5", "anthropic.claude-opus-5-5"),
    ],
)
def test_model_names_become_ids_of_bedrock(name: str, sent: str) -> None:
    assert provider_of("bedrock").served(name) == sent


def test_an_address_names_the_region_that_is_signed_for() -> None:
    assert SIGNING.region_of(SIGNING.endpoint("eu-west-1")) == "eu-west-1"
    assert SIGNING.region_of("http://127.0.0.1:9/anthropic") == ""
    assert SIGNING.region_of("https://bedrock-mantle.eu-west-1.api.aws.example.org/anthropic") == ""
