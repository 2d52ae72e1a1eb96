"""Tools that are not sent with a request: the model finds them by `FIND_TOOLS` and calls them by `USE_TOOL`. Pure.

A request's tools come before everything else in it. Were a tool that was found added to them, the whole prompt would be
read anew; so the two stand for all of them, and what is recorded, priced, approved and run is the tool that is meant.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from dualtrack.frozen import freeze

FIND_TOOLS: Final = "find_tools"
USE_TOOL: Final = "use_tool"
INDIRECT: Final = frozenset({FIND_TOOLS, USE_TOOL})
"""Neither costs anything: a search is free, and a call has the price of the tool that is meant."""

_NO_NAME: Final = 'use_tool needs {"tool": the name of a tool, "input": its input}.'


def meant(name: str, given: Mapping[str, Any]) -> tuple[str, Mapping[str, Any], str]:
    """The tool and the input that a call means, and what is wrong with it; empty if nothing is.

    An input in writing counts as well, which models send for an object that has no properties of its own.
    """
    if name != USE_TOOL:
        return name, given, ""
    tool, arguments = given.get("tool"), given.get("input", freeze({}))
    if not isinstance(tool, str) or not tool or tool == USE_TOOL:
        return name, given, _NO_NAME
    if isinstance(arguments, str):
        try:
            arguments = freeze(json.loads(arguments or "{}"))
        except (ValueError, RecursionError):
            arguments = None
    if not isinstance(arguments, Mapping):
        return name, given, f"input: it must be an object, the input of {tool}."
    return tool, arguments, ""
