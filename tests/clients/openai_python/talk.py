"""Conversations by the Python clients (tests/clients/talks.py): one that ends in ``_tools`` answers the first question
with a tool of the client's own, ``weather``, one in ``_output`` with an object of a type of its own."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from pydantic import BaseModel

CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
PIXEL = (
    "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
    "RU5ErkJggg=="
)


class Town(BaseModel):
    """What a question about a town is answered with."""

    name: str
    people: int


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


def responses_suite(story: dict[str, Any]) -> list[str]:
    """The seven kinds of the Open Responses suite, in its order; each line is what came of one: its status, the types
    of its items, its text. Every object and every event is what the specification says."""
    from openai import OpenAI
    from openresponses_types import ResponseResource

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    tools = [
        {"type": "function", "name": "weather", "description": "The weather in a city.", "parameters": CITY}
    ]
    image = {"type": "input_image", "image_url": PIXEL}
    seen = {"type": "input_text", "text": "What is in this image?"}

    def message(role: str, content: object) -> dict[str, object]:
        return {"type": "message", "role": role, "content": content}

    kinds: list[dict[str, Any]] = [
        {"input": [message("user", "Say hello in three words.")]},
        {"input": [message("user", "Count to five.")], "stream": True},
        {"input": [message("system", "You are a pirate."), message("user", "Say hello.")]},
        {"input": [message("user", "The weather in Oslo?")], "tools": tools},
        {"input": [message("user", "The weather in Rome?")], "tools": tools, "stream": True},
        {"input": [message("user", [seen, image])]},
        {
            "input": [
                message("user", "My name is Alice."),
                message("assistant", "Hello Alice!"),
                message("user", "What is my name?"),
            ]
        },
    ]
    lines: list[str] = []
    for kind in kinds:
        if "stream" in kind:
            events = [event.to_dict() for event in client.responses.create(model=story["model"], **kind)]
            for event in events:
                _check_event(event)
            _check_calls(events)
            body: Any = events[-1]["response"]
        else:
            raw = client.responses.with_raw_response.create(model=story["model"], **kind)
            body = raw.http_response.json()
        response = ResponseResource.model_validate(body).model_dump(mode="json")
        items = response["output"]
        text = "".join(
            part["text"] for item in items if item["type"] == "message" for part in item["content"]
        )
        lines.append(" ".join([response["status"], *(item["type"] for item in items), text]).strip())
    return lines


def _check_calls(events: list[dict[str, Any]]) -> None:
    """The pieces of each call's arguments add up to the call, which is then done."""
    for done in (each for each in events if each["type"] == "response.output_item.done"):
        if done["item"]["type"] == "function_call":
            mine = [each for each in events if each.get("item_id") == done["item"]["id"]]
            pieces = [
                each["delta"] for each in mine if each["type"] == "response.function_call_arguments.delta"
            ]
            (whole,) = [each for each in mine if each["type"] == "response.function_call_arguments.done"]
            assert pieces
            assert "".join(pieces) == whole["arguments"] == done["item"]["arguments"]


def _check_event(event: dict[str, Any]) -> None:
    import openresponses_types

    words = "".join(word.capitalize() for part in event["type"].split(".") for word in part.split("_"))
    getattr(openresponses_types, f"{words}StreamingEvent").model_validate(event)


def openai_tools(story: dict[str, Any]) -> list[str]:
    """The SDK by itself: it runs what the model calls, until nothing is called."""
    from openai import OpenAI

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    tools: Any = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]

    def said(messages: list[Any], *, stream: bool) -> Any:
        given: Any = {"model": story["model"], "messages": messages, "tools": tools}
        if not stream:
            return client.chat.completions.create(**given).choices[0].message
        with client.chat.completions.stream(**given) as streamed:
            return streamed.get_final_completion().choices[0].message

    answers: list[str] = []
    for question in story["questions"]:
        messages: list[Any] = [{"role": "user", "content": question["text"]}]
        while (answer := said(messages, stream=question["stream"])).tool_calls:
            messages.append(answer.to_dict(exclude_none=True))
            for call in answer.tool_calls:
                found = weather(**json.loads(call.function.arguments))
                messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        answers.append(answer.content or "")
    return answers


