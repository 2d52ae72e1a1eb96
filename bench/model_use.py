"""What a query takes of the model, by kind of chat: the mean of a conversation of ten, in tokens as the service reports
them.

    uv run --group test python -m bench.model_use            # print
    uv run --group test python -m bench.model_use --write    # and write infra/dualtrack_stack/model_use.json

The conversation runs through the product's own steps against the offline model, whose prompt cache follows the
service's rules, with a minute before each query; `dualtrack_stack.scale` multiplies by the price of any model.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import random
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack_stack.costs import TWO_TOOLS
from dualtrack_stack.model_use import FILE, ModelUse

from bench.chat_cost import ANSWER_CHARACTERS, RESULT_CHARACTERS
from bench.memory_kinds import TOOL, dual_track
from bench.other_memories import Exchange
from tests.drivers.long_memory import prose

if TYPE_CHECKING:
    from collections.abc import Mapping

QUERIES: Final = 10
PAUSE: Final = 60.0
RESULTS: Final[Mapping[str, int]] = MappingProxyType({"no tools": 0, TWO_TOOLS: 2})


def count(name: str) -> ModelUse:
    """The mean of a query of this kind, with the lengths of `bench.chat_cost`."""
    exchanges = [_exchange(name, number) for number in range(1, QUERIES + 1)]
    done, _ = dual_track(exchanges, "in_turn", PAUSE, lambda _: None)
    charges = [charge for query in done.charges for charge in query]
    return ModelUse(
        round(len(charges) / QUERIES),
        round(sum(charge.plain for charge in charges) / QUERIES),
        round(sum(charge.written for charge in charges) / QUERIES),
        round(sum(charge.read for charge in charges) / QUERIES),
        round(sum(charge.output for charge in charges) / QUERIES),
    )


def _exchange(name: str, number: int) -> Exchange:
    seed = f"{name} {number}"
    return Exchange(
        number,
        f"Query {number}: {prose(f'{seed} query', random.Random(seed).randint(80, 400))}",
        tuple(prose(f"{seed} {index}", RESULT_CHARACTERS) for index in range(RESULTS[name])),
        prose(f"{seed} answer", ANSWER_CHARACTERS),
        TOOL,
    )


def main() -> None:
    """Print the means."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    write = parser.parse_args().write
    text = json.dumps({name: dataclasses.asdict(count(name)) for name in RESULTS}, indent=2)
    print(text)
    if write:
        FILE.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
