"""The bench of deliveries in small: nothing is lost, and an answer is read within bounds (docs/webhooks.md)."""

from __future__ import annotations

from dualtrack.plugins.webhooks.post import MOST_READ

from tests.plugins.webhooks.crowd import BAD, GOOD, TAKE, crowd


def test_nothing_is_lost_among_receivers_of_every_kind() -> None:
    with crowd() as run:
        seen = run.hostile(3, 15)
    assert {kind: one.lost for kind, one in seen.items()} == dict.fromkeys((GOOD, *BAD), 0)
    assert sum(one.messages for one in seen.values()) == 60
    assert [seen[kind].again for kind in TAKE] == [0, 0]
    assert all(one.again > 0 for kind, one in seen.items() if kind not in TAKE)
    assert 0 < seen["sends 1 GB"].most_read <= MOST_READ
