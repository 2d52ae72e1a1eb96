"""Ends a pytest that runs without this project's packages, for instance one that is installed on the machine, before a
test or a fixture fails to import one.
"""

from __future__ import annotations

import sys
from importlib.util import find_spec

_MODULES = (
    "dualtrack",
    "ministack",
    "voyageai",
    "docx",
    "aws_cdk",
    "hypothesis",
    "moto",
    "pytest_timeout",
    "xdist",
)
"""Of the project, of each extra, and of the group `test` itself."""

if missing := [module for module in _MODULES if find_spec(module) is None]:
    sys.exit(f"The tests need the group `test` ({missing[0]} is missing here): uv run --group test pytest")
