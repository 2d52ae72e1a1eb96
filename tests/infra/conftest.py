"""The synthesised stages as fixtures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.drivers.synthesised import AWS_STAGES, built_layers, synthesised
from tests.drivers.templates import Stage

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


@pytest.fixture(scope="session")
def assembly() -> Callable[..., Path]:
    """Synthesises a stage: its name, and the settings besides the stage's own."""
    return synthesised


@pytest.fixture(scope="session", params=AWS_STAGES)
def aws_stage(request: pytest.FixtureRequest) -> Stage:
    """Staging and prod, one after the other."""
    return Stage(request.param, synthesised(request.param))


@pytest.fixture(scope="session")
def staging() -> Stage:
    return Stage("staging", synthesised("staging"))


@pytest.fixture(scope="session")
def prod() -> Stage:
    return Stage("prod", synthesised("prod"))


@pytest.fixture(scope="session")
def built() -> dict[str, Path]:
    """The folder of each layer as deployed to AWS, by role, including the library's."""
    return built_layers()
