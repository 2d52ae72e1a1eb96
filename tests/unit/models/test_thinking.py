"""The thinking fields of requests, by model; the figures are from the models' documentation."""

from __future__ import annotations

from typing import Any

import pytest
from dualtrack.models.thinking import (
    Thinking,
    short_fields,
    turn_fields,
    without_thinking,
)

HAIKU = "claude-haiku-5-5"
EARLIER = "claude-haiku-4-5-20251001"
SHOWN = {"type": "adaptive", "display": "summarized"}


def test_requests_to_a_model_of_the_fourth_generation_are_unchanged() -> None:
    """No setting changes them: the model accepts neither field."""
    thinking = Thinking(room=9_000, effort="high")
    assert turn_fields(EARLIER, 4_096, thinking) == {"model": EARLIER, "max_tokens": 4_096}
    assert short_fields(EARLIER, 300, thinking) == {"model": EARLIER, "max_tokens": 300}
    assert without_thinking({"model": EARLIER, "max_tokens": 4_096}, 4_096) is None


def test_a_turn_has_room_for_its_thinking_and_shows_it() -> None:
    assert turn_fields(HAIKU, 4_096, Thinking(room=5_000)) == {
        "model": HAIKU,
        "max_tokens": 9_096,
        "thinking": SHOWN,
    }


def test_effort_is_sent_if_it_is_set() -> None:
    assert turn_fields(HAIKU, 10, Thinking(effort="low"))["output_config"] == {"effort": "low"}
    assert "output_config" not in turn_fields(HAIKU, 10, Thinking())


def test_a_short_call_does_not_think() -> None:
    fields = short_fields(HAIKU, 300, Thinking(effort="max"))
    assert fields == {"model": HAIKU, "max_tokens": 300, "thinking": {"type": "disabled"}}


@pytest.mark.parametrize(
    ("model", "thinking"),
    [
        ("claude-opus-5", {"type": "disabled"}),
        ("claude-sonnet-5", {"type": "disabled"}),
        ("anthropic.claude-haiku-5-5", {"type": "disabled"}),
        ("claude-sonnet-5-5", {"type": "between_tools"}),
        ("claude-opus-4-8", None),
        ("claude-sonnet-4-20250514", None),
        ("claude-mythos-preview", None),
        ("a-model-of-ones-own", None),
    ],
)
def test_how_thinking_is_turned_off(model: str, thinking: Any) -> None:
    fields = short_fields(model, 300, Thinking())
    assert (fields["max_tokens"], fields.get("thinking")) == (300, thinking)


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-fable-5", "claude-mythos-5-1"])
def test_a_model_that_always_thinks_gets_room_in_every_call(model: str) -> None:
    assert short_fields(model, 300, Thinking(room=1_000)) == {"model": model, "max_tokens": 1_300}
    assert without_thinking(turn_fields(model, 10, Thinking()), 10) is None


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("claude-sonnet-4-5-20250929", False),
        ("claude-opus-4-5", True),
        ("claude-sonnet-4-6", True),
        ("claude-fable-5-2", True),
        ("a-model-of-ones-own", False),
    ],
)
def test_effort_is_sent_to_models_that_accept_it(model: str, takes: bool) -> None:
    assert ("output_config" in turn_fields(model, 10, Thinking(effort="low"))) == takes


def test_a_repeated_request_without_thinking() -> None:
    request = {**turn_fields(HAIKU, 4_096, Thinking(effort="xhigh")), "messages": [], "tools": []}
    assert without_thinking(request, 4_096) == {
        "model": HAIKU,
        "max_tokens": 4_096,
        "thinking": {"type": "disabled"},
        "messages": [],
        "tools": [],
    }
