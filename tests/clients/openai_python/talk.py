"""A conversation by one of the Python clients: ``talk.py CLIENT``, with a `Story` as JSON on standard input; one that
ends in ``_tools`` answers the first question with a tool of the client's own, ``weather``, one in ``_output`` with an
object of a type of its own.

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


def responses(story: dict[str, Any]) -> list[str]:
    """The SDK's responses, each behind the one before. Every event and object is what the Open Responses specification
    says."""
    from openai import OpenAI
    from openresponses_types import ResponseResource

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    answers: list[str] = []
    before: dict[str, str] = {}
    for question in story["questions"]:
        given = {
            "model": story["model"],
            "instructions": story["system"],
            "input": question["text"],
            **before,
        }
        if question["stream"]:
            ended: Any = None
            text = ""
            for event in client.responses.create(**given, stream=True):
                _check_event(event.to_dict())
                text += event.delta if event.type == "response.output_text.delta" else ""
                ended = event.response if event.type == "response.completed" else ended
            assert ended.output_text == text
            response = ended
        else:
            response = client.responses.create(**given)
        kept = client.responses.with_raw_response.retrieve(response.id)
        ResponseResource.model_validate(kept.http_response.json())
        before = {"previous_response_id": response.id}
        answers.append(response.output_text)
    return answers


def _check_event(event: dict[str, Any]) -> None:
    import openresponses_types

    words = "".join(word.capitalize() for part in event["type"].split(".") for word in part.split("_"))
    getattr(openresponses_types, f"{words}StreamingEvent").model_validate(event)


def openai_tools(story: dict[str, Any]) -> list[str]:
    """The SDK by itself: it runs what the model calls, until nothing is called."""
    from openai import OpenAI

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": city}}]
    messages: list[Any] = [{"role": "user", "content": story["questions"][0]["text"]}]
    while True:
        said = client.chat.completions.create(model=story["model"], messages=messages, tools=tools)
        answer = said.choices[0].message
        if not answer.tool_calls:
            return [answer.content or ""]
        messages.append(answer)
        for call in answer.tool_calls:
            found = weather(**json.loads(call.function.arguments))
            messages.append({"role": "tool", "tool_call_id": call.id, "content": found})


def pydantic_ai_tools(story: dict[str, Any]) -> list[str]:
    """An agent with a tool."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=story["url"], api_key=story["key"])
    agent = Agent(OpenAIChatModel(story["model"], provider=provider), tools=[weather])
    return [agent.run_sync(story["questions"][0]["text"]).output]


def openai_output(story: dict[str, Any]) -> list[str]:
    """The SDK by itself, which reads the answer as an object."""
    from openai import OpenAI
    from pydantic import BaseModel

    class Town(BaseModel):
        name: str
        people: int

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    asked: Any = [{"role": "user", "content": story["questions"][0]["text"]}]
    said = client.chat.completions.parse(model=story["model"], messages=asked, response_format=Town)
    town = said.choices[0].message.parsed
    return [f"{town.name} {town.people}" if town else "nothing"]


def pydantic_ai_output(story: dict[str, Any]) -> list[str]:
    """An agent with a type for its answer: by the schema itself, as a forced tool is not taken."""
    from pydantic import BaseModel
    from pydantic_ai import Agent, NativeOutput
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    class Town(BaseModel):
        name: str
        people: int

    provider = OpenAIProvider(base_url=story["url"], api_key=story["key"])
    agent = Agent(OpenAIChatModel(story["model"], provider=provider), output_type=NativeOutput(Town))
    town = agent.run_sync(story["questions"][0]["text"]).output
    return [f"{town.name} {town.people}"]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 11 degrees."


if __name__ == "__main__":
    clients = {
        "openai": openai,
        "openai_tools": openai_tools,
        "openai_output": openai_output,
        "openai_responses": responses,
        "pydantic_ai": pydantic_ai,
        "pydantic_ai_tools": pydantic_ai_tools,
        "pydantic_ai_output": pydantic_ai_output,
    }
    print(json.dumps(clients[sys.argv[1]](json.load(sys.stdin))))
