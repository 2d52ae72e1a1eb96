"""What the function that reads documents may do: by its template, as seen on a stack, and what not."""

from __future__ import annotations

from typing import Final

TABLES: Final = {"ReadDocuments": {"History": {"GetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"}}}
INDEXES: Final = frozenset[tuple[str, str]]()
OTHER: Final = {"ReadDocuments": {"s3:GetObject", "s3:PutObject", "s3:ListBucket", "lambda:InvokeFunction"}}
SEEN: Final = {
    "ReadDocuments": {
        "read history",
        "put history",
        "update history",
        "delete history",
        "secret voyage",
        "read corpora",
        "put corpora",
        "run the local model",
    }
}
MODULES: Final = {"read_documents": {"numpy", "pydantic", "httpx", "rank_bm25"}}
KEYED: Final = (
    # no conversation's record
    (("ReadDocuments",), ("PutItem", "GetItem"), "History", ("CONV#ann#cv_1",)),
)
