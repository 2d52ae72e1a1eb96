"""What a deletion loses: the conversations, users, objects and bytes of a stage, counted to a bound."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dualtrack.storage.conversations import LISTED_INDEX

from dualtrack_stack.cli.aws.account import plainly

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack_stack.cli.aws.account import AwsAccount
    from dualtrack_stack.cli.aws.things import Thing, ThingKind

_PAGES: Final = 20
"""Of a listing: 20,000 objects, or some 150,000 conversations (a few cents at most)."""
_UNITS: Final = ("bytes", "KB", "MB", "GB", "TB")


def what_is_in(account: AwsAccount, thing: Thing) -> str:
    """What a resource holds, in words; empty for those whose content can be made again."""
    with plainly():
        return _COUNTERS[thing.kind](account, thing.id) if thing.kind in _COUNTERS else ""


def size(count: float) -> str:
    """A number of bytes, ``3.2 MB``."""
    unit = 0
    while count >= 1000 and unit < len(_UNITS) - 1:
        count, unit = count / 1000, unit + 1
    return f"{count:,.0f} {_UNITS[unit]}" if unit == 0 else f"{count:,.1f} {_UNITS[unit]}"


def counted(what: str, count: int, *, is_all: bool) -> str:
    """``objects: at least 20,000``."""
    return f"{what}: {'' if is_all else 'at least '}{count:,}"


def _in_table(account: AwsAccount, name: str) -> str:
    client = account.client("dynamodb")
    table = client.describe_table(TableName=name)["Table"]
    about = f"items: {table['ItemCount']:,}, {size(table['TableSizeBytes'])} (some hours ago)"
    if LISTED_INDEX not in [index["IndexName"] for index in table.get("GlobalSecondaryIndexes", ())]:
        return about
    return f"{_conversations(client, name)}; {about}"


def _conversations(client: Any, table: str) -> str:
    pages = client.get_paginator("scan").paginate(TableName=table, IndexName=LISTED_INDEX, Select="COUNT")
    count, is_all = 0, True
    for number, page in enumerate(pages, 1):
        count += page["Count"]
        if number == _PAGES:
            is_all = "LastEvaluatedKey" not in page
            break
    return counted("conversations", count, is_all=is_all)


def _in_bucket(account: AwsAccount, name: str) -> str:
    pages = account.client("s3").get_paginator("list_object_versions").paginate(Bucket=name)
    count, volume, is_all = 0, 0, True
    for number, page in enumerate(pages, 1):
        versions = page.get("Versions", ())
        count += len(versions)
        volume += sum(version["Size"] for version in versions)
        if number == _PAGES:
            is_all = not page.get("IsTruncated")
            break
    return f"{counted('objects and versions', count, is_all=is_all)}, {size(volume)}"


def _in_vector_bucket(account: AwsAccount, arn: str) -> str:
    page = account.client("s3vectors").list_indexes(vectorBucketArn=arn)
    return counted("indexes", len(page["indexes"]), is_all="nextToken" not in page)


def _in_pool(account: AwsAccount, pool: str) -> str:
    described = account.client("cognito-idp").describe_user_pool(UserPoolId=pool)["UserPool"]
    return f"users: about {described.get('EstimatedNumberOfUsers', 0):,}"


_COUNTERS: Final[Mapping[ThingKind, Callable[[AwsAccount, str], str]]] = {
    "table": _in_table,
    "bucket": _in_bucket,
    "vector bucket": _in_vector_bucket,
    "user pool": _in_pool,
}