def responses_tools(story: dict[str, Any]) -> list[str]:
    """The SDK's responses: it runs what the model calls, and sends the results behind the response that asked."""
    from openai import OpenAI

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    tools: Any = [{"type": "function", "name": "weather", "parameters": CITY, "strict": True}]

    def said(*, stream: bool, **more: Any) -> Any:
        given: Any = {"model": story["model"], "tools": tools, **more}
        if not stream:
            return client.responses.create(**given)
        with client.responses.stream(**given) as streamed:
            return streamed.get_final_response()

    answers: list[str] = []
    for question in story["questions"]:
        answer = said(stream=question["stream"], input=question["text"])
        while calls := [item for item in answer.output if item.type == "function_call"]:
            results: Any = [
                {
                    "type": "function_call_output",
                    "call_id": call.call_id,
                    "output": weather(**json.loads(call.arguments)),
                }
                for call in calls
            ]
            answer = said(stream=question["stream"], input=results, previous_response_id=answer.id)
        answers.append(answer.output_text)
    return answers


def pydantic_ai_tools(story: dict[str, Any]) -> list[str]:
    """An agent with a tool."""
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=story["url"], api_key=story["key"])
    agent = Agent(OpenAIChatModel(story["model"], provider=provider), tools=[weather])

    async def talk() -> list[str]:
        answers: list[str] = []
        for question in story["questions"]:
            if question["stream"]:
                async with agent.run_stream(question["text"]) as result:
                    answers.append("".join([text async for text in result.stream_text(delta=True)]))
            else:
                answers.append((await agent.run(question["text"])).output)
        return answers

    return asyncio.run(talk())


def openai_output(story: dict[str, Any]) -> list[str]:
    """The SDK by itself, which reads the answer as an object."""
    from openai import OpenAI

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    asked: Any = [{"role": "user", "content": story["questions"][0]["text"]}]
    said = client.chat.completions.parse(model=story["model"], messages=asked, response_format=Town)
    town = said.choices[0].message.parsed
    return [f"{town.name} {town.people}" if town else "nothing"]


def responses_output(story: dict[str, Any]) -> list[str]:
    """The SDK's responses, which reads the answer as an object."""
    from openai import OpenAI

    client = OpenAI(base_url=story["url"], api_key=story["key"])
    asked = story["questions"][0]["text"]
    town = client.responses.parse(model=story["model"], input=asked, text_format=Town).output_parsed
    return [f"{town.name} {town.people}" if town else "nothing"]


def pydantic_ai_output(story: dict[str, Any]) -> list[str]:
    """An agent with a type for its answer, by its schema."""
    from pydantic_ai import NativeOutput

    return _pydantic_town(story, NativeOutput(Town))


def _pydantic_town(story: dict[str, Any], output_type: Any) -> list[str]:
    from pydantic_ai import Agent
    from pydantic_ai.models.openai import OpenAIChatModel
    from pydantic_ai.providers.openai import OpenAIProvider

    provider = OpenAIProvider(base_url=story["url"], api_key=story["key"])
    agent = Agent(OpenAIChatModel(story["model"], provider=provider), output_type=output_type)
    town = agent.run_sync(story["questions"][0]["text"]).output
    return [f"{town.name} {town.people}"]


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 11 degrees."


CLIENTS = {
    "openai": openai,
    "openai_tools": openai_tools,
    "openai_output": openai_output,
    "openai_responses": responses,
    "openai_responses_tools": responses_tools,
    "openai_responses_output": responses_output,
    "openai_responses_suite": responses_suite,
    "pydantic_ai": pydantic_ai,
    "pydantic_ai_tools": pydantic_ai_tools,
    "pydantic_ai_output": pydantic_ai_output,
    # the default: a function that has to be called
    "pydantic_ai_function": lambda story: _pydantic_town(story, Town),
}
