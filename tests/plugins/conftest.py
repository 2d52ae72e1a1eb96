"""The API of a module's tests, and a user for each."""

from tests.clients.api_fixtures import api, shared

__all__ = ["api", "shared"]
