"""One structured question to Claude: a pydantic model in, a value of it out, or `Degraded`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar

from pydantic import BaseModel

from dualtrack.models.anthropic_sdk import AsyncAnthropic, anthropic
from dualtrack.tools.documentation.values import Degraded

Answer = TypeVar("Answer", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Claude:
    """The Messages API with structured output (``output_config.format``), one attempt per question:
    every use of it here has a substitute that is better than waiting.
    """

    client: AsyncAnthropic
    model: str
    max_tokens: int

    async def ask(self, system: str, prompt: str, form: type[Answer], timeout: float) -> Answer:
        """The answer in the form that is asked for. Raises `Degraded` for anything else: an error, a
        refusal, an answer cut at max_tokens, one that is not of the form.
        """
        try:
            message = await self.client.messages.parse(
                model=self.model,
                max_tokens=self.max_tokens,
                system=system,
                messages=[{"role": "user", "content": prompt}],
                output_format=form,
                timeout=timeout,
            )
        except Exception as error:  # SDK, transport, JSON and validation errors share no base
            raise Degraded(f"Claude: {type(error).__name__}") from error
        if message.stop_reason != "end_turn" or message.parsed_output is None:
            raise Degraded(f"Claude: stopped with {message.stop_reason}")
        return message.parsed_output


def claude(api_key: str, base_url: str, model: str, max_tokens: int) -> Claude:
    """A client that never follows a redirect and never retries by itself."""
    http_client = anthropic.DefaultAsyncHttpxClient(follow_redirects=False)
    client = AsyncAnthropic(
        api_key=api_key, base_url=base_url or None, max_retries=0, http_client=http_client
    )
    return Claude(client, model, max_tokens)
