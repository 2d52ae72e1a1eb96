"""Lengths of time on the command line."""

from __future__ import annotations

import re
from typing import Any, Final

import click

_UNITS: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400}
_TIME: Final = re.compile(r"([0-9]{1,9})([smhd]?)")


class DurationType(click.ParamType[int, Any]):
    """``90``, ``15m``, ``24h``, ``30d`` → seconds."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = _TIME.fullmatch(str(value))
        if match is None:
            self.fail(f"{value} is no time such as 90s, 15m, 24h or 30d.", param, ctx)
        return int(match[1]) * _UNITS[match[2] or "s"]
