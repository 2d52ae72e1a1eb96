"""Whether tests run in their long forms: `.ci/run` sets ``DUALTRACK_LONG``; a plain ``uv run --group test pytest``
takes the short forms, which check the same rules on fewer cases.
"""

from __future__ import annotations

import os
from typing import Final

LONG: Final = bool(os.environ.get("DUALTRACK_LONG"))
