"""``dualtrack prices``: what models cost, by which list, and by which names the list knows them."""

from __future__ import annotations

import os
from dataclasses import asdict
from typing import TYPE_CHECKING

import click
from dualtrack.models.contract_prices import prices_of
from dualtrack.models.prices import CONTRACT, at_contract, price_list, rates_of

from dualtrack_stack.cli.command import exit_codes, json_option, print_json
from dualtrack_stack.cli.target import Missing, need
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.models.prices import Listed, Price, Rates
    from dualtrack.settings import Settings

_HEAD = ("input", "output", "cache read", "write 5 min", "write 1 h")
_KINDS = ("input", "output", "cache_read", "cache_write", "cache_write_hour")


@click.command("prices")
@click.argument("model", required=False)
@click.option("--stage", default="local", show_default=True, help="Whose contracts and provider count.")
@json_option
@click.pass_context
def prices(context: click.Context, *, model: str | None, stage: str, as_json: bool) -> None:
    """What models cost, in US dollars for a million tokens; of MODEL alone all that is known. Prices by contract,
    [models] of dualtrack.toml, stand first.

    Exit codes: 0, 1 if MODEL has no known price, 2 if the file is wrong.
    """
    with exit_codes():
        settings = _settings(stage)
    known, contracts, provider = price_list(), settings.dualtrack_model_prices, settings.dualtrack_provider
    agreed = tuple(at_contract(name, contracts, provider) for name in prices_of(contracts))
    models = (*filter(None, agreed), *known.models)
    found = at_contract(model, contracts, provider) if model is not None else None
    if as_json:
        chosen = models if model is None else (found,) if found else ()
        print_json({"source": known.source, "taken_on": known.taken_on, "models": [*map(asdict, chosen)]})
    else:
        lines = _table(models) if model is None else _whole(found) if found else _unknown(model)
        click.echo("\n".join(lines))
        click.echo(
            f"\nUS dollars for a million tokens. List prices of {known.taken_on}, from {known.source}."
        )
    if model is not None and found is None:
        context.exit(1)


def _settings(stage: str) -> Settings:
    """Those of a stage of the project. Raises `Missing`."""
    need("local", "`dualtrack prices`")
    from dualtrack_stack.settings import BadSettings, read_settings  # noqa: PLC0415 - extra `local`

    try:
        return read_settings(stage, os.environ).checked()
    except BadSettings as problem:
        raise Missing(str(problem)) from None


def _table(models: tuple[Listed, ...]) -> Iterator[str]:
    """A line for each model, at today's price of a prompt that is not long."""
    width = max(len(listed.id) for listed in models)
    yield click.style(f"{'model':<{width}}  {_row(_HEAD)}", bold=True)
    for listed in models:
        price = listed.price_today()
        notes = [
            "by contract" if listed.service == CONTRACT else "",
            f"dearer above {price.long[0][0]:,} tokens" if price.long else "",
        ]
        yield f"{listed.id:<{width}}  {_rates(price.rates)}  {', '.join(filter(None, notes))}".rstrip()


def _whole(listed: Listed) -> Iterator[str]:
    where = "by contract" if listed.service == CONTRACT else f"at {listed.service}"
    yield click.style(listed.id, bold=True) + f"  made by {listed.maker}, {where}"
    yield f"names   {', '.join(listed.names)}"
    yield ""
    yield click.style(f"{'':<34}{_row(_HEAD)}", bold=True)
    for price in listed.prices:
        yield from _price("", price)
    for price in listed.batch:
        yield from _price("in a batch", price)
    if (searches := listed.price_today().web_searches) is not None:
        yield f"\n1,000 web searches: ${searches:g}"


def _price(what: str, price: Price) -> Iterator[str]:
    words = [what, f"since {price.since}" if price.since else ""]
    yield f"{', '.join(filter(None, words)) or 'any call':<34}{_rates(price.rates)}"
    for above, rates in price.long:
        yield f"{f'  above {above:,} tokens of prompt':<34}{_rates(rates)}"


def _unknown(model: str) -> Iterator[str]:
    yield f"{one_line(model, 100)} has no known price. It counts as its maker's dearest model, kind by kind:"
    yield ""
    yield click.style(f"{'':<34}{_row(_HEAD)}", bold=True)
    yield f"{'a guess':<34}{_rates(rates_of(model))}"


def _rates(rates: Rates) -> str:
    return _row(tuple(f"{getattr(rates, kind):g}" for kind in _KINDS))


def _row(cells: tuple[str, ...]) -> str:
    return "".join(f"{cell:>12}" for cell in cells)
