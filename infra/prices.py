"""AWS's prices, from ``infra/prices.toml``."""

from __future__ import annotations

import tomllib
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from infra.layers import ROOT

if TYPE_CHECKING:
    from collections.abc import Mapping

PRICES_FILE: Final = ROOT / "infra" / "prices.toml"


def prices() -> Mapping[str, float]:
    """Dollars by name."""
    table = tomllib.loads(PRICES_FILE.read_text(encoding="utf-8"))
    return MappingProxyType(
        {name: price["dollars"] for name, price in table.items() if isinstance(price, dict)}
    )


def prices_read_on() -> str:
    """The date of the price table, ``2026-11-22``."""
    return str(tomllib.loads(PRICES_FILE.read_text(encoding="utf-8"))["date"])
