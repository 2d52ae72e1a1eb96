"""A stage's settings are validated when they are created."""

from __future__ import annotations

from dataclasses import replace

import pytest
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.data import RECOVERY_DAYS

from tests.drivers.documents import ROOT


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_a_retention_out_of_range_is_refused(days: int) -> None:
    """The message has the stage and the range."""
    with pytest.raises(
        ValueError, match="ledger_retention_days of stage prod: must be from 1 to 36500 days, not"
    ):
        replace(STAGES["prod"], ledger_retention_days=days)


def test_every_stage_has_one() -> None:
    """Prod keeps the ledger longest."""
    assert {name: stage.ledger_retention_days for name, stage in STAGES.items()} == {
        "local": 30,
        "staging": 30,
        "prod": 3_650,
    }


@pytest.mark.parametrize(
    "kept", ["point-in-time recovery (`prod`)", "versions of the bucket's objects (`prod`)"]
)
def test_what_was_erased_can_be_restored_no_longer_than_is_promised(kept: str) -> None:
    """The templates keep it for `RECOVERY_DAYS` (tests/infra/rules/lifecycle.py)."""
    rows = (ROOT / "docs" / "privacy.md").read_text().splitlines()
    (row,) = [row for row in rows if row.startswith(f"| {kept} |")]
    assert row.split(" | ")[-1].startswith(f"{RECOVERY_DAYS} days")
