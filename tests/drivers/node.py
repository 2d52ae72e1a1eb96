"""The npm packages that ``.ci/install_npm_peers.sh`` and its like install."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

INSTALL = "bash .ci/install_npm_peers.sh"


def npm_script(package: str, script: str, *, folder: str = "npm", install: str = INSTALL) -> Path:
    """A script of a package that ``install`` puts into this folder of the cache; skips the test without it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    path = cache / "dualtrack" / folder / "node_modules" / package / script
    if not path.is_file():
        pytest.skip(f"{package} is not installed: {install}")
    return path
