"""`dualtrack.testing`: whole chats within the process, as a project's tests use them."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from botocore.exceptions import ClientError
from dualtrack import Media, ToolContext, ToolResult, tool
from dualtrack.errors import ApiError
from dualtrack.testing import ScriptError, calls, fails, local_chat

from tests.drivers.images import png

if TYPE_CHECKING:
    from collections.abc import Callable

    from dualtrack.testing import Answer

ROOT = Path(__file__).parents[3]
PNG = base64.b64encode(png()).decode()
COLD = "It is cold."


@tool(effect="reads")
def weather(city: str, days: int = 1) -> str:
    """Forecast for a city, in Celsius."""
    return f"{city}: 3 °C for {days} days"


@tool(approval="never")
def order(item: str) -> str:
    """Orders an item."""
    if item == "nothing":
        raise ValueError("name an item")
    raise RuntimeError("the password is 1234")


def agent(**changes: Any) -> dict[str, Any]:
    """The content of a profile's file."""
    return {
        "name": "desk",
        "description": "A desk.",
        "system": ["You answer."],
        "tools": ["weather"],
        "mcp": [],
        "max_turns": 4,
        "max_tokens": 1_000,
        "result_limit": 10_000,
        **changes,
    }


def last_text(body: dict[str, Any]) -> str:
    """The text of the last block that the model was sent."""
    block = body["messages"][-1]["content"][-1]
    return str(block["content"][-1]["text"] if block["type"] == "tool_result" else block["text"])


def said(answer: Answer) -> str:
    """Everything of the past and of the question that the first call of a chat was sent."""
    return json.dumps(answer.sent[0]["messages"], ensure_ascii=False)


def test_a_tool_in_a_whole_chat() -> None:
    with local_chat("assistant", model=[calls("weather", city="Ottawa"), COLD], tools=[weather]) as chat:
        answer = chat.ask("How is the weather in Ottawa?")
    assert (answer.text, answer.status, answer.stop, answer.credits) == (COLD, "done", "complete", 7)
    (call,) = answer.calls
    assert (call.name, call.input, call.is_error) == ("weather", {"city": "Ottawa"}, False)
    assert call.result == "Ottawa: 3 °C for 1 days"
    first, second = answer.sent
    assert last_text(first) == "[ID:q1] How is the weather in Ottawa?"
    assert last_text(second) == "[ID:q1-t1] Ottawa: 3 °C for 1 days"
    (offered,) = [found for found in second["tools"] if found["name"] == "weather"]
    assert offered["input_schema"]["required"] == ["city"]


def test_tools_of_a_turn_run_at_once_and_text_may_come_before_them() -> None:
    both = threading.Barrier(2, timeout=20)

    @tool(effect="reads")
    async def meet(name: str) -> str:
        """Waits for the other one."""
        await asyncio.to_thread(both.wait)
        return name

    turn = ["Let me see.", calls("meet", name="a"), calls("meet", name="b")]
    with local_chat("assistant", model=[turn, COLD], tools=[meet]) as chat:
        answer = chat.ask("Who is there?")
    assert [(call.result, call.is_error) for call in answer.calls] == [("a", False), ("b", False)]
    blocks = answer.sent[1]["messages"][-2]["content"]
    assert [block["type"] for block in blocks] == ["text", "tool_use", "tool_use"]
    assert answer.credits == 9


def test_what_a_tool_raises_is_an_error_result() -> None:
    model = [[calls("order", item="nothing"), calls("order", item="all")], "I cannot."]
    with local_chat("assistant", model=model, tools=[order]) as chat:
        answer = chat.ask("Order!")
    assert [call.is_error for call in answer.calls] == [True, True]
    assert [call.result for call in answer.calls] == [
        "Tool execution failed: name an item",
        "Tool execution failed: RuntimeError.",
    ]
    assert (answer.text, answer.status, answer.credits) == ("I cannot.", "done", 9)


