"""A month with users: the plan's arithmetic, its first limit, and that the documents say what the command does."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack.models.prices import rates_of
from dualtrack_stack import scale
from dualtrack_stack.cli.aws.month import money, rate, sentence
from dualtrack_stack.cli.main import main
from dualtrack_stack.costs import GROWN, chat_lines, counted, idle_lines, sizes, total
from dualtrack_stack.model_use import model_use

from bench import model_use as bench
from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Templates = list[dict[str, Any]]

HAIKU = "claude-haiku-5-5"
RATE = 200.0
"""Of prod."""
SCALE = (1, 10, 100, 1_000)


@pytest.fixture(scope="module")
def prod(assembly: Callable[..., Path]) -> Templates:
    return [json.loads(path.read_text()) for path in sorted(assembly("prod").glob("*.template.json"))]


def planned(prod: Templates, users: int, chats_a_day: float) -> scale.Plan:
    return scale.plan(prod, users, chats_a_day, HAIKU, rates_of(HAIKU), RATE)


def test_a_month_is_its_chats_its_stage_and_its_users(prod: Templates) -> None:
    plan, chats = planned(prod, 1_000, 10), 1_000 * 10 * 730 / 24
    used = model_use()[scale.KIND]
    # input 0.1, output 0.5, cache read 0.01, written 0.125 dollars a million
    tokens = 0.1 * used.input_tokens + 0.5 * used.output_tokens
    tokens += 0.01 * used.cache_read_tokens + 0.125 * used.cache_write_tokens
    assert plan.model_dollars == pytest.approx(chats * tokens / 1e6)
    aws = chats * total(chat_lines(counted()[GROWN], sizes(prod))) + total(idle_lines(prod)) + 1_000 * 0.015
    assert plan.dollars - plan.model_dollars == pytest.approx(aws + 52 * 0.30)


def test_executions_at_a_time_are_those_of_the_functions() -> None:
    chat = counted()[GROWN]
    lambda_lines = [
        line for line in chat_lines(chat, dict.fromkeys(("api", "turn", "tool", "summarise", "stream"), 1024))
        if line.item.startswith("Lambda ") and line.item.endswith("GB-s")
    ]  # fmt: skip
    seconds = scale.busy_seconds(chat)
    assert seconds == pytest.approx(sum(line.amount for line in lambda_lines))
    assert scale.load(100).executions == math.ceil(100 * seconds + 3 * math.sqrt(100 * seconds))


def test_a_limit_is_met_by_just_more_than_it_lets_through() -> None:
    by_name = {limit.what: limit for limit in scale.limits(RATE)}
    executions = by_name["Lambda, executions at a time"]
    at, above = scale.load(executions.chats_a_second * 0.999), scale.load(executions.chats_a_second * 1.01)
    assert at.executions <= 1_000
    assert at.streams <= 500
    assert above.executions > 1_000 or above.streams > 500
    rates = [limit.chats_a_second for limit in scale.limits(RATE)]
    assert rates == sorted(rates)
    assert scale.limits(10.0)[0].what.startswith("The stage's request_rate")


def test_a_region_that_is_not_large_has_lower_limits() -> None:
    def states(region: str) -> float:
        (limit,) = (one for one in scale.limits(RATE, region) if "states" in one.what)
        return limit.amount

    assert states("us-east-1") == states("eu-west-1") > states("eu-central-1")
    (writes,) = {limit.amount for limit in scale.limits(RATE, "eu-central-1") if "never had" in limit.what}
    assert writes == 4_000


def test_the_tokens_are_those_of_today() -> None:
    """If it fails: uv run --group test python -m bench.model_use --write."""
    for name in bench.RESULTS:
        assert bench.count(name) == model_use()[name]


def test_the_documents_say_what_the_command_does(prod: Templates) -> None:
    text = (ROOT / "docs" / "aws" / "costs.md").read_text()
    assert sentence(planned(prod, 1_000, 10)) in " ".join(text.replace("\n> ", " ").split())
    each = total(chat_lines(counted()[GROWN], sizes(prod)))
    for a_second in SCALE:
        load, limits = scale.load(a_second), scale.limits(RATE)
        met = [limit for limit in limits if limit.chats_a_second < a_second]
        row = f"| {a_second:,} | {load.executions:,} | {load.streams:,} | {load.writes:,.0f} | {load.states:,.0f} |"
        row += f" {load.model_input / 1e6:,.1f} + {load.model_output / 1e6:,.2f} | {3_600 * a_second * each:,.2f} |"
        row += f" {'; '.join(limit.what for limit in met) or 'nothing'} |"
        assert row in text


def test_a_sentence_says_what_is_met_and_what_lifts_it(prod: Templates) -> None:
    far = sentence(planned(prod, 1, 1))
    assert far.startswith("1 user with 1 chat a day cost $")
    assert " times as far" in far
    met = sentence(planned(prod, 1_000_000, 20))
    assert "more than the first limit" in met
    assert "warm throughput" in met


@pytest.mark.parametrize(
    ("number", "text"), [(0.005, "0.005"), (9.96, "10"), (41.34, "41"), (1234.5, "1,234"), (0, "0")]
)
def test_a_rate_has_no_more_digits_than_mean_something(number: float, text: str) -> None:
    assert rate(number) == text


@pytest.mark.parametrize(
    ("dollars", "text"), [(0, "$0.00"), (0.0042, "$0.0042"), (3.5, "$3.50"), (5e6, "$5,000,000")]
)
def test_money_is_read_at_a_glance(dollars: float, text: str) -> None:
    assert money(dollars) == text


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--users", "5"], "belong together"),
        (["--chats-a-day", "5"], "belong together"),
        (["--model", HAIKU], "needs --users"),
        (["--users", "0", "--chats-a-day", "5"], "is not in the range"),
        (["--users", "5", "--chats-a-day", "0"], "is not in the range"),
    ],
)
def test_what_says_nothing_is_refused(options: list[str], said: str) -> None:
    ended = CliRunner().invoke(main, ["aws", "cost", *options])
    assert ended.exit_code == 2
    assert said in ended.output


def test_the_command_needs_no_account_and_names_a_guess(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "000000000000")
    arguments = ["aws", "cost", "--users", "20", "--chats-a-day", "3", "--region", "us-east-1"]
    ended = CliRunner().invoke(main, [*arguments, "--model", "claude-unheard-of"])
    assert ended.exit_code == 0, ended.output
    assert "claude-unheard-of has no known price" in ended.stdout
    answer = json.loads(CliRunner().invoke(main, [*arguments, "--json"]).stdout)
    assert answer["model"]["name"] == HAIKU
    assert answer["model"]["is_known"]
    assert answer["dollars"] == pytest.approx(
        answer["model"]["dollars"] + sum(line["dollars"] for line in answer["lines"])
    )
