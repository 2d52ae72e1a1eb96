"""The tools as the model sees them, read from ``tools.json``. Light: imported by the functions that only offer them.

``python -m infra.graph_tools`` generates the file from the functions of `tools.graph.tools`, and a test compares them.
So offering a tool loads neither Pydantic nor the tools' dependencies.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Final

from dualtrack.frozen import freeze
from dualtrack.tool_values import ToolSpec

RUNNER: Final = "dualtrack.tools.graph.tools:run"


def _specs() -> tuple[ToolSpec, ...]:
    text = (resources.files(__package__) / "tools.json").read_text(encoding="utf-8")
    return tuple(
        ToolSpec(
            name=tool["name"],
            description=tool["description"],
            input_schema=freeze(tool["input_schema"]),
            kind="graph",
            runner=RUNNER,
        )
        for tool in json.loads(text)
    )


GRAPH_TOOLS: Final = _specs()
