"""The synthesised stages, built once per content of the repository and shared by all workers."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from typing import TYPE_CHECKING, Final

import pytest
from dualtrack_stack import layers
from dualtrack_stack.local import synth
from dualtrack_stack.node import node

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# The CDK runs on the wheel's Node, as in the local stack.
os.environ.setdefault("JSII_NODE", node())

AWS_STAGES: Final = ("staging", "prod")


def synthesised(stage: str, settings: Mapping[str, str] | None = None) -> Path:
    """The folder of a stage's assembly, of this run, another worker or an earlier run with the same content."""
    return _synthesised(stage, frozenset((settings or {}).items()))


@cache
def _synthesised(stage: str, settings: frozenset[tuple[str, str]]) -> Path:
    synth.cache().mkdir(parents=True, exist_ok=True)
    with (synth.cache() / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if stage in AWS_STAGES:
            built_layers()
        with synth.Synthesis(stage, dict(settings) or None) as synthesis:
            return synthesis.assembly()


def built_layers() -> dict[str, Path]:
    """The folder of each layer as deployed to AWS, by role, including the library's; skips without a package index,
    which has the wheels for Lambda's platform.
    """
    folders, problem = _folders()
    return folders if not problem else pytest.skip(f"layers cannot be built here: {problem}")


@cache
def _folders() -> tuple[dict[str, Path], str]:
    """The layers' folders, or why there are none: asked by hundreds of tests, and tried once."""
    try:
        folders = {name: layers.build(role) for name, role in layers.ROLES.items()}
        return {**folders, "core": layers.build_core()}, ""
    except (layers.NoPackageIndex, layers.NoCompiler) as problem:
        return {}, str(problem)
