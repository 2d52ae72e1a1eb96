"""What a bridge and whoever starts it agree on."""

from __future__ import annotations

from typing import Final

KEY_HEADER: Final = "X-Dualtrack-Bridge"
PATH: Final = "/mcp"
