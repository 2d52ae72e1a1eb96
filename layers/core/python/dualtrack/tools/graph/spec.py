"""The tools as the model sees them, read from ``tools.json``. Light: imported by the functions that only offer them.

The file is made from the functions of `tools.graph.tools` by ``python -m infra.graph_tools``, and a test compares: so
that offering a tool loads neither Pydantic nor what the tools need.
"""

from __future__ import annotations

import json
from importlib import resources
from typing import Final

from dualtrack.frozen import freeze
from dualtrack.tool import ToolSpec

RUNNER: Final = "dualtrack.tools.graph.tools:run"


def _specs() -> tuple[ToolSpec, ...]:
    text = (resources.files(__package__) / "tools.json").read_text(encoding="utf-8")
    return tuple(
        ToolSpec(
            name=one["name"],
            description=one["description"],
            input_schema=freeze(one["input_schema"]),
            kind="graph",
            runner=RUNNER,
        )
        for one in json.loads(text)
    )


GRAPH_TOOLS: Final = _specs()
