"""A picture as result. pandas and Pillow are imported by the call: other tools need not wait for them."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import TYPE_CHECKING, Annotated

from annotated_types import Ge, Le
from dualtrack import Media, ToolContext, ToolResult, tool
from tools.desk import tickets_of

if TYPE_CHECKING:
    import pandas as pd

WIDTH, HEIGHT, BAR = 640, 320, 40
COLOURS = {"open": "#d9822b", "closed": "#4a7a8c"}


@tool(effect="reads", seconds=40)
def tickets_per_week(
    context: ToolContext, weeks: Annotated[int, Ge(2), Le(12), "How many weeks back from today."] = 8
) -> ToolResult:
    """Counts the customer's tickets by week and status, as a table and as a chart."""
    import pandas as pd

    opened = pd.DataFrame(tickets_of(context.user, 100), columns=["opened", "status"])
    opened["week"] = pd.to_datetime(opened["opened"]).dt.to_period("W").dt.start_time.dt.date
    first = (pd.Timestamp.now() - pd.Timedelta(weeks=weeks)).date()
    counts = opened[opened["week"] >= first].groupby(["week", "status"]).size().unstack(fill_value=0)
    if counts.empty:
        return ToolResult(f"No ticket was opened in the last {weeks} weeks.")
    return ToolResult(counts.to_csv(), media=(Media("image/png", b64encode(chart(counts)).decode()),))


def chart(counts: pd.DataFrame) -> bytes:
    """Stacked bars, one a week, as PNG."""
    from PIL import Image, ImageDraw

    image = Image.new("RGB", (WIDTH, HEIGHT), "white")
    draw = ImageDraw.Draw(image)
    unit = (HEIGHT - 60) / max(counts.sum(axis=1))
    for place, (week, row) in enumerate(counts.iterrows()):
        left, top = 20 + place * (BAR + 8), HEIGHT - 30
        for status, number in row.items():
            bottom, top = top, top - int(number * unit)
            draw.rectangle((left, top, left + BAR, bottom), fill=COLOURS[str(status)])
        draw.text((left, HEIGHT - 24), f"{week:%d %b}", fill="black")
    for place, (status, colour) in enumerate(COLOURS.items()):
        draw.text((20 + 60 * place, 6), status, fill=colour)
    buffer = BytesIO()
    image.save(buffer, format="PNG")
    return buffer.getvalue()
