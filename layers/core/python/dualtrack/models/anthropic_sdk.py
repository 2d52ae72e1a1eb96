"""The anthropic SDK, imported only as far as a call to the Messages API needs it: a third of 2,900 modules.

All other modules import the SDK from here (``from dualtrack.models.anthropic_sdk import anthropic``), because the
first import decides how much of it is loaded.
"""

from __future__ import annotations

from dualtrack.runtime.on_demand import on_demand

with on_demand(
    "anthropic",
    "anthropic.resources",
    "anthropic.types",
    "anthropic.types.organization",
    "anthropic.types.beta",
    "anthropic.types.beta.organization",
    "anthropic.types.beta.sessions",
):
    import anthropic
    import anthropic.resources.messages  # otherwise a client would import it at its first call
    from anthropic import Anthropic

__all__ = ["Anthropic", "anthropic"]
