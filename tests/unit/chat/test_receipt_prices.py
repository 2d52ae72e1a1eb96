"""What receipts say of prices: by model to the ninth decimal, of models that no list has, and years later."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.models.prices import Rates
from dualtrack.models.turn import Usage
from genai_prices import Usage as PackageUsage
from genai_prices import calc_price

from tests.drivers.world import World, call_for_summaries, make_world

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.chat.receipt import Evidence

FOURTEEN: Final = (
    *("claude-haiku-5-5", "claude-sonnet-5-5", "claude-opus-5-5", "claude-fable-5-2", "claude-mythos-5-2"),
    *("claude-fable-5-1", "claude-fable-5", "claude-sonnet-5", "claude-opus-5", "claude-opus-4-8"),
    *("claude-opus-4-7", "claude-opus-4-1-20250805", "claude-haiku-4-5-20251001", "claude-sonnet-4-6"),
)
LONG: Final = "This is what the answer says of the plan. " * 60


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


def found(world: World) -> Evidence:
    """Of a chat by the world's model, with an answer that is summarised."""
    world.model.script.add({"match": "turn", "text": LONG})
    return evidence(world.stores, world.ask("What does it say? " * 90), world.stores.ledger)


def by_package(line: dict[str, Any]) -> float:
    usage = line["usage"]
    tokens = PackageUsage(
        input_tokens=usage["fresh"] + usage["cache_read"] + usage["cache_write"],
        output_tokens=usage["output"],
        cache_read_tokens=usage["cache_read"],
        cache_write_tokens=usage["cache_write"],
    )
    moment = datetime.fromisoformat(line["at"]).astimezone(UTC)
    said = calc_price(tokens, line["model"], provider_id="anthropic", genai_request_timestamp=moment)
    return round(float(said.total_price), 9)


@pytest.mark.parametrize("model", FOURTEEN)
def test_a_receipt_is_the_packages_price_to_the_ninth_decimal(
    world: World, model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also that of a conversation that reads from the cache, and of its summaries."""
    call_for_summaries(monkeypatch)
    world.model_name = model
    found(world)
    seen: Any = receipt_of(found(world), Deployment())
    lines = [line for line in seen["lines"] if "usage" in line]
    assert {line["kind"] for line in lines} >= {"model", "summary"}
    for line in lines:
        assert line["model"] == model
        assert line["rates"]["known"]
        assert round(line["dollars"], 9) == by_package(line) > 0, line
    assert (seen["price_known"], seen["differences"]) == (True, [])


def test_a_model_that_no_list_has_is_a_guess_at_the_dearest_price(world: World) -> None:
    world.model_name = "claude-nobody-9"
    seen: Any = receipt_of(found(world), Deployment())
    (line,) = (line for line in seen["lines"] if line["kind"] == "model")
    assert (seen["price_known"], line["estimated"], line["rates"]["known"]) == (False, True, False)
    assert (line["rates"]["fresh"], line["rates"]["output"]) == (15, 75)
    assert seen["totals"]["estimated_dollars"] >= line["dollars"] > 0
    assert seen["differences"] == []


def test_a_receipt_keeps_the_prices_of_its_calls(world: World) -> None:
    """A later list does not change it; what an earlier release has written has those of its day."""
    world.model_name = "claude-opus-4-8"
    before = found(world)
    (turn,) = before.turns
    assert turn.made.rates == Rates(5, 25, 0.5, 6.25, 10)
    kept = replace(before, turns=[replace(turn, made=replace(turn.made, rates=Rates(1, 1, 1, 1, 1)))])
    lines = receipt_of(kept, Deployment())["lines"]
    (line,) = (line for line in lines if line["kind"] == "model")
    assert line["dollars"] == pytest.approx(turn.usage.tokens / 1e6)
    unkept = replace(before, turns=[replace(turn, made=replace(turn.made, rates=None))])
    assert receipt_of(unkept, Deployment())["lines"] == receipt_of(before, Deployment())["lines"]


def test_the_named_receipt(world: World) -> None:
    """Issue 51: $0.2119 by a prefix, $0.0706 in truth."""
    before = found(world)
    (turn,) = before.turns
    usage = Usage(10_000, 400, 8_000, 1_056)
    made = replace(turn.made, model="claude-opus-4-8", rates=None)
    seen = receipt_of(replace(before, turns=[replace(turn, made=made, usage=usage)]), Deployment())
    (line,) = (line for line in seen["lines"] if line["kind"] == "model")
    assert round(line["dollars"], 4) == 0.0706
