"""LangChain's agent with its summarisation, on a fixed conversation.

Run by `bench.memory_price` in an environment with LangChain and without this project: ``python
langchain_memory.py MODEL_URL DATA.json TOLD.json``. DATA has the ``system`` prompt and ``exchanges``, each ``[number,
query, results]``; TOLD has the number of model calls after each query, the history of the last query, and why it ended.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from anthropic import APIError
from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_anthropic import ChatAnthropic
from langchain_anthropic.middleware import AnthropicPromptCachingMiddleware
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.exceptions import ContextOverflowError

TRIGGER, KEEP = ("tokens", 30_000), ("messages", 4)


class Counter(BaseCallbackHandler):
    """Counts the model calls."""

    calls = 0

    def on_chat_model_start(self, *_args: object, **_more: object) -> None:
        """Count a call."""
        self.calls += 1


def main(url: str, data: str, output: str) -> None:
    """Run the conversation."""
    fixed = json.loads(Path(data).read_text())
    exchanges = fixed["exchanges"]
    results = {f"{number}-{index}": text for number, _, both in exchanges for index, text in enumerate(both)}

    def kit_page(name: str) -> str:
        """The text stored under a name by the test."""
        return str(results[name])

    counter = Counter()
    model = ChatAnthropic(
        model_name="claude-haiku-5-5",
        base_url=url,
        api_key="bench",
        max_retries=0,
        callbacks=[counter],
        thinking={"type": "disabled"},
    )
    agent = create_agent(
        model,
        [kit_page],
        system_prompt=fixed["system"],
        middleware=[
            SummarizationMiddleware(model, trigger=TRIGGER, keep=KEEP),
            AnthropicPromptCachingMiddleware(),
        ],
    )
    messages: list[Any] = []
    calls: list[int] = []
    ended = ""
    for number, query, _ in exchanges:
        try:
            messages = agent.invoke({"messages": [*messages, {"role": "user", "content": query}]})["messages"]
        except (APIError, ContextOverflowError) as error:
            ended = f"query {number}: {error}"
            break
        calls.append(counter.calls)
        print(
            f"LangChain: {number} of {len(exchanges)} queries", file=sys.stderr
        ) if number % 50 == 0 else None
    last = "\n".join(str(message.content) for message in messages)
    Path(output).write_text(json.dumps({"calls": calls, "last": last, "ended": ended}))


if __name__ == "__main__":
    main(*sys.argv[1:])
