"""A conversation by one of the Python clients: ``talk.py CLIENT``, with a `Story` as JSON on standard input.

It runs in the environment of this folder's lock, without the project. It prints what its user saw.
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any


def openai(story: dict[str, Any]) -> list[str]:
    """The SDK by itself: the program keeps the messages and sends them all, each time."""
    from openai import OpenAI

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    messages: list[Any] = [{"role": "system", "content": story["system"]}]
    answers: list[str] = []
    for question in story["questions"]:
        messages.append({"role": "user", "content": question["text"]})
        if question["stream"]:
            stream = client.chat.completions.create(model=story["model"], messages=messages, stream=True)
            answer = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        else:
            whole = client.chat.completions.create(model=story["model"], messages=messages)
            answer = whole.choices[0].message.content or ""
        messages.append({"role": "assistant", "content": answer})
        answers.append(answer)
    return answers


def pydantic_ai(story: dict[str, Any]) -> list[str]:
    """An agent that is handed its own past messages."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=story["url"], api_key=story["key"])
    agent = Agent(OpenAIChatModel(story["model"], provider=provider), instructions=story["system"])

    async def talk() -> list[str]:
        history: list[Any] = []
        answers: list[str] = []
        for question in story["questions"]:
            if question["stream"]:
                async with agent.run_stream(question["text"], message_history=history) as result:
                    answers.append("".join([text async for text in result.stream_text(delta=True)]))
                    history = result.all_messages()
            else:
                whole = await agent.run(question["text"], message_history=history)
                answers.append(whole.output)
                history = whole.all_messages()
        return answers

    return asyncio.run(talk())


if __name__ == "__main__":
    print(json.dumps({"openai": openai, "pydantic_ai": pydantic_ai}[sys.argv[1]](json.load(sys.stdin))))
