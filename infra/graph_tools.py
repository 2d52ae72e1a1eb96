"""``python -m infra.graph_tools``: the declarations of the graph's tools, made from their functions.

The name and the docstring are the function's; the schema is Pydantic's of its arguments, made compact: ``X | None``
becomes a list of types, and titles and defaults are left out.
"""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, get_args, get_type_hints

from dualtrack.tools.graph import arguments, tools
from dualtrack.tools.graph.needs import GraphNeeds
from dualtrack.tools.graph.results import Result
from pydantic import ConfigDict, create_model

from infra.layers import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

FILE: Final = ROOT / "layers" / "core" / "python" / "dualtrack" / "tools" / "graph" / "tools.json"

_NAMES: Final = {**vars(arguments), "GraphNeeds": GraphNeeds, "Result": Result}
"""Names in the annotations; the modules import them only for type checking."""


def declarations() -> list[dict[str, Any]]:
    """All tools as `spec` reads them."""
    return [declaration(tool) for tool in tools.TOOLS.values()]


def declaration(tool: Callable[..., Any]) -> dict[str, Any]:
    """``{"name", "description", "input_schema"}`` of a function whose first argument is the graph."""
    hints = get_type_hints(tool, {**_NAMES, **vars(inspect.getmodule(tool))}, include_extras=True)
    fields: dict[str, Any] = {}
    for name, parameter in list(inspect.signature(tool).parameters.items())[1:]:
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[name.rstrip("_")] = (hints[name], default)
    model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **fields)
    schema = model.model_json_schema()
    described = {
        name: _compact(property_schema, _words(fields[name][0]))
        for name, property_schema in schema.get("properties", {}).items()
    }
    return {
        "name": tool.__name__,
        "description": " ".join(inspect.getdoc(tool).split()),  # type: ignore[union-attr]
        "input_schema": {
            "type": "object",
            "properties": described,
            "required": schema.get("required", []),
            "additionalProperties": False,
        },
    }


def _compact(schema: dict[str, Any], description: str) -> dict[str, Any]:
    """Without title and default; an optional argument has null among its types."""
    kinds = schema.get("anyOf", [schema])
    own = next(kind for kind in kinds if kind.get("type") != "null")
    compact = {
        key: value for key, value in own.items() if key not in ("title", "default", "additionalProperties")
    }
    if len(kinds) > 1:
        compact["type"] = [compact["type"], "null"]
        if "enum" in compact:
            compact["enum"] = [*compact["enum"], None]
    return {**compact, "description": description}


def _words(hint: Any) -> str:
    """The description in an annotation: its only string."""
    if isinstance(own := getattr(hint, "__metadata__", None), tuple):
        return next(part for part in own if isinstance(part, str))
    return next(filter(None, map(_words, get_args(hint))), "")


def main() -> None:
    """Write the file."""
    FILE.write_text(json.dumps(declarations(), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    print(f"{Path(FILE).name}: {len(declarations())} tools")


if __name__ == "__main__":
    main()
