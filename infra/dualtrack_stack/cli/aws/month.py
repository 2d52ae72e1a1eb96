"""The month of so many users, for `dualtrack aws cost --users`: one sentence, then what it is made of."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

import click
from dualtrack.models.prices import at_contract, price_list, rates_of

from dualtrack_stack import scale
from dualtrack_stack.cli.command import print_json
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.costs import total
from dualtrack_stack.model_use import model_use
from dualtrack_stack.settings import BadSettings, read_settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dualtrack_stack.costs import StackTemplate
    from dualtrack_stack.prices import PriceTable
    from dualtrack_stack.scale import Plan

_CENTS_BELOW: Final = 100
"""Dollars from which on cents say nothing."""


def show_month(
    templates: Sequence[StackTemplate],
    stage: str,
    users: int,
    chats_a_day: float,
    model: str | None,
    table: PriceTable,
    *,
    as_json: bool,
) -> None:
    """Print a month of a stage with its users. ``model``: the stage's if None. Raises `Missing` for a wrong setting."""
    try:
        configuration = read_settings(stage, os.environ)
        settings = configuration.checked()
    except BadSettings as problem:
        raise Missing(str(problem)) from None
    name = model or settings.dualtrack_model
    listed = at_contract(name, settings.dualtrack_model_prices, settings.dualtrack_provider)
    calls = model_use()[scale.KIND]
    prompt = calls.usage.prompt_tokens // calls.calls
    rates = listed.price_today().rates_for(prompt) if listed else rates_of(name, prompt)
    plan = scale.plan(
        templates, users, chats_a_day, name, rates, configuration.stage.request_rate, table.region
    )
    if as_json:
        print_json(_as_data(plan, stage, table, is_known=listed is not None))
        return
    click.echo(f"\n{click.style(sentence(plan), bold=True)}\n")
    click.echo("\n".join(_table(plan)))
    if listed is None:
        click.echo(f"\n{one_line(name, 100)} has no known price, and counts as its maker's dearest model.")
    click.echo(
        f"\nDollars, on demand in {table.region}: AWS's prices of {table.read_on}, the model's of"
        f"\n{price_list().taken_on}; no free tier. Every chat has two tools, results of 8 KB and an answer of 3 KB"
        "\n(your own receipts say what yours take); the busiest hour has a fifth of a day's chats."
    )


def sentence(plan: Plan) -> str:
    """The plan for who pays for it."""
    share = plan.model_dollars / plan.dollars
    chats = "1 chat" if plan.chats_a_day == 1 else f"{plan.chats_a_day:,g} chats"
    who = "1 user" if plan.users == 1 else f"{plan.users:,} users"
    first = plan.first
    times = first.chats_a_second / plan.busiest.chats_a_second
    met = (
        f"the first limit ({first.what}: {first.amount:,.0f}) is {rate(times)} times as far"
        if times >= 1
        else f"that is more than the first limit ({first.what}: {first.amount:,.0f}) lets through,"
        f" {rate(first.chats_a_second)} a second: {first.lift}"
    )
    return (
        f"{who} with {chats} a day cost {money(plan.dollars)} a month, {money(plan.dollars / plan.users)} each:"
        f" the model {money(plan.model_dollars)} ({share:.0%}), AWS {money(total(plan.lines))}. The busiest hour has"
        f" {rate(plan.busiest.chats_a_second)} chats a second; {met}."
    )


def rate(number: float) -> str:
    """A number with two digits at least, and no fewer than it has before the point."""
    return f"{number:,.0f}" if number >= 10 else f"{number:.2g}"


def money(dollars: float) -> str:
    """To the cent, whole dollars where there are many; what is less than a cent with two digits."""
    if dollars >= _CENTS_BELOW:
        return f"${dollars:,.0f}"
    return f"${dollars:.2f}" if dollars >= 0.01 or not dollars else f"${dollars:.2g}"


def _table(plan: Plan) -> Iterator[str]:
    yield click.style(f"{'a month':<76}{'$':>14}", bold=True)
    chats = plan.lines[0].amount
    yield f"  {f'The model, {one_line(plan.model, 40)}, of {chats:,.0f} chats':<74}{plan.model_dollars:>14,.2f}"
    for line in plan.lines:
        amount = f" ({line.amount:,.0f} × ${line.price:.4g})" if line.amount != 1 else ""
        yield f"  {line.item + amount:<74}{line.dollars:>14,.2f}"
    yield f"  {'together':<74}{plan.dollars:>14,.2f}"
    busy = plan.busiest
    yield click.style(f"\n{f'busiest hour, {rate(busy.chats_a_second)} chats a second':<76}", bold=True)
    for what, amount in (
        ("Lambda, executions at a time, at most", busy.executions),
        ("of them open streams", busy.streams),
        ("DynamoDB, write units a second", busy.writes),
        ("Step Functions, states a second", busy.states),
        ("The model's calls a minute (your service's limit: its console)", busy.model_calls),
        ("its tokens of input a minute, without those read from its cache", busy.model_input),
        ("its tokens of output a minute", busy.model_output),
    ):
        yield f"  {what:<74}{rate(amount):>14}"
    yield click.style(f"\n{'limits, the first one first':<60}{'limit':>14}{'chats a second':>16}", bold=True)
    for limit in plan.limits:
        met = "  met" if limit.chats_a_second < busy.chats_a_second else ""
        yield f"  {limit.what:<58}{limit.amount:>14,.0f}{rate(limit.chats_a_second):>16}{met}"
        yield f"      {limit.lift}"


def _as_data(plan: Plan, stage: str, table: PriceTable, *, is_known: bool) -> dict[str, Any]:
    return {
        "stage": stage,
        **table.source(),
        "users": plan.users,
        "chats_a_day": plan.chats_a_day,
        "model": {"name": plan.model, "dollars": plan.model_dollars, "is_known": is_known},
        "dollars": plan.dollars,
        "lines": [line.as_data() for line in plan.lines],
        "busiest": asdict(plan.busiest),
        "limits": [asdict(limit) for limit in plan.limits],
    }
