"""What a user sees when the model's service fails, and what the operator is advised to do."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from dualtrack.chat.end_chat import failure_of
from dualtrack.chat.turn_attempt import TurnCallbacks
from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.models.trouble import NOT_REACHED, NOT_SERVED, ErrorDetails, own_words, refusal

from tests.drivers.world import make_world, ref_of

DETAILS = ErrorDetails("anthropic", "/dualtrack-prod/anthropic")
EMPTY = "Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing."


def refused(status: int, said: str = "invalid x-api-key", kind: str = "authentication_error") -> ModelRefused:
    return ModelRefused("", status, kind=kind, said=said)


@pytest.mark.parametrize(
    ("error", "setting"),
    [
        (refused(401), "ANTHROPIC_API_KEY (the parameter /dualtrack-prod/anthropic)"),
        (refused(403), "ANTHROPIC_API_KEY"),
        (refused(400, EMPTY), "the credit of the account that ANTHROPIC_API_KEY"),
        (refused(402), "the credit of the account"),
        (refused(404, "model: claude-x"), "DUALTRACK_MODEL and ANTHROPIC_BASE_URL"),
    ],
)
def test_a_refusal_names_the_setting_to_the_operator_alone(error: ModelRefused, setting: str) -> None:
    code, message, operators = refusal(error, DETAILS)
    assert (code, message) == ("unavailable", NOT_SERVED)
    assert f"“{error.said}”" in operators
    assert f"Look at {setting}" in operators
    bedrock = refusal(error, ErrorDetails("bedrock"))[2]
    assert "access to the model in Amazon Bedrock" in bedrock
    assert "ANTHROPIC" not in bedrock.replace(error.said, "")


def test_any_other_refusal_is_an_internal_error() -> None:
    """It may quote the request, so its user is shown only the type."""
    code, message, operators = refusal(refused(400, "messages.3: bad", "invalid_request_error"), DETAILS)
    assert (code, "messages.3" in message, "messages.3" in operators) == ("internal", False, True)


def test_a_services_message_is_bounded_and_has_no_key_and_no_id_line() -> None:
    said = own_words("[ID:q1] key sk-ant-api03-abcdefgh AKIAIOSFODNN7EXAMPLE\nis bad " + "x y " * 1_000)
    assert len(said) <= 300
    assert "\n" not in said
    assert not [part for part in ("sk-ant", "AKIA", "[ID:") if part in said]


def test_a_chat_with_a_wrong_key_keeps_the_services_message_for_the_operator() -> None:
    with make_world() as world:
        problem = {"status": 401, "error_type": "authentication_error", "error_message": "invalid x-api-key"}
        world.model.script.add({**problem, "always": True})
        errors: list[ModelRefused] = []
        chat = world.start("Hello")
        assert (
            world.take_turn(ref_of(chat), TurnCallbacks(refused=errors.append), details=DETAILS)["next"]
            == "failed"
        )
        ended = world.load(chat)
        assert ended.error is not None
        assert "“invalid x-api-key” (401 authentication_error)" in ended.error["operator"]
        assert ended.error["message"] == NOT_SERVED
        assert [(error.status, error.said) for error in errors] == [(401, "invalid x-api-key")]
        other = world.ask("Hello again", user="bob")
        assert other.error is not None
        assert (other.error["code"], other.error["message"]) == ("unavailable", NOT_SERVED)


def closed_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


def test_an_unreachable_address_is_named() -> None:
    url = f"http://user:secret@127.0.0.1:{closed_port()}"
    asked: dict[str, Any] = {
        "model": "claude-haiku-5-5",
        "max_tokens": 1,
        "messages": [{"role": "user", "content": "x"}],
    }
    with pytest.raises(ModelUnavailable) as raised:
        connect(url, "key").stream(asked, lambda _: None)
    assert "No connection to http://127.0.0.1:" in str(raised.value)
    assert "secret" not in str(raised.value)
    cause = {"Error": "ModelUnavailable", "Cause": json.dumps({"errorMessage": str(raised.value)})}
    failed = failure_of(cause, DETAILS)
    assert (failed.code, failed.message) == ("unavailable", NOT_REACHED)
    assert "No connection to http://127.0.0.1:" in failed.operator
    assert "ANTHROPIC_BASE_URL" in failed.operator


def test_a_missing_key_is_named() -> None:
    said = "There is no key in the parameter /dualtrack-prod/anthropic."
    cause = {"Error": "MissingKey", "Cause": json.dumps({"errorMessage": said})}
    failed = failure_of(cause)
    assert (failed.message, said in failed.operator) == (NOT_SERVED, True)
