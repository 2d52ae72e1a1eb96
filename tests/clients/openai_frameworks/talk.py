"""Conversations by langchain-openai and openai-agents (tests/clients/talks.py): one that ends in ``_tools`` answers
each question with a tool of the client's own, ``weather``, one in ``_output`` or ``_function`` with an object of a type
of its own, one in ``_handoff`` by another agent."""

from __future__ import annotations

import asyncio
from typing import Any

from pydantic import BaseModel


class Town(BaseModel):
    """What a question about a town is answered with."""

    name: str
    people: int


def weather(city: str) -> str:
    """The weather in a city."""
    return f"Rain in {city}, 11 degrees."


# ── langchain ─────────────────────────────────────────────────────────────────────────────────────


def chat_model(story: dict[str, Any], *, responses: bool = False) -> Any:
    from langchain_openai import ChatOpenAI

    return ChatOpenAI(
        model=story["model"], base_url=story["url"], api_key=story["key"], use_responses_api=responses
    )


def _said(model: Any, messages: list[Any], *, stream: bool) -> Any:
    """The answer, of which the pieces add up to the message."""
    if not stream:
        return model.invoke(messages)
    pieces = list(model.stream(messages))
    whole = pieces[0]
    for piece in pieces[1:]:
        whole += piece
    return whole


def langchain(story: dict[str, Any]) -> list[str]:
    """The program keeps the messages and sends them all, each time."""
    model, messages, answers = chat_model(story), [("system", story["system"])], []
    for question in story["questions"]:
        messages.append(("user", question["text"]))
        answer = _said(model, messages, stream=question["stream"])
        messages.append(answer)
        answers.append(answer.text)
    return answers


def langchain_tools(story: dict[str, Any]) -> list[str]:
    """It runs what the model calls, until nothing is called."""
    from langchain_core.tools import tool

    offered = tool(weather)
    model, answers = chat_model(story).bind_tools([offered]), []
    for question in story["questions"]:
        messages: list[Any] = [("user", question["text"])]
        while (answer := _said(model, messages, stream=question["stream"])).tool_calls:
            messages += [answer, *(offered.invoke(call) for call in answer.tool_calls)]
        answers.append(answer.text)
    return answers


def _structured(story: dict[str, Any], method: str) -> list[str]:
    model = chat_model(story).with_structured_output(Town, method=method)
    return [
        f"{town.name} {town.people}"
        for question in story["questions"]
        for town in [model.invoke(question["text"])]
    ]


# ── openai-agents ─────────────────────────────────────────────────────────────────────────────────


def agent_model(story: dict[str, Any]) -> Any:
    from agents import OpenAIResponsesModel, set_tracing_disabled
    from openai import AsyncOpenAI

    set_tracing_disabled(True)
    return OpenAIResponsesModel(story["model"], AsyncOpenAI(base_url=story["url"], api_key=story["key"]))


def _run(agent: Any, story: dict[str, Any], show: Any = str) -> list[str]:
    from agents import Runner

    async def talk() -> list[str]:
        history: list[Any] = []
        answers: list[str] = []
        for question in story["questions"]:
            history.append({"role": "user", "content": question["text"]})
            if question["stream"]:
                result: Any = Runner.run_streamed(agent, history)
                async for _ in result.stream_events():
                    pass
            else:
                result = await Runner.run(agent, history)
            history = result.to_input_list()
            answers.append(show(result.final_output))
        return answers

    return asyncio.run(talk())


def agents(story: dict[str, Any]) -> list[str]:
    """An agent that is handed its own past items."""
    from agents import Agent

    return _run(Agent(name="Terse", instructions=story["system"], model=agent_model(story)), story)


def agents_tools(story: dict[str, Any]) -> list[str]:
    """An agent that has to call its tool before it may answer."""
    from agents import Agent, ModelSettings, function_tool

    settings = ModelSettings(tool_choice="required")
    tools = [function_tool(weather)]
    return _run(Agent(name="Terse", model=agent_model(story), tools=tools, model_settings=settings), story)


def agents_handoff(story: dict[str, Any]) -> list[str]:
    """An agent that hands over to another one."""
    from agents import Agent

    model = agent_model(story)
    expert = Agent(name="Expert", instructions="You know the weather.", model=model)
    return _run(Agent(name="Desk", instructions="Hand over.", model=model, handoffs=[expert]), story)


def agents_output(story: dict[str, Any]) -> list[str]:
    """An agent with a type for its answer."""
    from agents import Agent

    agent = Agent(name="Towns", model=agent_model(story), output_type=Town)
    return _run(agent, story, lambda town: f"{town.name} {town.people}")


CLIENTS = {
    "langchain": langchain,
    "langchain_tools": langchain_tools,
    "langchain_output": lambda story: _structured(story, "json_schema"),
    "langchain_function": lambda story: _structured(story, "function_calling"),
    "openai_agents": agents,
    "openai_agents_tools": agents_tools,
    "openai_agents_handoff": agents_handoff,
    "openai_agents_output": agents_output,
}
