"""The state machine's definition: well formed, nested timeouts, small payload."""

from __future__ import annotations

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, get_args

import pytest
from dualtrack.chat_times import (
    ANSWER_LEASE_SECONDS,
    ANSWER_SECONDS,
    CHAT_SECONDS,
    INVOCATION_SECONDS,
    LONGEST,
    ChatTimes,
)
from dualtrack.corpora.jobs import CORPORA
from dualtrack.tool_values import ToolKind
from dualtrack_stack.machines import CHAT, CORPUS, definition_of, steps_of
from dualtrack_stack.node import node
from dualtrack_stack.stacks.function_specs import PLUGIN_STACKS, SPECS
from jsonata.jsonata import Jsonata

VALIDATOR = (
    Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    / "dualtrack/npm-infra/node_modules/asl-validator/dist/bin/asl-validator.js"
)
STATE_OF = {
    **dict.fromkeys(get_args(ToolKind), "Tool"),
    "turn": "Turn",
    "summarise": "Summarise",
    "abort": "Abort",
    "ingest": "Ingest",
    "graph_load": "Ingest",
    **{name: "Ingest" for stack in PLUGIN_STACKS for name in stack.corpora.values()},
}
THROTTLED = "Lambda.TooManyRequestsException"
DEFINITIONS = (CHAT, CORPUS)


def definition(path: Path = CHAT) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(definition_of(path))
    return loaded


def tasks(path: Path = CHAT) -> dict[str, dict[str, Any]]:
    """Every task by name, including those inside the Map."""
    states = definition(path)["States"]
    inner = states["RunTools"]["ItemProcessor"]["States"] if "RunTools" in states else {}
    return {name: state for name, state in {**states, **inner}.items() if state["Type"] == "Task"}


