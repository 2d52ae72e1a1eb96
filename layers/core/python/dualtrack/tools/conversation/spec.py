"""The tool as the model sees it. Light: imported by the functions that only offer it."""

from __future__ import annotations

from typing import Final

from dualtrack.frozen import freeze
from dualtrack.memory.passages import SEARCH_TOOL
from dualtrack.tool_values import ToolSpec

DEFAULT_HITS: Final = 8
MAX_HITS: Final = 20
MAX_QUERY_CHARACTERS: Final = 1_000

SEARCH_CONVERSATION: Final = ToolSpec(
    name=SEARCH_TOOL,
    description=(
        "Searches the earlier queries, responses and tool results of this conversation, those that are no longer "
        "shown too, by words and by meaning. Returns record ids with excerpts, best first; read a record whole "
        "with retrieve_full_context. Use it when the user refers to something earlier and no summary that you see "
        "names its id. Do not use it for what is not part of this conversation."
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
                        "What to look for: a question or key words, with the names, numbers and identifiers "
                        "that the record should hold."
                    ),
                },
                "limit": {
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_HITS,
                    "description": f"At most this many records (default {DEFAULT_HITS}).",
                },
            },
            "required": ["query"],
            "additionalProperties": False,
        }
    ),
    kind="search",
    runner="dualtrack.tools.conversation.search:run",
)
