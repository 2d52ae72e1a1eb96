"""What a function finds on Lambda without a layer of ours."""

from __future__ import annotations

from typing import Final

from dualtrack_stack.layers import LayerRole

from tests.drivers.documents import ROOT

HOOKS: Final = frozenset({"snapshot_restore_py"})
"""What the Python runtime includes for SnapStart (AWS Lambda Developer Guide, "Lambda SnapStart runtime hooks
for Python"); on this machine it is not there, and a function does without it.
"""

RUNTIME: Final = LayerRole("runtime", parent=ROOT / "tests" / "fixtures")
"""The same as requirements, to resolve for this machine."""
