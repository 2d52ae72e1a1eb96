"""Words for users and words for operators: nobody but administrators is told of settings, parameters and commands."""

from __future__ import annotations

import ast
import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import dualtrack
import pytest
from dualtrack.chat.end_chat import end_chat, failure_of
from dualtrack.models.trouble import NOT_SERVED, ErrorDetails
from dualtrack.tools.mcp.config import parse_servers
from dualtrack.tools.mcp.execute import CallTokens, NoToken, token_for

from tests.clients.api_client import Api, make_api
from tests.drivers.world import ref_of

if TYPE_CHECKING:
    from collections.abc import Iterator

OPERATORS: Final = re.compile(
    r"\b(?:DUALTRACK|ANTHROPIC|VOYAGE|CONTEXT7|GITHUB|MCP|BEDROCK|AWS|ERROR)_[A-Z_]+\b|/dualtrack-|\baws ssm\b|\buv run\b"
    r"|\bLook at [A-Zt]|environment variable|Parameter Store"
)
"""The name of a setting, a parameter's path, a command, advice to an operator."""

KEY: Final = "/dualtrack-prod/anthropic"
MISSING_KEY: Final = (
    f"There is no key in the parameter {KEY}. Put it there: aws ssm put-parameter --name {KEY} --value KEY."
)
FOR_OPERATORS: Final = {
    "models/trouble.py": "the operator's text of a failed chat",
    "models/providers/*/client.py": "an exception, whose text is the operator's",
    "models/providers/*/provider.py": "the operator's text of a failed chat",
    "runtime/secrets.py": "an exception, whose text is the operator's",
    "extras.py": "a command that says what to install",
    "settings.py": "the table of settings",
    "tools/mcp/config.py": "the refusal of a stage's settings",
    "knowledge/voyage.py": "the log of a search, and an administrator's job",
    "tools/documentation/context7.py": "the log of a search",
}
"""The modules whose sentences may name a setting, and who reads them."""


@pytest.fixture
def api() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api.of_new_user()


def seen(api: Api, chat_id: str) -> str:
    """Whatever the API tells the chat's user of it, with all events."""
    chat = api.get(f"/v1/chats/{chat_id}")
    conversation = f"/v1/conversations/{chat['conversation_id']}"
    told: list[Any] = [chat, api.get(f"/v1/chats/{chat_id}/receipt")]
    told += [api.get(f"{conversation}?track={track}") for track in ("full", "summarised")]
    told += [api.get(path) for path in ("/v1/tools", "/v1/credits", "/v1/conversations")]
    told += [(event.event, dict(event.data)) for event in api.world.stores.log(api.chat(chat_id)).events()]
    return json.dumps(told, default=str)


def failed(
    api: Api, details: ErrorDetails, refusal: dict[str, Any] | None, cause: dict[str, str] | None
) -> str:
    """A chat that the model's service refuses, or that the workflow ends with this cause."""
    chat_id: str = api.start("Hello.")["chat_id"]
    if refusal:
        api.world.model.script.add({"match": "turn", **refusal})
        assert api.world.take_turn(ref_of(api.chat(chat_id)), details=details)["next"] == "failed"
    else:
        end_chat(api.world.stores, ref_of(api.chat(chat_id)), failure_of(cause, details))
    return chat_id


def cause_of(name: str, said: str) -> dict[str, str]:
    return {"Error": name, "Cause": json.dumps({"errorMessage": said})}


CASES: Final[dict[str, tuple[dict[str, Any] | None, dict[str, str] | None, str]]] = {
    "a wrong key": (
        {"status": 401, "error_type": "authentication_error", "error_message": "invalid x-api-key"},
        None,
        f"Look at ANTHROPIC_API_KEY (the parameter {KEY})",
    ),
    "no such model": ({"status": 404, "error_message": "model: x"}, None, "Look at DUALTRACK_MODEL"),
    "a bad request": ({"status": 400, "error_message": "messages.0: bad"}, None, "“messages.0: bad”"),
    "no key": (None, cause_of("MissingKey", MISSING_KEY), "aws ssm put-parameter"),
    "no connection": (
        None,
        cause_of("ModelUnavailable", "No connection to http://127.0.0.1:1: refused."),
        "Look at ANTHROPIC_BASE_URL",
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_the_user_of_a_failed_chat_reads_no_advice_to_operators_and_an_administrator_does(
    api: Api, case: str
) -> None:
    refusal, cause, advice = CASES[case]
    chat_id = failed(api, ErrorDetails("anthropic", KEY), refusal, cause)
    assert OPERATORS.findall(seen(api, chat_id)) == []
    assert advice not in seen(api, chat_id)
    assert "for_operator" not in api.get(f"/v1/chats/{chat_id}/receipt")
    admin = api.of_new_user()
    receipt = admin.of(admin.user, ["admin"]).get(f"/v1/chats/{chat_id}/receipt")
    assert advice in receipt["for_operator"]


def test_a_chat_that_failed_for_no_reason_of_the_operators_has_no_text_for_them(api: Api) -> None:
    chat_id = failed(api, ErrorDetails(), None, {"Error": "States.Timeout"})
    assert "for_operator" not in api.of(api.user, ["admin"]).get(f"/v1/chats/{chat_id}/receipt")
    assert NOT_SERVED not in seen(api, chat_id)


def test_the_words_of_a_server_without_a_token_are_the_users() -> None:
    (server,) = parse_servers(
        json.dumps(
            [
                {
                    "name": "wiki",
                    "url": "https://wiki.test/mcp",
                    "auth": {"type": "secret", "secret_id": "/dualtrack-prod/wiki"},
                    "price_class": "other",
                }
            ]
        )
    )
    with pytest.raises(NoToken) as raised:
        token_for(server, "ann", CallTokens(lambda _: None, lambda _: ""))
    assert OPERATORS.findall(str(raised.value)) == []
    assert "operator" not in str(raised.value)


def sentences(path: Path) -> Iterator[str]:
    """The literals of a module that may be shown: with a space, and no docstring."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    documents = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        value = node.value if isinstance(node, ast.Constant) and id(node) not in documents else None
        if isinstance(value, str) and " " in value.strip():
            yield value


def test_settings_are_named_only_where_operators_read() -> None:
    """Every sentence of the library: a new one that names a setting has to say who reads it."""
    root = Path(dualtrack.__file__).parent
    found = {
        re.sub(r"(?<=providers/)\w+(?=/)", "*", str(path.relative_to(root)))
        for path in sorted(root.rglob("*.py"))
        if any(OPERATORS.search(sentence) for sentence in sentences(path))
    }
    assert found == set(FOR_OPERATORS)


def test_the_page_names_no_setting() -> None:
    """It has one command, which grants the local stack's own user credits."""
    page = Path(__file__).parents[3] / "infra" / "dualtrack_stack" / "page"
    files = [page / "index.html", *sorted((page / "js").glob("*.js"))]
    found = {path.name for path in files if OPERATORS.search(path.read_text(encoding="utf-8"))}
    assert found == {"session.js"}
