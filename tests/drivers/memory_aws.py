"""The part of DynamoDB, S3 and Step Functions that a chat uses, in memory: thousands of crashes in a minute.

Its DynamoDB also runs the credit simulation; the same seeds leave the same items on MiniStack and DynamoDB Local
(tests/property/test_credit_simulation.py).

Expressions are parsed: one that this engine does not know raises. It also refuses what the service refuses: an item
over 400 KB, two writes to one item in a transaction, values that no expression uses. Transactions obey their
ClientRequestToken as DynamoDB does.
"""

from __future__ import annotations

import io
import itertools
import re
import threading
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError

from tests.drivers.vector_index import VectorIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

Wire = dict[str, Any]
Key = tuple[str, str]
QUERY_PAGE: Final = 30
"""Page size of S3 Vectors' answers, which the service does not document."""
ITEM_BYTES: Final = 400 * 1024
_TOKEN: Final = re.compile(r"\s*(<>|<=|>=|[()=<>,]|[#:]?\w+(?:\.\w+)?)")
_INDEX_ORDER: Final[Mapping[str, tuple[str, str]]] = {"open": ("deadline", "N"), "active": ("day", "S")}


def client_error(code: str, operation: str, **more: Any) -> ClientError:
    """The error that boto3 raises for a service's refusal."""
    response: Any = {"Error": {"Code": code, "Message": f"{code} (test)"}, **more}
    return ClientError(response, operation)


@dataclass(frozen=True, slots=True)
class _Names:
    """What ``#name`` and ``:value`` stand for in one request."""

    names: Mapping[str, str]
    values: Mapping[str, Any]

    def path(self, token: str) -> str:
        return self.names[token] if token.startswith("#") else token

    def operand(self, token: str, item: Wire) -> Any:
        """A value, an attribute, or a member of a map."""
        name, _, member = token.partition(".")
        value = self.values[name] if name.startswith(":") else item.get(self.path(name))
        return value.get("M", {}).get(member) if value and member else value

    def assign(self, token: str, item: Wire, value: Any) -> None:
        """Set an attribute, or a member of a map that is there."""
        name, _, member = token.partition(".")
        path = self.path(name)
        item[path] = {"M": {**item[path]["M"], member: value}} if member else value


class _Parser:
    """Conditions and update expressions, by recursive descent."""

    def __init__(self, text: str) -> None:
        self._tokens = _TOKEN.findall(text)
        assert "".join(self._tokens) == re.sub(r"\s", "", text), text
        self._place = 0

    def peek(self) -> str:
        return self._tokens[self._place] if self._place < len(self._tokens) else ""

    def take(self, *expected: str) -> str:
        token = self.peek()
        assert token, self._tokens
        assert not expected or token in expected, (self._tokens, token)
        self._place += 1
        return token

    def condition(self) -> Callable[[_Names, Wire], bool]:
        tests = [self._conjunction()]
        while self.peek() == "OR":
            self.take()
            tests.append(self._conjunction())
        return lambda names, item: any(test(names, item) for test in tests)

    def _conjunction(self) -> Callable[[_Names, Wire], bool]:
        tests = [self._term()]
        while self.peek() == "AND":
            self.take()
            tests.append(self._term())
        return lambda names, item: all(test(names, item) for test in tests)

    def _term(self) -> Callable[[_Names, Wire], bool]:
        token = self.take()
        if token == "(":
            inner = self.condition()
            self.take(")")
            return inner
        if token in ("attribute_exists", "attribute_not_exists"):
            self.take("(")
            path = self.take()
            self.take(")")
            return lambda names, item: (names.path(path) in item) == (token == "attribute_exists")
        if self.peek() == "BETWEEN":
            self.take()
            low = self.take()
            self.take("AND")
            high = self.take()
            return lambda names, item: (
                _compare(names, item, token, ">=", low) and _compare(names, item, token, "<=", high)
            )
        operator, right = self.take("=", "<>", "<", "<=", ">", ">="), self.take()
        return lambda names, item: _compare(names, item, token, operator, right)

    def changes(self) -> Callable[[_Names, Wire, Wire], None]:
        """``SET a = :a, b = if_not_exists(b, :b) REMOVE c ADD d :d``."""
        steps: list[Callable[[_Names, Wire, Wire], None]] = []
        while self.peek():
            kinds = {"SET": self._assignment, "REMOVE": self._removal, "ADD": self._addition}
            step = kinds[self.take(*kinds)]
            steps.append(step())
            while self.peek() == ",":
                self.take()
                steps.append(step())

        def apply(names: _Names, old: Wire, new: Wire) -> None:
            for change in steps:
                change(names, old, new)

        return apply

    def _assignment(self) -> Callable[[_Names, Wire, Wire], None]:
        path = self.take()
        self.take("=")
        value, fallback = self.take(), ""
        if value == "if_not_exists":
            self.take("(")
            value = self.take()
            self.take(",")
            fallback = self.take()
            self.take(")")

        def assign(names: _Names, old: Wire, new: Wire) -> None:
            operand = names.operand(value, old)
            value_now = names.operand(fallback, old) if operand is None and fallback else operand
            names.assign(path, new, value_now)

        return assign

    def _addition(self) -> Callable[[_Names, Wire, Wire], None]:
        path, value = self.take(), self.take()
        return lambda names, old, new: _add(new, names.path(path), names.operand(value, old))

    def _removal(self) -> Callable[[_Names, Wire, Wire], None]:
        path = self.take()
        return lambda names, old, new: _forget(new, names.path(path))


