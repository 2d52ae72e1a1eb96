"""The cache table: cached answers, the tools of MCP servers, connections (and leases.py).

    pk <kind>#<hash>      sk v1                  what a search of services remembers, with ttl
    pk mcp#catalogue      sk listings            which version of each server's tools is offered: an attribute each
                          sk accepted            by server, the marks of the tools that were accepted
                          sk v#<version>         one server's tools as they were listed, with ttl
    pk user#<user>        sk connection#github   a user's encrypted token
    pk agent#<hash>       sk v1                  a pinned agent, with ttl (agents.py)
    pk LEASE#<user>       sk STREAMS, WAITS      a user's leases

Entries past their ``ttl`` are not read, whether or not DynamoDB has deleted them yet.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage.dynamo import (
    ConditionFailed,
    batch_get,
    delete,
    delete_partition,
    get,
    put,
    put_all,
    transact,
    update,
)
from dualtrack.storage.leases import KEY_PREFIX as LEASE_PREFIX

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.clock import Clock
    from dualtrack.storage.dynamo import Action

_ENTRY: Final = "v1"
_CATALOGUE: Final = "mcp#catalogue"
_LISTINGS: Final = {"pk": _CATALOGUE, "sk": "listings"}
_ACCEPTED: Final = {"pk": _CATALOGUE, "sk": "accepted"}
_SERVER: Final = "server "
"""Before the name of a server's attribute."""
_WRITE_ATTEMPTS: Final = 4
_MAX_ENTRY: Final = 380_000
"""Bytes; DynamoDB's item limit is 400 KB."""


@dataclass(frozen=True, slots=True)
class StoredToken:
    """A user's encrypted token; ``created_at`` in epoch seconds."""

    token: bytes
    created_at: int


