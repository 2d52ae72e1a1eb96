"""LangChain's agent with its summarisation on a conversation laid down beforehand.

Run by `tests.bench.memory_price` in an environment that has LangChain and nothing of this project:
``python langchain_memory.py MODEL_URL DATA.json TOLD.json``. DATA has the ``system`` prompt and
``exchanges``, each ``[number, query, results]``; TOLD says how many model calls there were after each query,
what the last query's history holds, and why it ended.
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
        """One begins."""
        self.calls += 1


def main(url: str, data: str, told: str) -> None:
    """Run the conversation."""
    given = json.loads(Path(data).read_text())
    exchanges = given["exchanges"]
    results = {f"{number}-{place}": text for number, _, both in exchanges for place, text in enumerate(both)}

    def kit_page(name: str) -> str:
        """The text that the test has laid down under a name."""
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
        system_prompt=given["system"],
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
    last = "\n".join(str(one.content) for one in messages)
    Path(told).write_text(json.dumps({"calls": calls, "last": last, "ended": ended}))


if __name__ == "__main__":
    main(*sys.argv[1:])