def _add(item: Wire, name: str, value: Wire) -> None:
    item[name] = {"N": str(int(item.get(name, {"N": "0"})["N"]) + int(value["N"]))}


def _forget(item: Wire, name: str) -> None:
    item.pop(name, None)


def _compare(names: _Names, item: Wire, left: str, operator: str, right: str) -> bool:
    first, other = names.operand(left, item), names.operand(right, item)
    if first is None or other is None:
        return False
    ((kind, a),), ((other_kind, b),) = first.items(), other.items()
    if kind != other_kind:
        return operator == "<>"
    if kind == "N":
        a, b = int(a), int(b)
    outcome = {"=": a == b, "<>": a != b, "<": a < b, "<=": a <= b, ">": a > b, ">=": a >= b}
    return bool(outcome[operator])


@cache
def _condition(text: str) -> Callable[[_Names, Wire], bool]:
    return _Parser(text).condition()


@cache
def _changes(text: str) -> Callable[[_Names, Wire, Wire], None]:
    return _Parser(text).changes()


def _names(request: Mapping[str, Any]) -> _Names:
    names = request.get("ExpressionAttributeNames", {})
    values = request.get("ExpressionAttributeValues", {})
    text = " ".join(str(value) for name, value in request.items() if name.endswith("Expression"))
    for token in (*names, *values):
        assert re.search(rf"{token}\b", text), f"{token} is not used in {text}"
    return _Names(names, values)


def _key(item: Mapping[str, Any]) -> Key:
    return item["pk"]["S"], item["sk"]["S"]


def _size(value: Any) -> int:
    if isinstance(value, dict):
        return sum(len(name) + _size(part) for name, part in value.items())
    if isinstance(value, list):
        return sum(_size(part) for part in value)
    return len(value) if isinstance(value, (str, bytes)) else 1


class Table(dict[Key, Wire]):
    """A table's items by key. Partitions are indexed: tests have tables of 20,000 items."""

    def __init__(self) -> None:
        super().__init__()
        self._partitions: dict[str, dict[str, None]] = {}

    def __setitem__(self, key: Key, item: Wire) -> None:
        self._partitions.setdefault(key[0], {})[key[1]] = None
        super().__setitem__(key, item)

    def __delitem__(self, key: Key) -> None:
        self.forget(key)

    def forget(self, key: Key) -> Wire:
        """Remove an item, if it exists; returns it."""
        self._partitions.get(key[0], {}).pop(key[1], None)
        return super().pop(key, {})

    def partition(self, pk: str) -> list[Wire]:
        """A partition's items, by their sort keys."""
        return [self[pk, sk] for sk in sorted(self._partitions.get(pk, ()))]


