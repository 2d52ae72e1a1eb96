"""One structured question to the model: a pydantic model in, a value of it out, or `Degraded`."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dualtrack.errors import ModelRefused, ModelUnavailable
from dualtrack.models.metering import asking
from dualtrack.models.thinking import Thinking, short_fields
from dualtrack.tools.documentation.values import Degraded

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.models.protocol import Form, Model


@dataclass(frozen=True, slots=True)
class Questions:
    """The model, its name, and the most tokens of an answer in writing. One attempt per question: every one here has a
    substitute that is better than waiting.
    """

    model: Model
    model_name: str
    max_tokens: int
    thinking: Thinking = field(default_factory=Thinking)

    async def ask(self, system: str, prompt: str, form: type[Form], timeout: float) -> Form:
        """The answer in the form that is asked for. Raises `Degraded` where there is none.

        The client is the one that turns use, in a thread: a stage that does not wait for it goes on, and the
        call ends by its own time-out.
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
        """In the thread, which goes on where nobody waits for it: what the call took is told all the same."""
        with asking("model", self.model_name) as question:
            answer, question.usage = self.model.parse(request, form, timeout)
        return answer
