"""Every function marked with @tool, in any file of this folder, can be called by the agents that name it."""

from __future__ import annotations

from typing import Annotated

from dualtrack import tool

FORECASTS = {
    "Ottawa": ["-12 °C, snow", "-9 °C, clear", "-4 °C, snow"],
    "Lisbon": ["16 °C, rain", "17 °C, clear", "18 °C, clear"],
}
"""In place of your weather service."""


@tool(price="other", effect="reads")
def weather(city: str, days: Annotated[int, "1 to 3"] = 1) -> str:
    """Forecast for a city, in Celsius: one line a day, from today on."""
    if city not in FORECASTS:
        raise ValueError(f"There is no forecast for {city}; there are {', '.join(FORECASTS)}.")
    return "\n".join(FORECASTS[city][:days])
