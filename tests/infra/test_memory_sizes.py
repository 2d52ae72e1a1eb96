"""Memory sizes against measurements: a function's peak is at most 60 % of its size
(infra/dualtrack_stack/measured.json)."""

from __future__ import annotations

import json

import pytest
from dualtrack_stack.stacks.function_specs import SPECS

from bench.function_memory import FILE

PEAKS = json.loads(FILE.read_text())["peak_megabytes"]
MOST = 0.6
"""Lambda also counts its runtime's memory, and a chat may be heavier than the measured ones."""


@pytest.mark.parametrize("name", SPECS)
def test_a_functions_peak_is_known_and_far_below_its_size(name: str) -> None:
    assert name in PEAKS, "measure it: uv run --group test python -m bench.function_memory --write"
    assert PEAKS[name] <= MOST * SPECS[name].memory


def test_every_function_is_in_the_table() -> None:
    """One of a plug-in whose folder is gone may be in it, too."""
    assert set(PEAKS) >= set(SPECS)