def test_wrong_arguments_are_not_run_and_cost_nothing() -> None:
    with local_chat("assistant", model=[calls("weather", town="Ottawa"), COLD], tools=[weather]) as chat:
        answer = chat.ask("Weather?")
    assert answer.calls[0].is_error
    assert answer.calls[0].result.startswith("Tool execution failed: bad arguments: $: 'city' is a required")
    assert answer.credits == 5


def test_a_follow_up_is_sent_the_summarised_track_and_reads_the_full_one() -> None:
    forecast = "Snow. " * 400

    @tool(effect="reads")
    def long_forecast(city: str) -> str:
        """A long forecast."""
        return f"{city}. {forecast}"

    model = [
        calls("long_forecast", city="Ottawa"),
        COLD,
        calls("retrieve_full_context", id="q1-t1"),
        "Snow all day.",
    ]
    with local_chat("assistant", model=model, tools=[long_forecast]) as chat:
        first = chat.ask("The weather in Ottawa?")
        second = chat.ask("All of it?")
    assert forecast in first.calls[0].result
    sent = said(second)
    assert "[ID:q1] The weather in Ottawa?" in sent
    assert "[ID:q1-t1-sum, ref:q1-t1, 2 KB]" in sent
    assert f"[ID:q1-r] {COLD}" in sent
    assert forecast not in sent
    assert forecast in second.calls[0].result
    assert second.text == "Snow all day."


def test_a_profile_is_its_files_content() -> None:
    with local_chat(agent(), model=[COLD], tools=[weather]) as chat:
        (body,) = chat.ask("Hello?").sent
    assert body["system"][0]["text"] == "You answer."
    assert [offered["name"] for offered in body["tools"]] == ["weather"]


def test_a_profile_of_the_project_around_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "dualtrack.toml").touch()
    for folder in ("profiles", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "profiles" / "desk.json").write_text(json.dumps(agent(tools=[])))
    monkeypatch.chdir(tmp_path / "tests")
    with local_chat("desk", model=[COLD], tools=[weather]) as chat:
        (body,) = chat.ask("Hello?").sent
    assert body["system"][0]["text"] == "You answer."
    assert [offered["name"] for offered in body["tools"]] == ["weather"]


def test_the_last_call_has_no_tools() -> None:
    model = [calls("weather", city="Ottawa"), calls("weather", city="Oslo"), COLD]
    with local_chat(agent(max_turns=2), model=model, tools=[weather]) as chat:
        answer = chat.ask("Weather?")
    assert (answer.stop, answer.text, len(answer.calls)) == ("max_turns", COLD, 2)
    assert answer.sent[-1]["tool_choice"] == {"type": "none"}


def test_a_call_that_the_credits_do_not_cover_is_not_run() -> None:
    model = [[calls("weather", city="Ottawa"), calls("weather", city="Oslo")], COLD]
    with local_chat("assistant", model=model, tools=[weather], credits=8) as chat:
        answer = chat.ask("Weather?")
    assert [call.is_error for call in answer.calls] == [False, True]
    assert "too few credits" in answer.calls[1].result
    assert answer.credits == 7


def test_a_chat_that_the_credits_do_not_cover_is_refused_as_the_api_refuses_it() -> None:
    with local_chat("assistant", model=[], credits=4) as chat, pytest.raises(ApiError) as refused:
        chat.ask("Hello?")
    assert (refused.value.code, refused.value.status) == ("insufficient_credits", 402)


def test_a_busy_model_is_waited_for_and_a_broken_one_is_tried_again() -> None:
    with local_chat("assistant", model=[fails(), fails(429), fails(500), COLD]) as chat:
        answer = chat.ask("Hello?")
    assert (answer.status, answer.text, answer.credits, len(answer.sent)) == ("done", COLD, 5, 4)


@pytest.mark.parametrize(
    ("items", "said"), [([500] * 4, "answered 500"), ([400], "400 invalid_request_error")]
)
def test_a_chat_without_a_model_fails_and_costs_nothing(items: list[int], said: str) -> None:
    with local_chat("assistant", model=[*map(fails, items), COLD], credits=5) as chat:
        failed = chat.ask("Hello?")
        answered = chat.ask("Hello again?")  # with the same 5 credits
    assert (failed.status, failed.text, failed.credits) == ("failed", "", 0)
    assert said in failed.error
    assert (answered.status, answered.credits) == ("done", 5)


