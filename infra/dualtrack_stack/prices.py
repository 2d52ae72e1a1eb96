"""AWS's prices by region, from ``infra/dualtrack_stack/prices.toml``."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack_stack.roots import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

PRICES_FILE: Final = PACKAGE / "prices.toml"
HOME: Final = "us-east-1"
"""The region that has a price for everything."""


@dataclass(frozen=True, slots=True)
class PriceTable:
    """Dollars by name in a region. ``borrowed``: the names whose prices are those of `HOME`, because none is declared
    for the region."""

    region: str
    read_on: str
    dollars: Mapping[str, float]
    borrowed: tuple[str, ...] = ()

    def source(self) -> dict[str, Any]:
        """Where the prices are from, as commands print it with ``--json``."""
        return {"region": self.region, "prices_read_on": self.read_on, "borrowed": self.borrowed}


def price_table(region: str = HOME) -> PriceTable:
    """The prices of a region, from its section of ``infra/dualtrack_stack/prices.toml``. Raises ValueError for a name
    that only the region has."""
    table = tomllib.loads(PRICES_FILE.read_text(encoding="utf-8"))
    regions = table.pop("region")
    home = {name: price for name, price in table.items() if isinstance(price, dict)}
    dollars = {name: price["dollars"] for name, price in home.items()}
    if region == HOME:
        return PriceTable(HOME, str(table["date"]), MappingProxyType(dollars))
    here = dict(regions.get(region, {}))
    read_on, _ = str(here.pop("date", table["date"])), here.pop("source", "")
    if unknown := here.keys() - dollars.keys():
        raise ValueError(
            f"infra/dualtrack_stack/prices.toml: [region.{region}] has {', '.join(sorted(unknown))}, which is no price."
        )
    borrowed = tuple(name for name in home if name not in here and not home[name].get("everywhere"))
    return PriceTable(region, read_on, MappingProxyType(dollars | here), borrowed)


def prices(region: str = HOME) -> Mapping[str, float]:
    """Dollars by name in a region."""
    return price_table(region).dollars
