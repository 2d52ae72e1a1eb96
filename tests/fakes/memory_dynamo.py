"""As much of DynamoDB as the credit simulation uses, in memory and fast.

It lets one command run 100,000 chats. It is trusted because the same seeds give the same items on
moto, MiniStack and DynamoDB Local (tests/property/test_credit_simulation.py). An expression that it
does not know raises.
"""

from __future__ import annotations

import copy
import re
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

Wire = dict[str, Any]

_BETWEEN: Final = re.compile(r"(\w+) BETWEEN (:\w+) AND (:\w+)")
_TERM: Final = re.compile(r"(\S+) (=|<|<=|>=) (:\w+)")
_ABSENT: Final = re.compile(r"attribute_not_exists\((\w+)\)")
_SET: Final = re.compile(r"SET (\S+) = (:\w+)")

_COMPARE: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "=": lambda left, right: left == right,
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">=": lambda left, right: left >= right,
}


class MemoryDynamo:
    """The client's methods; items in wire form."""

    def __init__(self) -> None:
        self._tables: dict[str, dict[tuple[str, str], Wire]] = {}

    def create_table(self, **request: Any) -> None:
        self._tables[request["TableName"]] = {}

    def delete_table(self, **request: Any) -> None:
        del self._tables[request["TableName"]]

    def get_item(self, **request: Any) -> dict[str, Any]:
        found = self._tables[request["TableName"]].get(_key(request["Key"]))
        return {"Item": copy.deepcopy(found)} if found else {}

    def put_item(self, **request: Any) -> None:
        self._single("Put", request)

    def update_item(self, **request: Any) -> None:
        self._single("Update", request)

    def delete_item(self, **request: Any) -> None:
        self._single("Delete", request)

    def _single(self, kind: str, request: Any) -> None:
        lost = self._lost(kind, request)
        if lost:
            response: Any = {"Error": {"Code": "ConditionalCheckFailedException"}, **lost}
            raise ClientError(response, "Write")
        self._apply(kind, request)

    def transact_write_items(self, **request: Any) -> dict[str, Any]:
        actions = [next(iter(action.items())) for action in request["TransactItems"]]
        reasons = [self._reason(self._lost(kind, action)) for kind, action in actions]
        if any(reason["Code"] != "None" for reason in reasons):
            response: Any = {
                "Error": {"Code": "TransactionCanceledException"},
                "CancellationReasons": reasons,
            }
            raise ClientError(response, "TransactWriteItems")
        for kind, action in actions:
            self._apply(kind, action)
        return {}

    def query(self, **request: Any) -> dict[str, Any]:
        """Whole partitions at once: there is no second page."""
        order = ("sk",) if "IndexName" not in request else ("day", "pk")
        found = [item for item in self._tables[request["TableName"]].values() if _all_hold(request, item)]
        found.sort(
            key=lambda item: tuple(item[key]["S"] for key in order),
            reverse=not request.get("ScanIndexForward", True),
        )
        return {"Items": copy.deepcopy(found)}

    def get_paginator(self, operation: str) -> Any:
        assert operation == "scan"
        return self

    def paginate(self, **request: Any) -> Iterator[dict[str, Any]]:
        items = self._tables[request["TableName"]].values()
        index = request.get("IndexName")
        yield {"Items": [copy.deepcopy(item) for item in items if not index or index in item]}

    def _lost(self, kind: str, action: Any) -> dict[str, Any] | None:
        """None if the condition holds, else what stands there."""
        key = action["Item"] if kind == "Put" else action["Key"]
        old = self._tables[action["TableName"]].get(_key(key))
        if "ConditionExpression" not in action or _all_hold(action, old or {}, "ConditionExpression"):
            return None
        return {"Item": copy.deepcopy(old)} if old else {"Absent": True}

    @staticmethod
    def _reason(lost: dict[str, Any] | None) -> dict[str, Any]:
        return {"Code": "None"} if lost is None else {"Code": "ConditionalCheckFailed", **lost}

    def _apply(self, kind: str, action: Any) -> None:
        table = self._tables[action["TableName"]]
        if kind == "Put":
            table[_key(action["Item"])] = copy.deepcopy(action["Item"])
        elif kind == "Update":
            match = _SET.fullmatch(action["UpdateExpression"])
            assert match, action["UpdateExpression"]
            item = table.setdefault(_key(action["Key"]), dict(action["Key"]))
            item[_name(action, match[1])] = action["ExpressionAttributeValues"][match[2]]
        else:
            assert kind == "ConditionCheck", kind


def _key(item: Wire) -> tuple[str, str]:
    return item["pk"]["S"], item["sk"]["S"]


def _name(request: Any, text: str) -> str:
    return str(request["ExpressionAttributeNames"][text]) if text.startswith("#") else text


def _all_hold(request: Any, item: Wire, expression: str = "KeyConditionExpression") -> bool:
    text = _BETWEEN.sub(r"\1 >= \2 AND \1 <= \3", request[expression])
    return all(_holds(request, item, term) for term in text.split(" AND "))


def _holds(request: Any, item: Wire, term: str) -> bool:
    if absent := _ABSENT.fullmatch(term):
        return absent[1] not in item
    match = _TERM.fullmatch(term)
    assert match, term
    left, right = item.get(_name(request, match[1])), request["ExpressionAttributeValues"][match[3]]
    if left is None:
        return False
    ((kind, value),), ((other_kind, other),) = left.items(), right.items()
    return kind == other_kind and _COMPARE[match[2]](value, other)
