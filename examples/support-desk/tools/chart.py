"""A picture as result. pandas and matplotlib are imported by the call: other tools need not wait for them."""

from __future__ import annotations

from base64 import b64encode
from io import BytesIO
from typing import Annotated

from annotated_types import Ge, Le
from dualtrack import Media, ToolContext, ToolResult, tool
from tools.desk import tickets_of


@tool(repeatable=True, seconds=40)
def tickets_per_week(
    context: ToolContext, weeks: Annotated[int, Ge(2), Le(26), "How many weeks back from today."] = 8
) -> ToolResult:
    """Counts the customer's tickets by week and status, as a table and as a chart."""
    import pandas as pd
    from matplotlib.figure import Figure

    opened = pd.DataFrame(tickets_of(context.user, 100), columns=["opened", "status"])
    opened["week"] = pd.to_datetime(opened["opened"]).dt.to_period("W").dt.start_time.dt.date
    first = (pd.Timestamp.now() - pd.Timedelta(weeks=weeks)).date()
    counts = opened[opened["week"] >= first].groupby(["week", "status"]).size().unstack(fill_value=0)
    if counts.empty:
        return ToolResult(f"No ticket was opened in the last {weeks} weeks.")
    figure = Figure(figsize=(6, 3), layout="constrained")
    axes = figure.subplots()
    counts.plot.bar(stacked=True, ax=axes, ylabel="tickets", xlabel="", rot=30)
    picture = BytesIO()
    figure.savefig(picture, format="png", dpi=100)
    return ToolResult(counts.to_csv(), media=(Media("image/png", b64encode(picture.getvalue()).decode()),))
