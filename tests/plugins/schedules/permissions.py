"""What the function of schedules may do: by its template (tables, indexes, other), and as seen on a stack."""

from __future__ import annotations

from typing import Final

_OWN: Final = {"GetItem", "PutItem", "UpdateItem", "DeleteItem", "Query", "BatchWriteItem"}

TABLES: Final = {
    "Schedule": {
        "Chats": {*_OWN, "BatchGetItem"},
        "History": {*_OWN, "BatchGetItem", "ConditionCheckItem"},
        "Credits": {"GetItem", "PutItem"},
        "Cache": {"GetItem"},
    }
}
INDEXES: Final = {("Schedule", "Query")}
OTHER: Final = {
    "Schedule": {
        "s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket", "sqs:SendMessage",
        "states:StartExecution",
    }
}  # fmt: skip
SEEN: Final = {
    "Schedule": {
        *(f"{verb} {table}" for table in ("chats", "history") for verb in ("read", "put", "update", "delete")),
        "read credits", "put credits", "read cache",
        "read bodies", "put bodies", "read corpora", "put corpora", "delete bodies", "list bodies",
        "find open chats", "start a chat",
    }
}  # fmt: skip
KEYED: Final = ()
