"""The anthropic SDK, imported as far as a call of the Messages API needs it: a third of 2,900 modules.

Where the SDK is used it is taken from here (``from dualtrack.models.anthropic_sdk import anthropic``): whoever
imports it first decides how much of it is loaded.
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
    import anthropic.resources.messages  # else a client would import it at its first call
    from anthropic import Anthropic

__all__ = ["Anthropic", "anthropic"]
