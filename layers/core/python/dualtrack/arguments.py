"""A tool's arguments against its schema. Loaded at the first tool call, not at import."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dualtrack.frozen import dumps, thaw

if TYPE_CHECKING:
    from collections.abc import Mapping

    from jsonschema.protocols import Validator

    from dualtrack.tools import ToolSpec


def invalid_arguments(spec: ToolSpec, given: Mapping[str, Any]) -> str:
    """What is wrong with the arguments, for the model to mend; empty if nothing is."""
    errors = sorted(
        _validator(dumps(spec.input_schema)).iter_errors(thaw(given)), key=lambda error: error.json_path
    )
    return f"bad arguments: {errors[0].json_path}: {errors[0].message[:300]}" if errors else ""


@lru_cache(maxsize=256)
def _validator(schema: str) -> Validator:
    from jsonschema import Draft202012Validator  # noqa: PLC0415

    return Draft202012Validator(json.loads(schema))
