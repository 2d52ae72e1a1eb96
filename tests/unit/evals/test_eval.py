"""`dualtrack eval` within the process: the project's agent and tools, the offline model, and a service on a port."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as Xml

import pytest
from dualtrack_stack.local.offline_model.server import serve_offline_model

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from click.testing import Result

    Evaluate = Callable[..., Result]


def only(result: Result) -> dict[str, Any]:
    (one,) = json.loads(result.stdout)["results"]
    return one


def test_a_new_project_has_a_case_that_passes(evaluate: Evaluate) -> None:
    said = evaluate()
    assert said.exit_code == 0, said.output
    assert "passed  weather/Boots in Ottawa  (offline, 2 turns, 7 credits" in said.output
    assert "not checked: judge" in said.output
    assert "1 of 1 passed" in said.output


@pytest.mark.parametrize(
    ("check", "told"),
    [
        ('contains = "hail"', "contains “hail”: the answer is “"),
        ('lacks = "SNOW"', "lacks “SNOW”"),
        ('matches = "-[0-9]{3} °C"', "matches “-[0-9]{3} °C”"),
        (
            'calls = { tool = "weather", input = { city = "Lisbon" } }',
            'calls weather with {"city": "Lisbon"}: called: weather',
        ),
        ('never_calls = "weather"', "never calls weather"),
        ("most_turns = 1", "at most 1 turns: 2"),
        ("most_credits = 6", "at most 6 credits: 7"),
        ("most_dollars = 0.0000001", "at most 1e-07 dollars"),
        ("most_seconds = 0.000001", "at most 1e-06 seconds"),
        ('status = "paused"', "status paused: done"),
        ('schema = { type = "integer", minimum = 3 }', ""),
    ],
)
def test_each_check_passes_and_fails(evaluate: Evaluate, check: str, told: str) -> None:
    said = evaluate(cases=f'[[case]]\nname = "one"\nask = "weather city=Ottawa"\n{check}\n')
    assert said.exit_code == (4 if told else 0), said.output
    assert told in said.output
    if told:
        assert "evals/weather.toml:1: " in said.output
        assert "0 of 1 passed" in said.output


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('[[case]]\nname = "a"\nask = "x"\ncontain = "y"', "evals/weather.toml:4: case.1.contain: there is no such name: write contains"),
        ('[[case]]\nname = "a"\n\n[[case.turn]]\nask = "x"\njugde = "y"', "evals/weather.toml:6: case.1.turn.1.jugde: there is no such name: write judge"),
        ('profle = "a"', "evals/weather.toml:1: profle: there is no such name: write profile"),
        ('[[case]]\nname = "a"\nask = "x"\nprofile = "asistant"', "there is no such name: write assistant"),
        ('[[case]]\nname = "a"\nask = "x"\nnever_calls = "wether"', "there is no such name: write weather"),
        ('[[case]]\nname = "a"', "evals/weather.toml:1: case.1: a case has either ask, or one [[case.turn]]"),
        ('[[case]]\nname = "a"\nask = "x"\nmatches = "(?=a)"', "evals/weather.toml:4: case.1.matches.1: this is no regular expression"),
        ('[[case]]\nname = "a"\nask = "x"\nmost_turns = "3"', "evals/weather.toml:4: case.1.most_turns: it should be a valid integer"),
        ('[[case]]\nname = "a\nask = 3', "evals/weather.toml:2: this is no TOML"),
        ('[[case]]\nname = "a"\nask = "x"\n[[case]]\nname = "a"\nask = "x"', "evals/weather.toml:4: case 'a': there is one of this name above"),
        ('[[case]]\nname = "a"\nask = "x"\nschema = { type = "sting" }', "evals/weather.toml:4: case.1.schema"),
    ],
)  # fmt: skip
def test_a_wrong_file_is_named_with_its_line(evaluate: Evaluate, text: str, told: str) -> None:
    said = evaluate(cases=text)
    assert said.exit_code == 2, said.output
    assert told in said.output


def test_a_conversation_is_one(evaluate: Evaluate) -> None:
    cases = """
[[case]]
name = "two"
calls = ["weather", { tool = "retrieve_full_context", input = { id = "q1-t1" } }]

[[case.turn]]
ask = "weather city=Ottawa"
contains = "snow"

[[case.turn]]
ask = "retrieve_full_context id=q1-t1"
contains = "hail"
"""
    said = evaluate("--json", cases=cases)
    assert said.exit_code == 4
    result = only(said)
    failed = [one["check"] for one in result["findings"] if not one["passed"]]
    assert failed == ["message 2: contains “hail”"]
    assert [one["outcome"]["turns"] for one in result["exchanges"]] == [2, 2]
    assert result["outcome"]["turns"] == 4
    assert [one["tool"] for one in result["outcome"]["calls"]] == ["weather", "retrieve_full_context"]


def test_a_given_result_stands_in_for_the_tool(evaluate: Evaluate) -> None:
    cases = """
[[case]]
name = "ordered"
ask = "order item=boots"
decide = "approve"
contains = "no boots left"
lacks = "ordered boots"
results = [{ tool = "order", input = { item = "boots" }, text = "There are no boots left." }]

[[case]]
name = "really"
ask = "order item=hats"
decide = "approve"
contains = "ordered hats"