@pytest.mark.skipif(
    not VALIDATOR.is_file(), reason="asl-validator is not installed (.ci/install_asl_validator.sh)"
)
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda path: path.name)
def test_asl_validator_has_nothing_to_say(tmp_path: Path, definition: Path) -> None:
    text = definition_of(definition)
    for spec in steps_of(definition):
        arn = f"arn:aws:lambda:us-east-1:000000000000:function:{spec.name}:live"
        text = text.replace(f"${{{spec.construct_id}}}", arn)
    path = tmp_path / definition.name
    path.write_text(text)
    done = subprocess.run(
        [node(), VALIDATOR, "--json-path", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def seconds_of(state: dict[str, Any], given: dict[str, int]) -> int:
    """The time of a task in an execution with this input."""
    seconds = state["TimeoutSeconds"]
    if isinstance(seconds, int):
        return seconds
    expression = Jsonata.jsonata(seconds.removeprefix("{%").removesuffix("%}").strip())
    expression.assign("states", {"context": {"Execution": {"Input": given}}})
    found: Any = expression.evaluate({})
    return int(found)


def test_times_are_nested() -> None:
    """Lambda < state < execution, for the longest call; and what starts a stream outlasts it."""
    longest = {"call_seconds": LONGEST.call}
    for path in DEFINITIONS:
        limits = {name: seconds_of(state, longest) for name, state in tasks(path).items()}
        for spec in steps_of(path):
            assert spec.seconds < limits[STATE_OF[spec.name]], spec.name
        assert max(limits.values()) < definition(path)["TimeoutSeconds"]
    assert definition()["TimeoutSeconds"] == LONGEST.chat
    assert SPECS["api"].seconds <= 29  # API Gateway's own limit
    assert LONGEST.call < SPECS["turn"].seconds < INVOCATION_SECONDS
    assert (
        LONGEST.state <= ANSWER_SECONDS < ANSWER_LEASE_SECONDS < SPECS["stream"].seconds < INVOCATION_SECONDS
    )


def test_a_turn_has_the_time_of_its_chat() -> None:
    """From the input; an execution that an earlier release began has none in it, nor a long call."""
    turn = tasks()["Turn"]
    assert seconds_of(turn, {}) == ChatTimes().state == 150
    for call in (120, 333, LONGEST.call):
        assert seconds_of(turn, {"call_seconds": call}) == ChatTimes(call).state


@pytest.mark.parametrize("path", DEFINITIONS, ids=lambda path: path.name)
def test_every_function_of_the_definition_is_substituted(path: Path) -> None:
    named = set(re.findall(r"\$\{(\w+)\}", definition_of(path)))
    assert named == {spec.construct_id for spec in steps_of(path)}


def test_a_job_on_a_corpus_is_called_until_it_says_that_it_is_done() -> None:
    """A step that fails at every attempt ends the job; if ending it fails too, the sweep restarts it."""
    states = definition(CORPUS)["States"]
    assert states["Ingest"]["Next"] == "Route"
    (again,) = states["Route"]["Choices"]
    assert (again["Condition"], again["Next"]) == ("{% $states.input.next = 'again' %}", "Ingest")
    assert states["Ingest"]["Catch"][0]["Next"] == "Fail"
    assert "Catch" not in states["Fail"]
    for state in tasks(CORPUS).values():
        assert {"States.TaskFailed", "States.Timeout"} <= set(state["Retry"][1]["ErrorEquals"])


def test_every_corpus_has_its_function() -> None:
    for state in tasks(CORPUS).values():
        (lookup,) = re.findall(r"\$lookup\((\{.*?'\})", state["Arguments"]["FunctionName"])
        of_plugins = {kind for stack in PLUGIN_STACKS for kind in stack.corpora}
        assert set(json.loads(lookup.replace("'", '"'))) == set(CORPORA) | of_plugins


NOT_RUN = ("client_tool", "question")


def test_every_kind_of_tool_has_its_function() -> None:
    """The function has the kind's name; the client and the user answer calls of the last two."""
    (table,) = re.findall(r"\$lookup\((\{.*?'\})", tasks()["Tool"]["Arguments"]["FunctionName"])
    functions = {
        kind: f"${{{SPECS[kind].construct_id}}}" for kind in get_args(ToolKind) if kind not in NOT_RUN
    }
    assert json.loads(table.replace("'", '"')) == functions


def test_every_task_is_retried_and_ends_somewhere() -> None:
    for name, state in tasks().items():
        *throttled, first, second = state["Retry"]
        assert all(error.startswith("Lambda.") for error in first["ErrorEquals"])
        assert [retrier["ErrorEquals"] for retrier in throttled] in ([], [[THROTTLED]])
        assert (THROTTLED in first["ErrorEquals"]) == (not throttled)
        assert first["MaxAttempts"] == 6
        assert first["JitterStrategy"] == "FULL"
        assert "States.TaskFailed" in second["ErrorEquals"]
        if name == "Abort":
            assert "Catch" not in state  # the rule on the execution's end and the sweep handle it
        else:
            (catch,) = state["Catch"]
            assert catch["ErrorEquals"] == ["States.ALL"]


def test_a_turn_waits_for_its_own_function_as_for_the_model() -> None:
    """Until the chat's last call, with the mean of full jitter, half of each interval: Step Functions retries a
    throttled invocation without cost.
    """
    throttled = tasks()["Turn"]["Retry"][0]
    assert throttled["ErrorEquals"] == [THROTTLED]
    waits = [min(2**attempt, throttled["MaxDelaySeconds"]) / 2 for attempt in range(throttled["MaxAttempts"])]
    assert CHAT_SECONDS - ChatTimes().last_call - 2 * throttled["MaxDelaySeconds"] < sum(waits) < CHAT_SECONDS


def test_the_workflow_waits_for_a_busy_model_outside_the_functions() -> None:
    states = definition()["States"]
    (waits,) = [choice for choice in states["Route"]["Choices"] if "'wait'" in choice["Condition"]]
    assert states[waits["Next"]]["Type"] == "Wait"
    assert states[waits["Next"]]["Next"] == "Turn"


def test_a_failing_tool_never_fails_the_chat() -> None:
    inner = definition()["States"]["RunTools"]["ItemProcessor"]["States"]
    assert inner["Tool"]["Catch"][0]["Next"] == "NoResult"
    assert inner["NoResult"] == {"Type": "Pass", "End": True}


def test_states_pass_only_ids() -> None:
    states = definition()["States"]
    assert states["RunTools"]["Output"] == {"turn": "{% $states.input.turn %}"}
    assert states["RunTools"]["ItemProcessor"]["States"]["Tool"]["Output"] == {}
    assert states["Summarise"]["Output"] == states["Abort"]["Output"] == {}
    for state in (*states.values(), *states["RunTools"]["ItemProcessor"]["States"].values()):
        for catch in state.get("Catch", []):
            cause = catch["Output"].get("error", {}).get("Cause", "$substring(")
            assert "$substring(" in cause  # a cause may be 32 KB long