def test_a_tool_gets_its_context_and_may_return_a_picture() -> None:
    @tool(effect="reads")
    def chart(context: ToolContext) -> ToolResult:
        """Draws a chart."""
        return ToolResult(f"{context.settings['UNIT']} for {context.user}", media=(Media("image/png", PNG),))

    settings = {"UNIT": "C"}
    with local_chat(
        "assistant", model=[calls("chart"), COLD], tools=[chart], user="ann", settings=settings
    ) as chat:
        answer = chat.ask("Draw!")
    assert answer.calls[0].result == "C for ann"
    (result,) = answer.sent[1]["messages"][-1]["content"]
    assert result["content"][-1]["source"] == {"type": "base64", "media_type": "image/png", "data": PNG}


def test_the_library_tools_find_nothing_but_the_conversation() -> None:
    model = [
        "Roses are red.",
        [
            calls("search_conversation", query="roses"),
            calls("retrieve_documentation", query="How do I make a table with boto3?"),
        ],
        COLD,
    ]
    with local_chat("assistant", model=model) as chat:
        chat.ask("Write a poem about roses.")
        answer = chat.ask("Which flowers?")
    found, documentation = answer.calls
    assert "q1-r" in found.result
    assert documentation.is_error


def test_two_blocks_in_two_threads_do_not_see_each_other() -> None:
    together = threading.Barrier(2, timeout=20)

    def run(name: str) -> Answer:
        @tool(effect="reads")
        def who() -> str:
            """Says who."""
            together.wait()
            return name

        with local_chat("assistant", model=[calls("who"), f"It is {name}."], tools=[who]) as chat:
            return chat.ask("Who?")

    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(run, ("ann", "bob")))
    assert [answer.calls[0].result for answer in answers] == ["ann", "bob"]
    assert [answer.text for answer in answers] == ["It is ann.", "It is bob."]


def test_it_runs_within_an_event_loop() -> None:
    async def test() -> str:
        with local_chat("assistant", model=[COLD]) as chat:
            return chat.ask("Hello?").text

    assert asyncio.run(test()) == COLD


def ask(**arguments: Any) -> None:
    all_arguments: dict[str, Any] = {"profile": "assistant", "tools": [weather], **arguments}
    with local_chat(**all_arguments) as chat:
        chat.ask("Hello?")


def undecorated() -> None:
    pass


@tool
def search_conversation(query: str) -> str:
    """Has the name of another one."""
    return query


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ({"model": [calls("weather", city="Ottawa")]}, "once more. It was sent: '[ID:q1-t1] Ottawa: 3 °C for 1 days'"),
        ({"model": [COLD, calls("weather", city="Oslo"), COLD]},
         "was not called again, and the script goes on: calls('weather', city='Oslo'), 'It is cold.'"),
        ({"model": [calls("wether")]}, "calls('wether'): this agent has no such tool; it has retrieve_full_context, "),
        ({"model": [calls("weather", city="Oslo")] * 3, "profile": agent(max_turns=2)},
         "calls('weather', city='Oslo'): this is the last call of the chat, in which the model may call no tool."),
        ({"model": [3]}, "3 is no item of a script: write a text, calls(…), a list of texts and calls, or fails(…)."),
        ({"model": [[]]}, "[] is no item of a script: the model would answer nothing."),
        ({"model": [""]}, "'' is no item of a script: the model would answer nothing."),
        ({"model": [], "profile": "asistant"}, "There is no profile 'asistant'; there are assistant, courses, "),
        ({"model": [], "profile": agent(max_turns=0)}, "The profile is wrong: max_turns: Input should be greater than"),
        ({"model": [], "profile": agent(tools=["wether"])}, "The profile is wrong: tools.0: "),
        ({"model": [], "tools": [undecorated]}, "'undecorated' is no tool: write @tool above its def."),
        ({"model": [], "tools": [search_conversation]}, "There is a tool 'search_conversation' already: "),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_one_sentence(arguments: dict[str, Any], problem: str) -> None:
    with pytest.raises((ScriptError, ValueError, TypeError), match=re.escape(problem)):
        ask(**arguments)


