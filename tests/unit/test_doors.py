"""The list of doors: whole, derived, light, and what runbooks and limits say of it."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from dualtrack_stack.doors import DOORS, ENTRANCES
from dualtrack_stack.gateway import METHODS
from dualtrack_stack.machines import CORPUS, steps_of
from dualtrack_stack.settings import STAGES
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from dualtrack_stack.stages import StageSettings


def test_every_function_is_behind_a_door_and_no_door_is_named_twice() -> None:
    assert {door.function for door in DOORS if door.function} == set(SPECS)
    assert len({door.name for door in DOORS}) == len(DOORS)


def test_a_door_that_keys_pass_has_a_way_in_for_them() -> None:
    """At the gateway; an API of a plug-in's own has one way in for both."""
    for door in DOORS:
        guards = [method.guard for method in door.methods]
        wanted = {"anyone": ["open"], "stage": []}.get(
            door.passes, ["token", "key"] if door.scopes else ["token"]
        )
        assert guards == (["key"] if door.kind == "streamed" else wanted), door.name
        assert {method.function for method in door.methods} <= {door.function}, door.name


@pytest.mark.parametrize("stage", STAGES.values(), ids=lambda stage: stage.name)
def test_the_setting_of_a_stage_covers_all_methods(stage: StageSettings) -> None:
    """`/*/*` alone does not hold for methods with a limit of their own."""
    closed = replace(stage, request_rate=0, request_burst=0)
    for method in METHODS:
        assert (method.limit(closed).rate, method.limit(closed).burst) == (0, 0), method
        small = method.limit(replace(stage, request_rate=5, request_burst=5))
        assert 0 < small.rate <= 5, method
        assert 0 < small.burst <= 5, f"a burst of 0 closes {method}"


def test_the_list_loads_no_cdk() -> None:
    program = "import sys, dualtrack_stack.doors; print('aws_cdk' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_the_runbook_stops_every_entrance_before_it_restores() -> None:
    """And what jobs call. `mcp` writes nothing but the list of tools, which is not restored."""
    text = (ROOT / "docs/aws/runbooks.md").read_text(encoding="utf-8")
    text = text.partition("## Going back to a moment")[2].partition("\n## ")[0]
    stopped = {
        name.lower()
        for loop in re.findall(r"for FUNCTION in (.*?); do", text)
        for name in re.findall(r"\$(\w+)", loop)
    }
    assert stopped == ({*ENTRANCES} | {spec.name for spec in steps_of(CORPUS)}) - {"mcp"}
