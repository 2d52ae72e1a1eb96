"""What the function of webhooks may do: by its template (tables, indexes, other), as seen on a stack, and what not."""

from __future__ import annotations

from typing import Final

TABLES: Final = {"Deliver": {"Chats": {"BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}}}
INDEXES: Final = {("Deliver", "Query")}
OTHER: Final = {"Deliver": {"kms:Decrypt", "sqs:SendMessage"}}
SEEN: Final = {
    "Deliver": {"put chats", "update chats", "delete chats", "find open chats", "decrypt connections"}
}
KEYED: Final = (
    # claims webhooks, and changes no chat
    (("Deliver",), ("UpdateItem",), "Chats", ("USER#ann",)),
    # nor does it list any
    (("Deliver",), ("Query",), "Chats/index/open", ("open#0",)),
)
