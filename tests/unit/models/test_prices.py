"""The price list (DESIGN 2.15): dated data by a model's exact name, as the package has it that it is taken from."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from dualtrack.models.cost_cap import most_of_a_call
from dualtrack.models.prices import DATA_FILE, VOYAGE, Rates, call_rates, is_known, price_list, rates_of
from dualtrack.models.turn import Usage
from genai_prices import Usage as PackageUsage
from genai_prices import calc_price

from tests.drivers.model_prices import snapshot, written

if TYPE_CHECKING:
    from dualtrack.models.prices import Listed

USAGES = (
    Usage(1, 1, 1, 1),
    Usage(1_234, 567, 8_901, 2_345),
    Usage(3, 9, 99_996, 1),  # the longest prompt at the lower price, and a token more
    Usage(3, 9, 99_997, 1),
    Usage(250_001, 4_096, 31, 7),
    Usage(0, 12_096, 0, 95_003),
)
DAYS = ("2026-03-12", "2026-03-13", "2026-11-27")
PROVIDERS = {"bedrock": "aws"}


def by_package(listed: Listed, model: str, usage: Usage, day: str) -> float:
    """What the package says that these tokens cost."""
    tokens = PackageUsage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
    )
    provider = PROVIDERS.get(listed.service, listed.service)
    moment = datetime.fromisoformat(day).replace(tzinfo=UTC)
    said = calc_price(tokens, model, provider_id=provider, genai_request_timestamp=moment)
    return float(said.total_price)


@pytest.mark.parametrize("listed", price_list().models, ids=lambda listed: listed.id)
def test_each_name_has_the_packages_price(listed: Listed) -> None:
    """On each day, for prompts of each size, to the last place."""
    usages = (Usage(1_234),) if listed.maker == VOYAGE else USAGES
    for name in listed.names:
        model = name.replace("YYYYMMDD", "20261101")
        # Bedrock's endpoint has names without a day and a version, which the package does not always know
        asked = max(listed.names, key=len) if name.startswith("anthropic.") else model
        for usage in usages:
            for day in DAYS:
                ours = rates_of(model, usage.prompt_tokens, day).dollars(usage)
                assert ours == by_package(listed, asked, usage, day), (model, usage, day)


def test_the_data_is_what_the_command_writes() -> None:
    data = json.loads(DATA_FILE.read_bytes())
    assert DATA_FILE.read_text(encoding="utf-8") == written(snapshot(data["taken_on"]))
    assert "The MIT License" in data["licence"]


def test_no_two_models_have_the_same_name() -> None:
    names = [name for listed in price_list().models for name in listed.names]
    assert len(names) == len(set(names))


@pytest.mark.parametrize(
    "model",
    [
        *("", "my-own-model", "claude-nobody-9", "claude", "claude-opus", "claude-fable-5-3"),
        *(
            "claude-opus-4-80",
            "claude-opus-4-8-fast",
            "xclaude-opus-4-8",
            "claude-opus-4-8 ",
            "CLAUDE-OPUS-4-8",
        ),
        *("claude-opus-4-8-2026110", "claude-opus-4-8-20261101-v2", "claude-opus-4-8-YYYYMMDD-20261101"),
        *("claude-haiku-5-5\n", "mine.anthropic.claude-opus-4-8", "anthropic.claude-nobody-9"),
    ],
)
def test_what_the_list_does_not_have_costs_as_much_as_the_dearest_and_is_a_guess(model: str) -> None:
    rates = rates_of(model, at="2026-11-27")
    assert not is_known(model)
    assert rates == Rates(15, 75, 1.5, 18.75, 30, is_known=False)
    for listed in price_list().models:
        if listed.maker != VOYAGE:
            dear = listed.price_on("2026-11-27").rates_for(1_000_000)
            assert dear.input <= rates.input
            assert dear.output <= rates.output
            assert dear.cache_write <= rates.cache_write
            assert dear.cache_read <= max(rates.cache_read, dear.input)


def test_an_unknown_embedding_costs_as_much_as_its_makers_dearest() -> None:
    assert rates_of("voyage-99", maker=VOYAGE).input == 0.18


def test_a_cap_counts_an_unknown_model_at_the_dearest_price() -> None:
    assert most_of_a_call("claude-nobody-9", 95_000, 12_096) == pytest.approx(0.95 * 18.75 / 10 + 0.9072)


def test_a_chat_costs_what_it_did_on_its_day() -> None:
    """Long prompts of this model cost twice as much until 13 March."""
    assert rates_of("claude-opus-4-6", 200_001, "2026-03-12T23:59:59.999Z").input == 10
    assert rates_of("claude-opus-4-6", 200_001, "2026-03-13T00:00:00.000Z").input == 5
    assert rates_of("claude-opus-4-6", 200_000, "2026-03-12T23:59:59.999Z").input == 5


def test_what_was_kept_counts_before_the_list() -> None:
    kept = Rates(1, 2, 3, 4, 5)
    assert call_rates(kept, "claude-opus-4-6", Usage(7)) is kept
    assert call_rates(None, "claude-haiku-5-5", Usage(150_000), 2).input == 0.10, "two calls of 75,000"


def test_nanodollars_are_whole_and_the_same() -> None:
    usage = Usage(1_234, 567, 8_901, 2_345)
    rates = rates_of("claude-fable-5-1")
    assert rates.nanodollars(usage) == 72_227_750 == round(rates.dollars(usage) * 1e9)
