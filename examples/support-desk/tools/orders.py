"""What the agent can order for a customer: it costs money, so somebody approves each order before it is placed."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from typing import Annotated

from annotated_types import Ge, Gt, Le, MaxLen, MinLen
from boto3.dynamodb.conditions import Attr
from botocore.exceptions import ClientError
from dualtrack import ToolContext, tool
from tools.desk import table, ticket_of

MAX_ORDERS = 5


# always: neither the profile nor "allow in this conversation" lets it run without a decision on this very call
@tool(approval="always", seconds=10)
def place_order(
    number: Annotated[int, Ge(1), "The ticket it is for."],
    article: Annotated[str, MinLen(1), MaxLen(200), "What to send."],
    amount: Annotated[float, Gt(0), Le(500), "What the customer pays, in euros."],
    context: ToolContext,
) -> str:
    """Orders an article for the customer of a ticket, who pays for it. The customer is asked before it is placed."""
    order = {"article": article, "amount": Decimal(str(amount)), "placed": f"{datetime.now(UTC):%Y-%m-%d}"}
    try:
        table().update_item(
            Key={"customer": context.user, "number": number},
            UpdateExpression="SET orders = list_append(if_not_exists(orders, :none), :order)",
            ConditionExpression=Attr("number").exists()
            & (Attr("orders").not_exists() | Attr("orders").size().lt(MAX_ORDERS)),
            ExpressionAttributeValues={":none": [], ":order": [order]},
        )
    except ClientError as error:
        if error.response["Error"]["Code"] != "ConditionalCheckFailedException":
            raise
        ticket_of(context.user, number)
        raise ValueError(f"Ticket {number} has {MAX_ORDERS} orders, which is the most.") from None
    return f"{article} for {amount:.2f} euros is ordered for ticket {number}."
