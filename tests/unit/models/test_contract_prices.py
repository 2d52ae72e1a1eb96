"""Prices by contract, in place of the list's (`[models]` of ``dualtrack.toml``)."""

from __future__ import annotations

import json
from typing import Any

import pytest
from dualtrack.models.contract_prices import checked_prices, wrong_price
from dualtrack.models.prices import at_contract, is_known, rates_of
from dualtrack.models.turn import Usage
from dualtrack.settings import Settings
from hypothesis import given
from hypothesis import strategies as some

PLAIN: dict[str, Any] = {"input": 3.6, "output": 18, "cache_read": 0.18, "cache_write": 4.5}


def of(model: str, entry: dict[str, Any], asked: str, provider: str = "") -> Any:
    return at_contract(asked, json.dumps({model: entry}), provider)


@pytest.mark.parametrize(
    ("model", "asked", "provider"),
    [
        ("claude-opus-5-5", "claude-opus-5-5", ""),
        ("claude-opus-5-5", "claude-opus-5-5-20261101", ""),  # another name of the same
        ("claude-opus-5.5", "claude-opus-5-5", ""),
        ("claude-opus-5-5", "claude-opus-5-5", "bedrock"),
        ("anthropic.claude-opus-5-5", "claude-opus-5-5", "bedrock"),
        ("my-gateways-own", "my-gateways-own", ""),
    ],
)
def test_a_contract_goes_before_the_list(model: str, asked: str, provider: str) -> None:
    price = of(model, PLAIN, asked, provider).price_on("2026-11-27")
    assert (price.rates.input, price.rates.cache_read, price.rates.is_known) == (3.6, 0.18, True)
    assert price.rates.cache_write_hour == 4.5


@pytest.mark.parametrize("asked", ["claude-opus-5", "claude-opus-5-5-x", "my-gateway"])
def test_a_contract_is_for_its_model_alone(asked: str) -> None:
    listed = of("claude-opus-5-5", PLAIN, asked)
    assert listed is None or listed.price_on("2026-11-27").rates.input != 3.6


def test_on_bedrock_the_list_is_bedrocks() -> None:
    here, there = at_contract("claude-opus-5-5", "", ""), at_contract("claude-opus-5-5", "", "bedrock")
    assert here is not None
    assert there is not None
    assert (here.price_on("2026-11-27").rates.input, there.price_on("2026-11-27").rates.input) == (4, 4.4)


def test_a_contract_holds_from_its_day() -> None:
    listed = of("claude-opus-5-5", {**PLAIN, "since": "2026-12-01"}, "claude-opus-5-5")
    days = ("2026-11-30", "2026-12-01")
    assert [listed.price_on(day).rates.input for day in days] == [4, 3.6]


def test_a_contract_may_have_a_price_of_long_prompts() -> None:
    long = {**PLAIN, "input": 7, "above": 1_000}
    price = of("claude-haiku-5-5", {**PLAIN, "long": long}, "claude-haiku-5-5").price_on("2026-11-27")
    assert [price.rates_for(tokens).input for tokens in (1_000, 1_001, 200_000)] == [3.6, 7, 7]


def test_the_deployments_prices_count_everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALTRACK_MODEL_PRICES", json.dumps({"my-own": PLAIN}))
    assert is_known("my-own")
    assert rates_of("my-own").dollars(Usage(1_000_000)) == 3.6
    monkeypatch.delenv("DUALTRACK_MODEL_PRICES")
    assert not is_known("my-own")
    assert rates_of("my-own").input == 15


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        ("cheap", "a table is expected"),
        ({**PLAIN, "batch": 1}, "batch is no price: write input, "),
        ({"input": 1, "output": 5, "cache_write": 1}, "cache_read is missing"),
        ({**PLAIN, "output": "18"}, "output: dollars"),
        ({**PLAIN, "output": True}, "output: dollars"),
        ({**PLAIN, "output": -1}, "output: dollars"),
        ({**PLAIN, "output": float("nan")}, "output: dollars"),
        ({**PLAIN, "output": 10**400}, "output: dollars"),
        ({**PLAIN, "output": 0.0000001}, "output: dollars"),
        ({**PLAIN, "since": "soon"}, "since is a day"),
        ({**PLAIN, "since": 2026}, "since is a day"),
        ({**PLAIN, "long": 5}, "long is a table"),
        ({**PLAIN, "long": {**PLAIN, "above": 0}}, "long: above"),
        ({**PLAIN, "long": {"above": 5, "input": 1}}, "long: output is missing"),
    ],
)
def test_what_is_wrong_is_said(entry: Any, problem: str) -> None:
    assert wrong_price(entry).startswith(problem)
    with pytest.raises(ValueError, match=problem[:8]):
        checked_prices(json.dumps({"m": entry}), Settings())


@pytest.mark.parametrize("text", ["{", "[1]", "7", "null", '{"a b": {}}', '{"": {}}', "[" * 100_000])
def test_what_is_no_setting_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="expected"):
        checked_prices(text, Settings())


def test_a_setting_fits_into_a_functions_environment() -> None:
    many = {f"model-{number}": PLAIN for number in range(40)}
    with pytest.raises(ValueError, match="some 15 models"):
        checked_prices(json.dumps(many), Settings())
    fifteen = {f"claude-opus-5-{number}": PLAIN for number in range(15)}
    assert json.loads(checked_prices(json.dumps(fifteen), Settings())) == fifteen


@given(
    some.recursive(
        some.none() | some.floats() | some.text(max_size=3),
        lambda inner: (
            some.dictionaries(some.text(max_size=8), inner, max_size=3) | some.lists(inner, max_size=3)
        ),
    )
)
def test_anything_is_refused_with_words(entry: Any) -> None:
    assert wrong_price(entry)
