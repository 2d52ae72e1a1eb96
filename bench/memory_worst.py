"""What a conversation with notes in the turn costs at its dearest length, by kind, cache and pauses.

    uv run --group test python -m bench.memory_worst [--queries 60] [--kinds NAME …] [--models NAME …] [--fetch]

The kinds, the product's steps and the full history of `bench.memory_kinds`: a conversation is measured at each of its
lengths, warm, with each query after a pause of six minutes, and with three of ten; with models that read their cache at
0.1, 0.05 and 0.025 of the price of input. Beside the shares of the full history's cost: the tokens of notes that come
behind an answer, how many digests were written, and what a full history costs that is cached for an hour.

``--fetch``: every fifth query reads back the longest record of three queries before that is not in sight. The full
history has it in sight, and makes no call for it.
"""

from __future__ import annotations

import argparse
import itertools
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.models.prices import rates_of
from rich.console import Console
from rich.table import Table

from bench.memory_kinds import KINDS, MODEL, PAUSE, WINDOW, conversation, dual_track, totals
from bench.other_memories import Service, full_history
from tests.drivers.memory_scenarios import Progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MODELS: Final = (MODEL, "claude-sonnet-5-5", "claude-fable-5-2")
"""They read the cache at 0.1, 0.05 and 0.025 of the price of input; their other prices are in the same proportions."""

PAUSES: Final[Mapping[str, tuple[float, float]]] = {
    "warm": (0.0, 1.0),
    "each paused": (PAUSE, 1.0),
    "30 % paused": (PAUSE, 0.3),
}
"""The seconds before a query, and the share of the queries that come after them."""

SETTLED: Final = 20
"""The length from which on records of any length should cost next to nothing more."""


@dataclass(frozen=True, slots=True)
class Measured:
    """A conversation beside its full history, as the difference to its cost: the ``shares`` by length, those of a full
    history that is cached for an ``hour``; the tokens of ``notes`` by query; its ``digests``."""

    shares: tuple[float, ...]
    notes: tuple[int, ...]
    digests: int
    hour: tuple[float, ...] = ()


def measure(
    name: str,
    queries: int,
    model: str,
    paused: tuple[float, float],
    tell: Callable[[str], None],
    *,
    fetches: bool,
) -> Measured:
    """The conversation of this kind through the product's steps with this model and these pauses."""
    exchanges, rates, (pause, share) = conversation(name, queries), rates_of(model), paused
    ours, first = dual_track(exchanges, "in_turn", pause, tell, model=model, share=share, fetches=fetches)
    full = full_history(Service(first, WINDOW, pause, share=share), exchanges)
    kept = full_history(Service(first, WINDOW, pause, for_an_hour=True, share=share), exchanges)
    costs = totals(full, rates)
    notes = (
        sum(charge.output for charge in own if charge.loop) - sum(charge.output for charge in whole)
        for own, whole in zip(ours.charges, full.charges, strict=False)
    )
    return Measured(
        _shares(totals(ours, rates), costs),
        tuple(notes),
        sum(not charge.loop for own in ours.charges for charge in own),
        _shares(totals(kept, rates), costs) if pause else (),
    )


def _shares(costs: Sequence[float], whole: Sequence[float]) -> tuple[float, ...]:
    return tuple(cost / of - 1 for cost, of in zip(costs, whole, strict=False))


def cells(found: Measured) -> list[str]:
    """The row of a kind: the dearest of all lengths, of those from `SETTLED` on, the last; notes, digests, the hour."""
    late = found.shares[SETTLED - 1 :]
    return [
        dearest(found.shares, 1),
        dearest(late, SETTLED) if late else "",
        f"{found.shares[-1]:+.1%}",
        f"{sum(found.notes) / len(found.notes):.0f}, {max(found.notes)}",
        str(found.digests),
        f"{found.hour[-1]:+.1%}" if found.hour else "",
    ]


def dearest(shares: Sequence[float], first: int) -> str:
    """The largest share, and the length that has it; ``first``: the length of the first."""
    most = max(shares)
    return f"{most:+.1%} at {shares.index(most) + first}"


def main() -> None:
    """Run and print, a table for each model and each kind of pauses."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--queries", type=int, default=60)
    parser.add_argument("--kinds", nargs="*", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--models", nargs="*", choices=MODELS, default=MODELS)
    parser.add_argument("--pauses", nargs="*", choices=list(PAUSES), default=list(PAUSES))
    parser.add_argument("--fetch", action="store_true", help="every fifth query reads a record back")
    chosen = parser.parse_args()
    logging.disable(logging.WARNING)
    console = Console(width=150)
    for model, label in itertools.product(chosen.models, chosen.pauses):
        rates = rates_of(model)
        table = Table(title=f"cache read at {rates.cache_read / rates.input:g}, {label}")
        last = str(chosen.queries)
        for heading in ("", "dearest", f"from {SETTLED} on", last, "notes: mean, most", "digests", "hour"):
            table.add_column(heading, justify="right" if heading else "left")
        for name in chosen.kinds:
            told = Progress(f"{model}, {label}, {name}")
            found = measure(name, chosen.queries, model, PAUSES[label], told, fetches=chosen.fetch)
            table.add_row(name, *cells(found))
        console.print(table)


if __name__ == "__main__":
    main()