def test_an_input_that_is_no_json_is_refused() -> None:
    with pytest.raises(TypeError, match=re.escape("calls('weather', city=(1+2j)): the input is no JSON: ")):
        calls("weather", city=1 + 2j)


def test_an_unknown_status_is_refused() -> None:
    with pytest.raises(ValueError, match=re.escape("fails(200): the model's service does not answer so.")):
        fails(200)


def test_what_is_left_over_does_not_hide_what_has_failed() -> None:
    with pytest.raises(ZeroDivisionError), local_chat("assistant", model=[COLD]):
        _ = 1 / 0


TOOL = """
from dualtrack import ToolContext, tool

@tool(price="premium", effect="reads")
def tides(port: str, context: ToolContext) -> dict[str, str]:
    '''Tides of a port.'''
    return {"port": port, **context.settings}
"""
PROJECT = """
[prices]
premium = 9

[tools]
environment = { UNIT = "m at {stage}" }
secrets = ["TIDES_KEY", "OTHER_KEY"]
"""
IN_A_PROJECT = """
import json
from dualtrack.testing import calls, local_chat

for _ in range(2):
    with local_chat("desk", model=[calls("tides", port="Oslo"), "High."]) as chat:
        answer = chat.ask("High or low?")
    print(answer.calls[0].result, answer.credits, [tool["name"] for tool in answer.sent[0]["tools"]])
"""


