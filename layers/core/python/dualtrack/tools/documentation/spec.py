"""The tool as the model sees it. Light: imported by the functions that only offer it."""

from __future__ import annotations

from typing import Final

from dualtrack.frozen import freeze
from dualtrack.tool_values import ToolSpec

MAX_QUERY_CHARACTERS: Final = 500
"""Context7 accepts queries of 1 to 500 characters."""

RETRIEVE_DOCUMENTATION: Final = ToolSpec(
    name="retrieve_documentation",
    description=(
        "Searches the current public documentation of a software library, framework, service or API and "
        "returns the most relevant sections with their sources. Use it whenever the answer depends on how "
        "such a product works today: setup, configuration, API names and parameters, code examples, "
        "version differences, error messages. Prefer it to what you remember. Ask one complete question "
        "about one product per call and name the product (and its version, if the user gave one); for two "
        "products make two calls. Do not use it for general knowledge, for the user's own code or "
        "repositories, or for what this conversation already holds."
    ),
    input_schema=freeze(
        {
            "type": "object",
            "properties": {
                "query": {
                    "type": "string",
                    "minLength": 1,
                    "maxLength": MAX_QUERY_CHARACTERS,
                    "description": (
                        "The question in full, with the name of the product, for example "
                        "'How do I set up OAuth for the Twitter Ads API?'"
                    ),
                }
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    ),
    kind="search",
    price_class="documentation",
    runner="dualtrack.tools.documentation.pipeline:run",
)
