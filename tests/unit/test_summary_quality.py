"""The bench of summary lengths runs; its figures need a real model (bench/summary_quality.py)."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from dualtrack.models.providers.anthropic.client import connect
from dualtrack_stack.local.offline_model.server import serve_offline_model

from bench.summary_quality import main, measure, records_and_questions

if TYPE_CHECKING:
    import pytest


def test_every_question_is_asked_and_its_answer_is_in_the_record() -> None:
    records, questions = records_and_questions(3)
    whole = {record.record_id: record.content for record in records}
    assert all(asked.word in whole[asked.record_id] for asked in questions)
    with serve_offline_model() as model:
        # one question is answered at once, one from its record, and the others by rules
        fetch = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": questions[1].record_id}}
        model.script.add(
            {"match": "turn", "text": f"It was {questions[0].word}."},
            {"match": "turn", "content": [fetch]},
            {"match": "turn", "text": f"It was {questions[1].word}."},
        )
        measured = measure(connect(model.url, "key"), "claude-haiku-5-5", 350, 3)
        assert [request.refused for request in model.requests if request.refused] == []
    assert measured.asked == {"subject": 3, "in passing": 3, "detail": 3}
    assert (measured.right["subject"], measured.right["in passing"], measured.fetched) == (1, 1, 1)
    assert measured.dollars > 0


def test_without_a_key_it_asks_for_one(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    monkeypatch.setattr(sys, "argv", ["summary_quality"])
    assert main() == 2
    assert "needs a real model: set ANTHROPIC_API_KEY" in " ".join(capsys.readouterr().out.split())
