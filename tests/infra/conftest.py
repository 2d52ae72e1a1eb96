"""The synthesised stages, built once per content of the repository and shared by all workers."""

from __future__ import annotations

import fcntl
import os
from functools import cache
from typing import TYPE_CHECKING

import pytest

from infra import layers
from infra.local.synth import CACHE, Synthesis
from infra.node import node
from tests.drivers.templates import Stage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

# The CDK runs on the wheel's Node, as in the local stack.
os.environ.setdefault("JSII_NODE", node())

AWS_STAGES = ("staging", "prod")


@pytest.fixture(scope="session")
def assembly() -> Callable[..., Path]:
    """Synthesise a stage, or reuse the result of another worker or an earlier run with the same content."""
    known: dict[tuple[str, frozenset[tuple[str, str]]], Path] = {}

    def once(stage: str, settings: Mapping[str, str] | None = None) -> Path:
        key = (stage, frozenset((settings or {}).items()))
        if key not in known:
            known[key] = synthesise(stage, settings)
        return known[key]

    def synthesise(stage: str, settings: Mapping[str, str] | None = None) -> Path:
        CACHE.mkdir(parents=True, exist_ok=True)
        with (CACHE / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if stage in AWS_STAGES:
                built_layers()
            with Synthesis(stage, settings) as synthesis:
                return synthesis.assembly()

    return once


@pytest.fixture(scope="session", params=AWS_STAGES)
def aws_stage(request: pytest.FixtureRequest, assembly: Callable[..., Path]) -> Stage:
    """Staging and prod, one after the other."""
    return Stage(request.param, assembly(request.param))


@pytest.fixture(scope="session")
def staging(assembly: Callable[..., Path]) -> Stage:
    return Stage("staging", assembly("staging"))


@pytest.fixture(scope="session")
def prod(assembly: Callable[..., Path]) -> Stage:
    return Stage("prod", assembly("prod"))


@pytest.fixture(scope="session")
def built() -> dict[str, Path]:
    """The folder of each layer as deployed to AWS, by role, including the library's."""
    return built_layers()


def built_layers() -> dict[str, Path]:
    """The built layers; skips without a package index, which has the wheels for Lambda's platform."""
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
