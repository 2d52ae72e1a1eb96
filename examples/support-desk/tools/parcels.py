"""Where a parcel is, from the carrier's API. Its key is a secret of the stage, which no other function can read."""

from __future__ import annotations

from urllib.parse import quote

import httpx
from dualtrack import ToolContext, tool
from tools.desk import ticket_of


@tool(price="carrier", effect="reads", seconds=15)
async def track_parcel(number: int, context: ToolContext) -> str:
    """Where the parcel of a ticket is, as the carrier says."""
    parcel = ticket_of(context.user, number).get("parcel")
    if not parcel:
        raise ValueError(f"Ticket {number} has no parcel.")
    url = f"{context.settings['CARRIER_URL']}/parcels/{quote(str(parcel), safe='')}"
    async with httpx.AsyncClient(timeout=10) as client:
        answer = await client.get(url, headers={"Authorization": f"Bearer {context.settings['CARRIER_KEY']}"})
    if answer.status_code == httpx.codes.NOT_FOUND:
        return f"The carrier does not know the parcel {parcel}."
    answer.raise_for_status()
    return answer.text[:2000]
