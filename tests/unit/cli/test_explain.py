"""``dualtrack explain`` as it prints a receipt."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import receipt_of
from dualtrack_stack.cli.explain_commands import text_of

from tests.drivers.world import make_world
from tests.unit.chat.test_receipt import DEPLOYMENT, READ

if TYPE_CHECKING:
    from dualtrack.answers import Receipt


def test_no_line_is_wider_than_a_terminal() -> None:
    """And none of its words is lost: in a pipe nothing is folded."""
    with make_world() as world:
        receipt = receipt_of(evidence(world.stores, world.ask("Read it."), world.stores.ledger), DEPLOYMENT)
    whole, *others = (list(text_of(receipt, columns)) for columns in (None, 60, 200))
    for lines in others:
        assert sorted(" ".join(lines).split()) == sorted(" ".join(whole).split())
    assert max(map(len, others[0])) == 60
    assert max(map(len, others[1])) <= max(map(len, whole))


def test_a_line_of_the_aws_part_fits_a_terminal_with_its_price() -> None:
    with make_world() as world:
        receipt = receipt_of(evidence(world.stores, world.ask("Read it."), world.stores.ledger), DEPLOYMENT)
    lines = [line for line in text_of(receipt, 80) if "Lambda" in line]
    assert lines
    assert [line for line in lines if "~$" not in line] == []


def test_every_line_is_shown_with_its_price() -> None:
    with make_world() as world:
        world.model.script.add({"match": "turn", "content": [READ, {**READ, "name": "nothing_of_that_name"}]})
        receipt = receipt_of(evidence(world.stores, world.ask("Read it."), world.stores.ledger), DEPLOYMENT)
    text = "\n".join(text_of(receipt))
    for part in (
        "turn 1",
        "turn 2",
        "q1-t1 retrieve_full_context",
        "2 credits",
        "the chat itself",
        "5 credits",
    ):
        assert part in text
    assert "q1-t2 nothing_of_that_name, not run" in text
    assert "ledger: settle 7" in text
    assert "~$" in text
    assert "does not add up" not in text


def test_what_is_doubtful_is_named() -> None:
    with make_world() as world:
        receipt = receipt_of(evidence(world.stores, world.ask("Hello."), world.stores.ledger), DEPLOYMENT)
    odd: Receipt = {**receipt, "price_known": False, "differences": ["tokens"]}
    text = "\n".join(text_of(odd))
    assert "a guess" in text
    assert "It does not add up: tokens" in text
