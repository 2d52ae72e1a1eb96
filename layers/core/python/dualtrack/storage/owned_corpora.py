"""Corpora that belong to a user, or to the stage (owner ``""``), in the history table beside their versions.

pk CORPUS#OF#<owner>   sk ID#<corpus>     a corpus: its kind, name and description
                       sk NAME#<folded>   the corpus of this name: no two have it
                       sk COUNT           how many there are: a limit that two requests at once keep

A job is created in one transaction with a check that its corpus is there, and a corpus is dropped in one with the note
to the sweep that deletes what it leaves (`dualtrack.corpora.owned`): so nothing comes back.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

from dualtrack.codec import APART, decode, encode, stored
from dualtrack.errors import ApiError, not_found
from dualtrack.storage.corpora import partition
from dualtrack.storage.dynamo import (
    ConditionFailed,
    check,
    delete,
    delete_partition,
    get,
    one_less,
    one_more,
    put,
    put_absent,
    query,
    transact,
)
from dualtrack.text import folded_name

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_dynamodb.client import DynamoDBClient

    from dualtrack.storage.dynamo import Action


@stored
@dataclass(frozen=True, slots=True)
class OwnedCorpus:
    """One of many of its kind. ``created_at``: epoch seconds."""

    corpus: Annotated[str, APART]
    owner: Annotated[str, APART]
    kind: str
    name: str
    created_at: int
    description: str = ""


@dataclass(frozen=True, slots=True)
class OwnedCorpora:
    """Reads and writes."""

    client: DynamoDBClient
    table: str

    def of(self, owner: str, kind: str) -> Sequence[OwnedCorpus]:
        """The owner's, the oldest first."""
        items = query(self.client, self.table, _partition(owner), prefix="ID#")
        return [found for item in items if (found := _corpus_of(item, owner)).kind == kind]

    def find(self, owner: str, corpus: str) -> OwnedCorpus | None:
        """The owner's corpus, or None."""
        item = get(self.client, self.table, _key(owner, f"ID#{corpus}"))
        return _corpus_of(item, owner) if item else None

    def named(self, owner: str, name: str) -> str | None:
        """The id of the owner's corpus with a name that counts as this one."""
        item = get(self.client, self.table, _name_key(owner, name))
        return item["corpus"] if item else None

    def create(self, new: OwnedCorpus, most: int, also: Sequence[Action] = ()) -> None:
        """Raises 400 for one too many, 409 for a name that is taken, `ConditionFailed` for ``also``."""
        actions = [
            one_more("count", self.table, _key(new.owner, "COUNT"), "corpora", most),
            put_absent("name", self.table, {**_name_key(new.owner, new.name), "corpus": new.corpus}),
            put_absent("corpus", self.table, _item(new)),
            *also,
        ]
        try:
            transact(self.client, actions)
        except ConditionFailed as lost:
            if "count" in lost.items:
                raise ApiError("invalid_request", f"There are {most} already: delete one first.") from None
            if "name" in lost.items:
                raise _taken(new.name) from None
            raise

    def change(self, before: OwnedCorpus, after: OwnedCorpus) -> None:
        """Raises 404 if it was dropped, or changed meanwhile, 409 for a name that is taken."""
        unchanged, values = "#name = :before", {":before": before.name}
        actions = [put("corpus", self.table, _item(after), unchanged, values, {"#name": "name"})]
        if folded_name(before.name) != folded_name(after.name):
            actions += [
                put_absent(
                    "name", self.table, {**_name_key(after.owner, after.name), "corpus": after.corpus}
                ),
                delete("before", self.table, _name_key(before.owner, before.name)),
            ]
        try:
            transact(self.client, actions)
        except ConditionFailed as lost:
            raise (
                _taken(after.name) if "name" in lost.items else not_found("It was changed meanwhile.")
            ) from None

    def is_there(self, owned: OwnedCorpus) -> Action:
        """The condition under which a job of it is created; named ``corpus``."""
        key = _key(owned.owner, f"ID#{owned.corpus}")
        return check("corpus", self.table, key, "attribute_exists(pk)")

    def drop(self, owned: OwnedCorpus, noted: Action) -> bool:
        """Remove it, with ``noted``, which tells the sweep; false if it was gone."""
        name, key = _name_key(owned.owner, owned.name), _key(owned.owner, f"ID#{owned.corpus}")
        same, values = "attribute_exists(pk) AND #name = :name", {":name": owned.name}
        actions = [
            delete("corpus", self.table, key, same, values, {"#name": "name"}),
            delete("name", self.table, name),
            one_less("count", self.table, _key(owned.owner, "COUNT"), "corpora"),
            noted,
        ]
        try:
            transact(self.client, actions)
        except ConditionFailed:
            return False
        return True

    def every(self, owner: str) -> Sequence[OwnedCorpus]:
        """The owner's, of all kinds."""
        return [
            _corpus_of(item, owner)
            for item in query(self.client, self.table, _partition(owner), prefix="ID#")
        ]

    def forget(self, owner: str) -> None:
        """Delete what is left of an owner without corpora."""
        delete_partition(self.client, self.table, _partition(owner))


def _taken(name: str) -> Exception:
    return ApiError(
        "name_taken", f"There is one named {name!r} already: choose another name, or use that one."
    )


def _partition(owner: str) -> str:
    return partition(f"OF#{owner}")


def _key(owner: str, sort: str) -> dict[str, str]:
    return {"pk": _partition(owner), "sk": sort}


def _name_key(owner: str, name: str) -> dict[str, str]:
    return _key(owner, f"NAME#{folded_name(name)}")


def _item(owned: OwnedCorpus) -> dict[str, object]:
    return {**_key(owned.owner, f"ID#{owned.corpus}"), **encode(owned)}


def _corpus_of(item: dict[str, object], owner: str) -> OwnedCorpus:
    return decode(OwnedCorpus, item, corpus=str(item["sk"]).removeprefix("ID#"), owner=owner)
