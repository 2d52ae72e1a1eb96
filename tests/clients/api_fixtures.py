"""The API of a module's tests, and a user for each: for the `conftest.py` of a folder that needs them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.clients.api_client import Api, make_api

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def shared() -> Iterator[Api]:
    with make_api() as new_api:
        yield new_api


@pytest.fixture
def api(shared: Api) -> Api:
    """A user of the test's own."""
    return shared.of_new_user()