@dataclass
class MemoryAws:
    """The account: tables, objects, executions. Every call is atomic."""

    tables: dict[str, Table] = field(default_factory=dict)
    objects: dict[str, bytes] = field(default_factory=dict)
    executions: dict[str, str] = field(default_factory=dict)
    vector_indexes: dict[str, VectorIndex] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    _tokens: dict[str, Any] = field(default_factory=dict)

    def call(self, service: str, operation: str, request: dict[str, Any]) -> Any:
        """Perform a call as the service does."""
        with self.lock:
            return getattr(self, f"_{operation}")(**request)

    def delete_expired(self, now: float) -> list[Key]:
        """Delete every item whose time is up, as DynamoDB does within days; returns their keys."""
        expired = []
        with self.lock:
            for table in self.tables.values():
                gone = [
                    key
                    for key, item in table.items()
                    if int(item.get("ttl", {"N": "99999999999"})["N"]) <= now
                ]
                for key in gone:
                    table.forget(key)
                expired += gone
        return expired

    def table(self, name: str) -> Table:
        """A table's items by key; a table is created with its first item."""
        return self.tables.setdefault(name, Table())

    # ── DynamoDB ──────────────────────────────────────────────────────────────────────────────────

    def _create_table(self, **request: Any) -> Wire:
        self.tables[request["TableName"]] = Table()
        return {}

    def _delete_table(self, **request: Any) -> Wire:
        """Also drops transaction tokens: the credit simulation makes 100,000 chats in one account."""
        del self.tables[request["TableName"]]
        self._tokens.clear()
        return {}

    def _scan(self, **request: Any) -> Wire:
        index = request.get("IndexName")
        return {
            "Items": [
                item for item in self.table(request["TableName"]).values() if not index or index in item
            ]
        }

    def _get_item(self, **request: Any) -> Wire:
        item = self.table(request["TableName"]).get(_key(request["Key"]))
        return {"Item": item} if item else {}

    def _put_item(self, **request: Any) -> Wire:
        return self._single("Put", request)

    def _update_item(self, **request: Any) -> Wire:
        return self._single("Update", request)

    def _delete_item(self, **request: Any) -> Wire:
        return self._single("Delete", request)

    def _single(self, kind: str, request: Any) -> Wire:
        lost = self._lost(kind, request)
        if lost is not None:
            raise client_error("ConditionalCheckFailedException", kind, **lost)
        new = self._apply(kind, request)
        return {"Attributes": new} if request.get("ReturnValues") == "ALL_NEW" else {}

    def _transact_write_items(self, **request: Any) -> Wire:
        token = request.get("ClientRequestToken")
        actions = [next(iter(action.items())) for action in request["TransactItems"]]
        if token and token in self._tokens:
            assert self._tokens[token] == actions, "one token, two transactions"
            return {}
        keys = [(action["TableName"], *_key(action.get("Item") or action["Key"])) for _, action in actions]
        assert len(keys) <= 100, keys
        assert len(set(keys)) == len(keys), keys
        lost = [self._lost(kind, action) for kind, action in actions]
        if any(reason is not None for reason in lost):
            reasons = [
                {"Code": "None"} if reason is None else {"Code": "ConditionalCheckFailed", **reason}
                for reason in lost
            ]
            raise client_error(
                "TransactionCanceledException", "TransactWriteItems", CancellationReasons=reasons
            )
        for kind, action in actions:
            self._apply(kind, action)
        if token:
            self._tokens[token] = actions
        return {}

    def _lost(self, kind: str, action: Any) -> Wire | None:
        """None if the condition is true, otherwise the stored item."""
        names = _names(action)
        if "ConditionExpression" not in action:
            return None
        old = self.table(action["TableName"]).get(_key(action["Item"] if kind == "Put" else action["Key"]))
        if _condition(action["ConditionExpression"])(names, old or {}):
            return None
        return {"Item": old} if old else {}

    def _apply(self, kind: str, action: Any) -> Wire:
        table = self.table(action["TableName"])
        if kind == "ConditionCheck":
            return {}
        key = _key(action["Item"] if kind == "Put" else action["Key"])
        if kind == "Delete":
            return table.forget(key)
        if kind == "Put":
            new = dict(action["Item"])
        else:
            old = table.get(key, dict(action["Key"]))
            new = dict(old)
            _changes(action["UpdateExpression"])(_names(action), old, new)
        if _size(new) > ITEM_BYTES:
            raise client_error("ValidationException", kind)
        table[key] = new
        return new

    def _query(self, **request: Any) -> Wire:
        names, test = _names(request), _condition(request["KeyConditionExpression"])
        partition = names.values[":pk"]["S"] if ":pk" in names.values else None
        table = self.table(request["TableName"])
        listed = sorted(table.values(), key=_key) if partition is None else table.partition(partition)
        if index := request.get("IndexName"):
            name, kind = _INDEX_ORDER[index]
            listed = [item for item in listed if name in item]
            listed.sort(key=lambda item: int(item[name][kind]) if kind == "N" else item[name][kind])
        if not request.get("ScanIndexForward", True):
            listed.reverse()
        if start := request.get("ExclusiveStartKey"):
            listed = listed[[_key(item) for item in listed].index(_key(start)) + 1 :]
        limit = request.get("Limit", len(listed))
        matching = list(itertools.islice((item for item in listed if test(names, item)), limit + 1))
        page = matching[:limit]
        if wanted := request.get("ProjectionExpression"):
            paths = [names.path(token) for token in wanted.split(", ")]
            page = [{path: item[path] for path in paths if path in item} for item in page]
        more = (
            {"LastEvaluatedKey": {name: page[-1][name] for name in ("pk", "sk")}}
            if len(page) < len(matching)
            else {}
        )
        return {"Items": page, **more}

    def _batch_get_item(self, **request: Any) -> Wire:
        responses = {
            table: [item for key in wanted["Keys"] if (item := self.table(table).get(_key(key)))]
            for table, wanted in request["RequestItems"].items()
        }
        return {"Responses": responses, "UnprocessedKeys": {}}

    def _batch_write_item(self, **request: Any) -> Wire:
        for table, writes in request["RequestItems"].items():
            for write in writes:
                if "PutRequest" in write:
                    item = write["PutRequest"]["Item"]
                    self.table(table)[_key(item)] = item
                else:
                    self.table(table).forget(_key(write["DeleteRequest"]["Key"]))
        return {"UnprocessedItems": {}}

    # ── S3 ────────────────────────────────────────────────────────────────────────────────────────

    def _put_object(self, **request: Any) -> Wire:
        body = request["Body"]
        if not isinstance(body, bytes):  # a file, which botocore rewinds each time it sends
            body.seek(0)
            body = body.read()
        self.objects[request["Key"]] = body
        return {}

    def _get_object(self, **request: Any) -> Wire:
        if request["Key"] not in self.objects:
            raise client_error("NoSuchKey", "GetObject")
        body = self.objects[request["Key"]]
        if span := request.get("Range"):
            first, last = map(int, span.removeprefix("bytes=").split("-"))
            body = body[first : last + 1]
        return {"Body": io.BytesIO(body), "ContentLength": len(body)}

    def _list_objects_v2(self, **request: Any) -> Wire:
        return {
            "Contents": [{"Key": key} for key in sorted(self.objects) if key.startswith(request["Prefix"])]
        }

    def _delete_objects(self, **request: Any) -> Wire:
        for entry in request["Delete"]["Objects"]:
            self.objects.pop(entry["Key"], None)
        return {}

    # ── S3 Vectors ────────────────────────────────────────────────────────────────────────────────

    def _create_index(self, **request: Any) -> Wire:
        if request["indexName"] in self.vector_indexes:
            raise client_error("ConflictException", "CreateIndex")
        self.vector_indexes[request["indexName"]] = VectorIndex(request)
        return {}

    def _put_vectors(self, **request: Any) -> Wire:
        self._vector_index(request, "PutVectors").put(request["vectors"])
        return {}

    def _query_vectors(self, **request: Any) -> Wire:
        vectors = self._vector_index(request, "QueryVectors").nearest(request)
        start = int(request.get("nextToken", 0))
        more = {"nextToken": str(start + QUERY_PAGE)} if len(vectors) > start + QUERY_PAGE else {}
        return {"vectors": vectors[start : start + QUERY_PAGE], **more}

    def _list_indexes(self, **request: Any) -> Wire:
        names = sorted(name for name in self.vector_indexes if name.startswith(request["prefix"]))
        return {"indexes": [{"indexName": name} for name in names]}

    def _delete_index(self, **request: Any) -> Wire:
        """The service answers success if there is none."""
        self.vector_indexes.pop(request["indexName"], None)
        return {}

    def _vector_index(self, request: Any, operation: str) -> VectorIndex:
        if request["indexName"] not in self.vector_indexes:
            raise client_error("NotFoundException", operation)
        return self.vector_indexes[request["indexName"]]

    # ── Step Functions ────────────────────────────────────────────────────────────────────────────

    def _start_execution(self, **request: Any) -> Wire:
        if self.executions.get(request["name"], "RUNNING") != "RUNNING":
            raise client_error("ExecutionAlreadyExists", "StartExecution")
        self.executions[request["name"]] = "RUNNING"
        return {}

    def _describe_execution(self, **request: Any) -> Wire:
        name = request["executionArn"].rsplit(":", 1)[1]
        if name not in self.executions:
            raise client_error("ExecutionDoesNotExist", "DescribeExecution")
        return {"status": self.executions[name]}

    def _stop_execution(self, **request: Any) -> Wire:
        name = request["executionArn"].rsplit(":", 1)[1]
        if name not in self.executions:
            raise client_error("ExecutionDoesNotExist", "StopExecution")
        if self.executions[name] == "RUNNING":
            self.executions[name] = "ABORTED"
        return {}


class Client:
    """A boto3 client's methods over a function ``(operation, request) -> response``."""

    def __init__(self, send: Callable[[str, dict[str, Any]], Any]) -> None:
        self._send = send

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return lambda **request: self._send(operation, request)

    def get_paginator(self, operation: str) -> _Pages:
        """Pages of one operation."""
        return _Pages(self._send, operation)


@dataclass(frozen=True, slots=True)
class _Pages:
    send: Callable[[str, dict[str, Any]], Any]
    operation: str

    def paginate(self, **request: Any) -> Iterator[Any]:
        """One page: this engine cuts only at a requested limit."""
        yield self.send(self.operation, request)