[[case]]
name = "declined"
ask = "order item=gloves"
decide = "decline"
lacks = "ordered gloves"

[[case]]
name = "waits"
ask = "order item=socks"
status = "paused"
"""
    said = evaluate(cases=cases)
    assert said.exit_code == 0, said.output
    assert sys.modules["tools.orders"].MADE == ["hats"]


def test_two_profiles_are_compared(evaluate: Evaluate, root: Path) -> None:
    said = evaluate("--compare", "profile=brief", "--html", "out.html", "--junit", "out.xml")
    assert said.exit_code == 0, said.output
    assert "1 pass with now alone, 0 with profile=brief alone (sign test: p = 1.00)" in said.output
    assert "profile=brief: FAILED" in said.output
    page = (root / "out.html").read_text()
    assert "1 pass with now alone" in page
    assert "<script" not in page
    suite = Xml.parse(root / "out.xml").getroot()
    assert [case.get("name") for case in suite.iter("testcase")] == ["weather/Boots in Ottawa"]
    assert evaluate("--compare", "profil=brief").exit_code == 2


def test_a_failure_stands_in_junit_and_page(evaluate: Evaluate, root: Path) -> None:
    cases = '[[case]]\nname = "one"\nask = "<b>hi</b>"\ncontains = "<i>never</i>"\n'
    assert evaluate("--html", "out.html", "--junit", "out.xml", cases=cases).exit_code == 4
    (failure,) = Xml.parse(root / "out.xml").getroot().iter("failure")
    assert "evals/weather.toml:1" in (failure.text or "")
    page = (root / "out.html").read_text()
    assert "<details open" in page
    assert "&lt;i&gt;never&lt;/i&gt;" in page
    assert "<b>hi</b>" not in page


JUDGED = """
[[case]]
name = "one"
ask = "weather city=Ottawa"
contains = "snow"
judge = "Says that it snows."

[[labelled]]
rubric = "Says that it snows."
answer = "It snows."
passes = true

[[labelled]]
rubric = "Says that it snows."
answer = "It rains."
passes = false
"""


def verdict(passes: bool, reason: str = "It says so.") -> dict[str, Any]:
    return {"match": "structured", "text": json.dumps({"reason": reason, "passes": passes})}


def test_a_live_service_is_recorded_judged_and_played_again(
    evaluate: Evaluate, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert evaluate("--answers", "live", cases=JUDGED).exit_code == 2
    assert "needs ANTHROPIC_API_KEY" in evaluate("--answers", "live").output
    assert "there is no recording" in evaluate("--answers", "recorded").output
    with serve_offline_model([verdict(True), verdict(True), verdict(True, "Rain is snow.")]) as service:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        said = evaluate("--answers", "live", "--record")
        assert said.exit_code == 0, said.output
        assert "(live, 2 turns" in said.output
        assert "the judge agrees with 1 of 2 labelled answers, kappa 0.00" in said.output
        assert "labelled fails, the judge says passes: Rain is snow." in said.output
        asked = len(service.requests)
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    again = evaluate("--json")
    assert again.exit_code == 0, again.output
    result = only(again)
    assert result["by"] == "recorded"
    assert result["drifted"] == 0
    assert {"check": "judge: Says that it snows.", "passed": True, "instead": "It says so."} in result[
        "findings"
    ]
    assert len(service.requests) == asked
    assert "key" not in (root / "evals" / "recorded" / "weather-one.json").read_text()
    other = evaluate("--answers", "recorded", cases=JUDGED.replace("Ottawa", "Lisbon"))
    assert "recorded for another prompt" in other.output


def test_a_judge_s_no_fails_the_case(evaluate: Evaluate, monkeypatch: pytest.MonkeyPatch) -> None:
    with serve_offline_model([verdict(False, "It says nothing of snow.")]) as service:
        monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
        monkeypatch.setenv("ANTHROPIC_BASE_URL", service.url)
        said = evaluate("--answers", "live", cases=JUDGED.partition("[[labelled]]")[0])
    assert said.exit_code == 4
    assert "judge: Says that it snows.: It says nothing of snow." in said.output


def test_a_commit_is_compared(evaluate: Evaluate, root: Path) -> None:
    """With its agents and tools, and today's cases; the checkout is as it was before."""

    def git(*arguments: str) -> str:
        identity = ("-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false")
        return subprocess.run(
            ["git", *identity, *arguments], cwd=root, check=True, capture_output=True, text=True
        ).stdout

    tool = root / "tools" / "weather.py"
    before = tool.read_text()
    tool.write_text(before.replace("snow", "hail"))
    git("init", "-q")
    git("add", "tools", "profiles", "dualtrack.toml", "pyproject.toml")
    git("commit", "-qm", "first")
    tool.write_text(before)
    said = evaluate("--compare", "commit=HEAD")
    assert said.exit_code == 0, said.output
    assert "1 pass with now alone, 0 with commit=HEAD alone" in said.output
    assert "contains “snow”: the answer is" in said.output
    assert len(git("worktree", "list").splitlines()) == 1
    assert "tools/weather.py" in git("status", "--short")
    assert evaluate("--compare", "commit=nowhere").exit_code == 2
    shutil.rmtree(root / ".git")
