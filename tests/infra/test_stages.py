"""A stage's settings are checked where they are made."""

from __future__ import annotations

from dataclasses import replace

import pytest

from infra.settings import STAGES


@pytest.mark.parametrize("days", [0, -1, 36_501])
def test_a_retention_that_nobody_can_mean_is_refused(days: int) -> None:
    """With the stage and the range."""
    with pytest.raises(
        ValueError, match="ledger_retention_days of stage prod: must be from 1 to 36500 days, not"
    ):
        replace(STAGES["prod"], ledger_retention_days=days)


def test_every_stage_has_one() -> None:
    """Production keeps books longest."""
    assert {name: stage.ledger_retention_days for name, stage in STAGES.items()} == {
        "local": 30,
        "staging": 30,
        "prod": 3_650,
    }