@dataclass(frozen=True, slots=True)
class CacheStore:
    """Reads and writes of the cache table."""

    client: DynamoDBClient
    table: str
    clock: Clock

    def get_many(self, keys: Iterable[str]) -> dict[str, bytes]:
        """Live entries by key; what is missing or expired is left out."""
        wanted = [{"pk": key, "sk": _ENTRY} for key in dict.fromkeys(keys)]
        items = batch_get(self.client, self.table, wanted)
        now = self.clock()
        return {item["pk"]: item["body"] for item in items if item.get("ttl", 0) > now and "body" in item}

    def put_many(self, entries: Mapping[str, bytes], seconds: int) -> None:
        """Cache entries for ``seconds``. Entries that are too large, or that DynamoDB keeps throttling, are
        dropped.
        """
        expires = int(self.clock()) + seconds
        items = (
            {"pk": key, "sk": _ENTRY, "body": body, "ttl": expires}
            for key, body in entries.items()
            if len(body) <= _MAX_ENTRY
        )
        put_all(self.client, self.table, items, attempts=_WRITE_ATTEMPTS)

    def listings(self) -> Mapping[str, Mapping[str, Any]]:
        """The stored note on each MCP server's listing; eventually consistent."""
        item = get(self.client, self.table, _LISTINGS, consistent=False)
        return {
            name.removeprefix(_SERVER): note
            for name, note in (item or {}).items()
            if name.startswith(_SERVER)
        }

    def save_listing(self, server: str, note: Mapping[str, Any]) -> None:
        """Replace the note on a server; the others stay as they are."""
        self._change_listing(server, "SET #server = :note", {":note": note})

    def renew_listing(self, server: str, listed: str, listed_at: int) -> bool:
        """The server has listed the same again; false if its note is about another listing."""
        return self._change_listing(
            server,
            "SET #server.listed_at = :at",
            {":at": listed_at, ":listed": listed},
            "#server.listed = :listed",
        )

    def replace_version(self, server: str, old: str, new: str) -> bool:
        """Offer another version of what the server has listed; false if the old one is no longer offered."""
        values = {":old": old, ":new": new}
        return self._change_listing(server, "SET #server.version = :new", values, "#server.version = :old")

    def forget_listing(self, server: str) -> None:
        """Delete the note on a server, and what was accepted of it."""
        for key in (_ACCEPTED, _LISTINGS):
            self._made(self._change(key, server, "REMOVE #server"))

    def accepted(self, server: str) -> tuple[str, ...] | None:
        """The marks of the server's tools that were accepted; None if it was never listed."""
        item = get(self.client, self.table, _ACCEPTED) or {}
        marks = item.get(f"{_SERVER}{server}")
        return None if marks is None else tuple(marks)

    def accept_first(self, server: str, marks: Sequence[str]) -> bool:
        """Accept what a server lists first; false if something was accepted before."""
        values = {":marks": [*marks]}
        is_first = "attribute_not_exists(#server)"
        return self._made(self._change(_ACCEPTED, server, "SET #server = :marks", values, is_first))

    def accept(self, server: str, marks: Sequence[str], note: Mapping[str, Any], version: str) -> None:
        """Accept these instead, and replace the note, at once. Raises `ConditionFailed` if another ``version`` is
        offered by now.
        """
        values = {":note": note, ":version": version}
        is_same = "#server.version = :version"
        changes = (
            self._change(_ACCEPTED, server, "SET #server = :marks", {":marks": [*marks]}),
            self._change(_LISTINGS, server, "SET #server = :note", values, is_same),
        )
        transact(self.client, changes)

    def _change_listing(
        self, server: str, expression: str, values: Mapping[str, Any] | None = None, condition: str = ""
    ) -> bool:
        return self._made(self._change(_LISTINGS, server, expression, values, condition))

    def _change(
        self,
        key: Mapping[str, str],
        server: str,
        expression: str,
        values: Mapping[str, Any] | None = None,
        condition: str = "",
    ) -> Action:
        """Of the server's attribute in an item that has one for each."""
        names = {"#server": f"{_SERVER}{server}"}
        return update(key["sk"], self.table, key, expression, condition, values, names)

    def _made(self, *changes: Action) -> bool:
        """Whether these were made, all or none."""
        with suppress(ConditionFailed):
            transact(self.client, changes)
            return True
        return False

    def tools(self, version: str) -> bytes | None:
        """A version of a server's tools, as it was saved."""
        item = get(self.client, self.table, _tools_key(version))
        return item["tools"] if item else None

    def save_tools(self, version: str, body: bytes, expires: int) -> None:
        """Keep a version of a server's tools until ``expires`` (epoch seconds)."""
        item = {**_tools_key(version), "tools": body, "ttl": expires}
        transact(self.client, [put("version", self.table, item)])

    def keep_tools(self, version: str, expires: int) -> bool:
        """Keep a stored version until ``expires``; false if there is none."""
        change = update(
            "version", self.table, _tools_key(version), "SET #ttl = :ttl", "attribute_exists(pk)", {":ttl": expires},
            {"#ttl": "ttl"},
        )  # fmt: skip
        return self._made(change)

    def token(self, user: str) -> StoredToken | None:
        """The user's token, if there is one."""
        item = get(self.client, self.table, _connection_key(user))
        return StoredToken(item["token"], item["created_at"]) if item else None

    def save_token(self, user: str, stored: StoredToken) -> None:
        """Store the user's token; replaces an earlier one."""
        item = {**_connection_key(user), "token": stored.token, "created_at": stored.created_at}
        transact(self.client, [put("connection", self.table, item)])

    def delete_token(self, user: str) -> None:
        """Delete the user's token, if there is one."""
        transact(self.client, [delete("connection", self.table, _connection_key(user))])

    def forget_user(self, user: str) -> bool:
        """Delete the user's connections and leases; returns whether there were any."""
        connected = delete_partition(self.client, self.table, _connection_key(user)["pk"])
        return delete_partition(self.client, self.table, f"{LEASE_PREFIX}{user}") or connected


def _tools_key(version: str) -> dict[str, str]:
    return {"pk": _CATALOGUE, "sk": f"v#{version}"}


def _connection_key(user: str) -> dict[str, str]:
    return {"pk": f"user#{user}", "sk": "connection#github"}
