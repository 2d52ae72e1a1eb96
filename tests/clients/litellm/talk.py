"""Conversations by litellm's SDK (tests/clients/talks.py): ``litellm_tools`` answers the first question with a tool of
the client's own, ``weather``, ``litellm_output`` with an object."""

from __future__ import annotations

import json
import os
from typing import Any

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else the import downloads prices


CITY = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}


def given_by(story: dict[str, Any]) -> dict[str, Any]:
    """What each of its calls is given."""
    return {"model": f"openai/{story['model']}", "api_base": story["url"], "api_key": story["key"]}


def talk(story: dict[str, Any]) -> list[str]:
    """The program keeps the messages and sends them all, each time."""
    import litellm

    given = given_by(story)
    messages: list[Any] = [{"role": "system", "content": story["system"]}]
    answers: list[str] = []
    for question in story["questions"]:
        messages.append({"role": "user", "content": question["text"]})
        if question["stream"]:
            stream = litellm.completion(**given, messages=messages, stream=True)
            answer = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
        else:
            answer = litellm.completion(**given, messages=messages).choices[0].message.content
        messages.append({"role": "assistant", "content": answer})
        answers.append(answer)
    return answers


def tools(story: dict[str, Any]) -> list[str]:
    """It runs what the model calls, until nothing is called."""
    import litellm

    offered = [{"type": "function", "function": {"name": "weather", "parameters": CITY}}]

    def said(messages: list[Any], *, stream: bool) -> Any:
        given = {**given_by(story), "messages": messages, "tools": offered}
        if not stream:
            return litellm.completion(**given).choices[0].message
        chunks = list(litellm.completion(**given, stream=True))
        return litellm.stream_chunk_builder(chunks, messages=messages).choices[0].message

    answers: list[str] = []
    for question in story["questions"]:
        messages: list[Any] = [{"role": "user", "content": question["text"]}]
        while (answer := said(messages, stream=question["stream"])).tool_calls:
            messages.append(answer.model_dump())
            for call in answer.tool_calls:
                city = json.loads(call.function.arguments)["city"]
                found = f"Rain in {city}, 11 degrees."
                messages.append({"role": "tool", "tool_call_id": call.id, "content": found})
        answers.append(answer.content)
    return answers


def output(story: dict[str, Any]) -> list[str]:
    """The answer by a type's schema."""
    import litellm
    from pydantic import BaseModel

    class Town(BaseModel):
        name: str
        people: int

    messages = [{"role": "user", "content": story["questions"][0]["text"]}]
    said = litellm.completion(**given_by(story), messages=messages, response_format=Town)
    town = Town.model_validate_json(said.choices[0].message.content)
    return [f"{town.name} {town.people}"]


CLIENTS = {"litellm": talk, "litellm_tools": tools, "litellm_output": output}
