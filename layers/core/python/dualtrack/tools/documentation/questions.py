"""A structured question to the model, answered by a value of a Pydantic class, or `Degraded`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack.errors import Degraded, ModelRefused, ModelUnavailable
from dualtrack.models.metering import asking
from dualtrack.models.thinking import Thinking, short_fields

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.models.protocol import Form, Model


@dataclass(frozen=True, slots=True)
class Questions:
    """The model, its name, and the maximum tokens of an answer. Each question is asked once, because each has a
    fallback that is better than waiting.
    """

    model: Model
    model_name: str
    max_tokens: int
    thinking: Thinking = field(default_factory=Thinking)

    async def ask(self, system: str, prompt: str, form: type[Form], timeout: float) -> Form:
        """The answer in the requested form. Raises `Degraded` if there is none.

        Uses the same client as turns, in a thread. If a stage stops waiting, the call continues until its own timeout.
        """
        request = {
            **short_fields(self.model_name, self.max_tokens, self.thinking),
            "system": system,
            "messages": [{"role": "user", "content": prompt}],
        }
        try:
            return await asyncio.to_thread(self._parsed, request, form, timeout)
        except (ModelUnavailable, ModelRefused) as error:
            raise Degraded(str(error)) from error

    def _parsed(self, request: Mapping[str, Any], form: type[Form], timeout: float) -> Form:
        """Runs in the thread, even after the stage stopped waiting, so that the call's usage is always reported."""
        with asking("model", self.model_name) as question:
            answer, question.usage = self.model.parse(request, form, timeout)
        return answer
