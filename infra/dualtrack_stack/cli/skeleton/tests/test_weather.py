"""Whole chats, without a stack and without a model: each item of `model` is what one call of the model answers."""

from __future__ import annotations

from dualtrack.testing import calls, local_chat


def test_the_assistant_reads_the_forecast() -> None:
    with local_chat("assistant", model=[calls("weather", city="Ottawa"), "It snows in Ottawa."]) as chat:
        answer = chat.ask("Do I need boots in Ottawa?")
    assert answer.status == "done"
    assert [(call.name, call.is_error) for call in answer.calls] == [("weather", False)]
    assert "snow" in answer.calls[0].result
    assert answer.text == "It snows in Ottawa."


def test_the_model_is_told_which_cities_there_are() -> None:
    with local_chat("assistant", model=[calls("weather", city="Atlantis"), "I do not know."]) as chat:
        answer = chat.ask("And in Atlantis?")
    assert answer.calls[0].is_error
    assert "there are Ottawa, Lisbon" in answer.calls[0].result
