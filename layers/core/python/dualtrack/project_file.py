"""What a project adds to the library it is packaged with: its tools as the model sees them, and its price classes.

``tools/project.json``, which `dualtrack_stack.project.model.packaged` writes; without a project there is none.
"""

from __future__ import annotations

import json
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = Path(__file__).with_name("tools") / "project.json"


def _read() -> Mapping[str, Any]:
    return MappingProxyType(json.loads(FILE.read_bytes()) if FILE.is_file() else {"tools": [], "prices": {}})


PROJECT: Final = _read()
"""``{"tools": […], "prices": {class: credits}}``."""
