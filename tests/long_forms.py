"""Whether tests run in earnest: `.ci/run` sets ``DUALTRACK_LONG``, and a newcomer's ``uv run pytest`` takes the short
forms, which find the same kinds of mistakes in fewer places."""

from __future__ import annotations

import os
from typing import Final

LONG: Final = bool(os.environ.get("DUALTRACK_LONG"))