def test_a_project_has_its_tools_prices_and_settings(tmp_path: Path) -> None:
    (tmp_path / "dualtrack.toml").write_text(PROJECT)
    for folder in ("profiles", "tools"):
        (tmp_path / folder).mkdir()
    (tmp_path / "tools" / "tides.py").write_text(TOOL)
    (tmp_path / "profiles" / "desk.json").write_text(json.dumps(agent(tools=["tides"])))
    done = subprocess.run(
        [sys.executable, "-W", "error", "-B", "-c", IN_A_PROJECT],
        env={"PATH": os.environ["PATH"], "TIDES_KEY": "secret"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    result = '{"port":"Oslo","UNIT":"m at local","TIDES_KEY":"secret"}'
    assert (done.stderr, done.stdout.splitlines()) == ("", [f"{result} 14 ['tides']"] * 2)


PROGRAM = """
import logging, os, sys
WRITE = os.O_WRONLY | os.O_RDWR | os.O_CREAT
def outside(event, found):
    written = event == "open" and isinstance(found[2], int) and found[2] & WRITE
    if written or event in ("socket.connect", "socket.bind", "os.mkdir", "subprocess.Popen"):
        raise RuntimeError(f"{event} {found}")
sys.addaudithook(outside)
from dualtrack import Media, ToolResult, tool
from dualtrack.testing import calls, local_chat

@tool(approval="never")
def chart() -> ToolResult:
    '''Draws.'''
    return ToolResult(os.urandom(400_000).hex(), media=(Media("image/png", sys.argv[1]),))

with local_chat("assistant", model=[calls("chart"), "Done."], tools=[chart]) as chat:
    assert chat.ask("Draw!").status == "done"
root = logging.getLogger()
assert (root.level, root.handlers) == (logging.WARNING, []), "the root logger was set up"
"""


def test_it_needs_nothing_outside_of_the_process(tmp_path: Path) -> None:
    """No connection, no file, no AWS configuration of the machine."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-B", "-c", PROGRAM, PNG],
        env={"PATH": os.environ["PATH"], "AWS_PROFILE": "missing", "HTTPS_PROXY": "http://127.0.0.1:9"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def documented() -> dict[str, Callable[[], None]]:
    """The tests of docs/testing.md."""
    text = (ROOT / "docs" / "testing.md").read_text(encoding="utf-8")
    names: dict[str, Any] = {"__name__": "documented"}
    for block in re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        exec(compile(block, "docs/testing.md", "exec", dont_inherit=True), names)
    return {name: value for name, value in names.items() if name.startswith("test_")}


def test_the_documented_tests_pass() -> None:
    tests = documented()
    assert len(tests) >= 2
    for test in tests.values():
        test()


@tool(approval="never")
def refused_by_aws() -> str:
    """Reads a table that is not there."""
    raise ClientError({"Error": {"Code": "ResourceNotFoundException", "Message": "a secret"}}, "Query")


def test_what_aws_refuses_a_tool_is_its_error_result() -> None:
    with local_chat("assistant", model=[calls("refused_by_aws"), "No."], tools=[refused_by_aws]) as chat:
        answer = chat.ask("Read it.")
    assert (answer.calls[0].result, answer.calls[0].is_error) == ("Tool execution failed: ClientError.", True)


# ── a chat that waits ─────────────────────────────────────────────────────────────────────────────


@tool(approval="writes")
def pay(amount: int) -> str:
    """Pays."""
    return f"paid {amount}"


PAYING = [["I shall pay.", calls("pay", amount=5), calls("weather", city="Ottawa")], "Done."]


@pytest.mark.parametrize(
    ("decision", "result", "is_error", "charged"),
    [
        ({"approve": True}, "paid 5", False, 9),
        ({"approve": False, "reason": "Too much."}, "The user declined this call: Too much.", True, 7),
        ({"input": {"amount": 3}}, "paid 3", False, 9),
        (None, "Nobody decided in time.", True, 7),
    ],
    ids=["approved", "declined", "edited", "expired"],
)
def test_a_chat_that_waits_is_decided(
    decision: dict[str, Any] | None, result: str, is_error: bool, charged: int
) -> None:
    """What needs no decision has run before; the answer goes on with what was decided."""
    with local_chat(agent(tools=["pay", "weather"]), PAYING, tools=[pay, weather]) as chat:
        waiting = chat.ask("Pay and look.")
        assert (waiting.status, waiting.text, [call.name for call in waiting.calls]) == (
            "paused",
            "",
            ["weather"],
        )
        assert waiting.pause
        (call,) = waiting.pause.calls
        assert (call.name, call.input, call.kind, call.allowable) == ("pay", {"amount": 5}, "approval", True)
        answer = chat.decide(call.id, **decision) if decision else chat.expire()
        with pytest.raises(ValueError, match="waits for no decision"):
            chat.decide(approve=True)
    assert (answer.status, answer.text, answer.pause, answer.credits) == ("done", "Done.", None, charged)
    assert (answer.calls[0].result.endswith(result), answer.calls[0].is_error) == (True, is_error)
    assert (len(waiting.sent), len(answer.sent)) == (1, 1)


def test_what_is_allowed_for_the_conversation_runs_at_once() -> None:
    again = [calls("pay", amount=7), "Again."]
    with local_chat(agent(tools=["pay", "weather"]), [*PAYING, *again], tools=[pay, weather]) as chat:
        chat.ask("Pay and look.")
        chat.decide(approve=True, for_conversation=True)
        assert chat.ask("Pay again.").text == "Again."


def test_a_clients_tool_gets_its_result_and_a_wrong_decision_is_refused() -> None:
    local = {"name": "read_local", "description": "Reads.", "input_schema": {"type": "object"}}
    with local_chat("assistant", [calls("read_local"), "Read."]) as chat:
        waiting = chat.ask("Read it.", tools=[local])
        assert waiting.pause
        assert waiting.pause.calls[0].kind == "client_tool"
        with pytest.raises(ApiError):
            chat.decide(approve=True)
        with pytest.raises(ValueError, match="is one of"):
            chat.decide(approve=True, result="x")
        answer = chat.decide(result="Its text.")
    assert (answer.text, answer.calls[0].result) == ("Read.", "Its text.")
