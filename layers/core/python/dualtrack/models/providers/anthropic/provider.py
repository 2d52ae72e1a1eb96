"""What must be known of Anthropic's own API. Pure."""

from __future__ import annotations

from typing import Final

from dualtrack.models.provider import Provider

PROVIDER: Final = Provider(
    "anthropic",
    "Anthropic",
    span_name="anthropic",
    address="ANTHROPIC_BASE_URL",
    key="ANTHROPIC_API_KEY",
    question="Key of Anthropic's API (sk-ant-…, hidden; none for your own server)",
)
