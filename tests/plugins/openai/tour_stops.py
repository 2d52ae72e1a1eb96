"""The stops of the tour in OpenAI's API; importing this declares them."""

from tests.plugins.openai import completion_stops, response_stops  # noqa: F401 - they declare themselves
