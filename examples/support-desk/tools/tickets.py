"""What the agent can do with tickets.

Whose tickets is never an argument: the model writes arguments, and a document or a message can talk it into any. The
customer is `ToolContext.user`, which comes from the token of the request.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Annotated, Literal

from annotated_types import Ge, Le, MaxLen, MinLen
from boto3.dynamodb.conditions import Attr
from botocore.exceptions import ClientError
from dualtrack import ToolContext, tool
from tools.desk import table, ticket_of, tickets_of

MAX_NOTES = 50


@tool(effect="reads")
def list_tickets(
    context: ToolContext,
    status: Annotated[Literal["open", "closed", "any"], "Which tickets."] = "any",
    limit: Annotated[int, Ge(1), Le(100), "At most this many, the newest first."] = 20,
) -> list[dict[str, object]]:
    """The customer's tickets: number, subject, status and the day on which each was opened."""
    found = tickets_of(context.user, 100)
    return [
        {
            "number": int(item["number"]),
            "subject": item["subject"],
            "status": item["status"],
            "opened": item["opened"],
        }
        for item in found
        if status in ("any", item["status"])
    ][:limit]


@tool(effect="reads")
def read_ticket(number: int, context: ToolContext) -> dict[str, object]:
    """One ticket with its parcel and its notes, the oldest first."""
    item = ticket_of(context.user, number)
    return {
        "number": number,
        "subject": item["subject"],
        "status": item["status"],
        "parcel": item.get("parcel"),
        "notes": item.get("notes", []),
    }


# Not repeatable: after a crash the call is not run again, and the model is told that its outcome is unknown. A note
# harms nobody, so no one has to approve it.
@tool(approval="never", seconds=10)
def add_note(number: int, text: Annotated[str, MinLen(1), MaxLen(2000)], context: ToolContext) -> str:
    """Adds a note to a ticket, for the people of the desk. Write what the customer asked for, in their words."""
    note = f"{datetime.now(UTC):%Y-%m-%d} {text}"
    try:
        table().update_item(
            Key={"customer": context.user, "number": number},
            UpdateExpression="SET notes = list_append(if_not_exists(notes, :none), :note)",
            ConditionExpression=Attr("number").exists()
            & (Attr("notes").not_exists() | Attr("notes").size().lt(MAX_NOTES)),
            ExpressionAttributeValues={":none": [], ":note": [note]},
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        ticket_of(context.user, number)
        raise ValueError(f"Ticket {number} has {MAX_NOTES} notes, which is the most.") from None
    return f"The note is with ticket {number}."
