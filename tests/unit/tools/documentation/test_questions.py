"""A question to the model thinks as little as other short calls."""

from __future__ import annotations

import asyncio

from dualtrack.tools.documentation.questions import Questions
from pydantic import BaseModel

from tests.drivers.world import make_world


class Choice(BaseModel):
    """What a question asks for."""

    library: str


def test_a_question_does_not_think() -> None:
    with make_world() as world:
        questions = Questions(world.claude, "claude-haiku-5-5", 100)
        asyncio.run(questions.ask("Choose.", "How do I set up OAuth for Twitter ads?", Choice, 30))
        assert [request.body["thinking"]["type"] for request in world.model.requests] == ["disabled"]
