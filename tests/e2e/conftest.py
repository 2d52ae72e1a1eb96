"""What every end-to-end test leaves behind."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _rules_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """No test inherits another's script or waiting calls."""
    yield
    if "tools" in request.fixturenames:
        request.getfixturevalue("tools").release_all()
    if "model" in request.fixturenames:
        request.getfixturevalue("model").script.clear()
