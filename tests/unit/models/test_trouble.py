"""What a user sees when the model's service fails, and what the operator is advised to do."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest
from dualtrack.chat.end_chat import failure_of
from dualtrack.chat.turn_attempt import TurnCallbacks
from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.models.anthropic import connect
from dualtrack.models.trouble import NOT_SERVED, ErrorDetails, own_words, refusal

from tests.drivers.world import make_world, ref_of

SHOWN = ErrorDetails(shown=True, provider="anthropic", key_id="/dualtrack-prod/anthropic")
HIDDEN = ErrorDetails()
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
def test_a_refusal_names_the_setting_if_the_stage_shows_details(error: ModelRefused, setting: str) -> None:
    code, message, operators = refusal(error, SHOWN)
    assert (code, message) == ("unavailable", operators)
    assert f"“{error.said}”" in message
    assert f"Look at {setting}" in message
    assert refusal(error, HIDDEN)[:2] == ("unavailable", NOT_SERVED)
    assert f"“{error.said}”" in refusal(error, HIDDEN)[2]
    bedrock = refusal(error, ErrorDetails(shown=True, provider="bedrock"))[1]
    assert "access to the model in Amazon Bedrock" in bedrock
    assert "ANTHROPIC" not in bedrock.replace(error.said, "")


def test_any_other_refusal_is_an_internal_error() -> None:
    """It may quote the user's request, so only the type is shown where details are off."""
    error = refused(400, "messages.3: bad block", "invalid_request_error")
    assert refusal(error, HIDDEN)[0] == "internal"
    assert "messages.3" not in refusal(error, HIDDEN)[1]
    assert "messages.3" in refusal(error, SHOWN)[1]


def test_a_services_message_is_bounded_and_has_no_key_and_no_id_line() -> None:
    said = own_words("[ID:q1] key sk-ant-api03-abcdefgh AKIAIOSFODNN7EXAMPLE\nis bad " + "x y " * 1_000)
    assert len(said) <= 300
    assert "\n" not in said
    assert not [part for part in ("sk-ant", "AKIA", "[ID:") if part in said]


def test_a_chat_with_a_wrong_key_shows_the_services_message() -> None:
    with make_world() as world:
        problem = {"status": 401, "error_type": "authentication_error", "error_message": "invalid x-api-key"}
        world.model.script.add({**problem, "always": True})
        errors: list[ModelRefused] = []
        chat = world.start("Hello")
        assert (
            world.take_turn(ref_of(chat), TurnCallbacks(refused=errors.append), details=SHOWN)["next"]
            == "failed"
        )
        ended = world.load(chat)
        assert ended.error is not None
        assert "“invalid x-api-key” (401 authentication_error)" in ended.error["message"]
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
    shown = failure_of(cause, SHOWN)
    assert shown.code == "unavailable"
    assert "No connection to http://127.0.0.1:" in shown.message
    assert "ANTHROPIC_BASE_URL" in shown.message
    assert "127.0.0.1" not in failure_of(cause).message


def test_a_missing_key_is_named() -> None:
    said = "There is no key in the parameter /dualtrack-prod/anthropic."
    cause = {"Error": "MissingKey", "Cause": json.dumps({"errorMessage": said})}
    assert said in failure_of(cause, SHOWN).message
    assert failure_of(cause).message == NOT_SERVED
