"""A function's role in this process: a DynamoDB client that may do what the role may on the deployed stack.

Tests of a door that run its code beside the stack would otherwise prove it with the rights of root: client tools over
OpenAI's API were a 500 on every stack, and green here. Read from the local template; conditions on keys count too,
which the emulator does not enforce.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from dualtrack_stack.roots import PACKAGE
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.stage_permissions import many
from tests.drivers.templates import readable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TABLE: Final = re.compile(r"GetAtt(History|Chats|Credits|Cache)[0-9A-F]{8}Arn")
_WRITES: Final = {
    "Put": "PutItem",
    "Update": "UpdateItem",
    "Delete": "DeleteItem",
    "ConditionCheck": "ConditionCheckItem",
}
TABLES: Final = ("history", "chats", "credits", "cache")


@dataclass(frozen=True, slots=True)
class Right:
    """Actions on a table (``chats``), or on its indexes (``chats/index``), of these partition keys (None: of all)."""

    actions: frozenset[str]
    place: str
    keys: tuple[str, ...] | None

    def covers(self, asked: Asked) -> bool:
        """Whether it allows this."""
        fits = self.keys is None or (
            asked.key is not None and any(fnmatchcase(asked.key, pattern) for pattern in self.keys)
        )
        return asked.action in self.actions and asked.place == self.place and fits


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call needs. ``key``: None where the call does not name it plainly."""

    action: str
    place: str
    key: str | None = None


@cache
def rights_of(function: str) -> tuple[Right, ...]:
    """Of a function's role on the tables."""
    template = json.loads((PACKAGE / "local" / "templates" / "Chat.template.json").read_bytes())
    beginning = f"{SPECS[function].construct_id}RoleDefaultPolicy"
    (policy,) = [one for name, one in template["Resources"].items() if name.startswith(beginning)]
    return tuple(_rights(policy["Properties"]["PolicyDocument"]["Statement"]))


def _rights(statements: list[dict[str, Any]]) -> Iterator[Right]:
    for statement in statements:
        condition = statement.get("Condition", {}).get("ForAllValues:StringLike", {})
        keys = condition.get("dynamodb:LeadingKeys")
        actions = frozenset(action.partition(":")[2] for action in many(statement["Action"]))
        for resource in map(readable, many(statement["Resource"])):
            if found := _TABLE.search(resource):
                place = found[1].lower() + ("/index" if "/index/" in resource else "")
                yield Right(actions, place, None if keys is None else tuple(many(keys)))


def as_role(client: Any, function: str, tables: Mapping[str, str] | None = None) -> Any:
    """The client, which is denied what the function's role may not do. ``tables``: their names, by `TABLES`."""
    names = {name: place for place, name in (tables or {name: name for name in TABLES}).items()}

    def check(params: Mapping[str, Any], model: Any, **_: Any) -> None:
        for asked in _asked(model.name, params, names):
            if not any(right.covers(asked) for right in rights_of(function)):
                message = f"The role of {function} is not authorized to perform {asked}"
                raise ClientError(
                    {"Error": {"Code": "AccessDeniedException", "Message": message}}, model.name
                )

    client.meta.events.register("provide-client-params.dynamodb", check)
    return client


def _asked(operation: str, params: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[Asked]:
    match operation:
        case "TransactWriteItems" | "TransactGetItems":
            for item in params["TransactItems"]:
                ((verb, one),) = item.items()
                yield Asked(_WRITES.get(verb, "GetItem"), names[one["TableName"]], _key(one))
        case "BatchGetItem" | "BatchWriteItem":
            yield from (Asked(operation, names[table]) for table in params["RequestItems"])
        case "Query" | "Scan" if "IndexName" in params:
            yield Asked(operation, f"{names[params['TableName']]}/index")
        case "DescribeTable" | "CreateTable" | "ListTables":
            return
        case _:
            yield Asked(operation, names[params["TableName"]], _key(params))


def _key(params: Mapping[str, Any]) -> str | None:
    key = params.get("Key", params.get("Item", {})).get("pk", {})
    return str(key["S"]) if "S" in key else None
