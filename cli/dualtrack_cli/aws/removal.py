"""The resources of a stage in an account, and how each is removed."""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import ClientError

from dualtrack_cli.aws.account import plainly
from dualtrack_cli.aws.facts import STACKS, prefix

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack_cli.aws.account import Account

Kind = Literal["stack", "table", "bucket", "user pool", "key", "parameter", "secret", "log group"]
ORDER: Final[tuple[Kind, ...]] = (
    "stack", "table", "bucket", "user pool", "key", "parameter", "secret", "log group",
)  # fmt: skip
"""Stacks first, because resources in use cannot be deleted; log groups last, because functions write until
they are deleted."""
STACK_ORDER: Final = tuple(reversed(STACKS))
"""A stack is deleted before the stacks it imports from."""
KEY_DAYS: Final = 7
"""KMS's shortest time before a key is deleted; until then the deletion can be cancelled."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A resource to remove: ``id`` for the API, ``name`` for display."""

    kind: Kind
    id: str
    name: str


def in_order(things: Sequence[Thing]) -> tuple[Thing, ...]:
    """In the order of removal."""

    def rank(thing: Thing) -> tuple[int, int, str]:
        last = thing.id.rsplit("-", 1)[-1]
        stack = STACK_ORDER.index(last) if thing.kind == "stack" and last in STACK_ORDER else 0
        return ORDER.index(thing.kind), stack, thing.name

    return tuple(sorted(things, key=rank))


def is_of_stage(name: str, stage: str) -> bool:
    """Whether CloudFormation made this name for a resource of the stage: stack, logical id, random part. A
    table or bucket that a user has named ``dualtrack-staging-notes`` does not match.
    """
    pattern = rf"{re.escape(prefix(stage))}-({'|'.join(STACKS)})-[a-z0-9]+-[a-z0-9]{{8,}}"
    return re.fullmatch(pattern, name.lower()) is not None


def is_tagged(tags: Mapping[str, str], stage: str) -> bool:
    """Whether the app's tags say that it belongs to the stage."""
    return tags.get("application") == "dualtrack" and tags.get("stage") == stage


def things_of(account: Account, stage: str, api_id: str = "") -> tuple[Thing, ...]:
    """All resources of a stage that are in the account now. ``api_id``: of the REST API, for its own log
    group."""
    with plainly():
        things = [Thing("stack", stack.name, stack.name) for stack in account.stacks(stage).values()]
        for look in (_tables, _buckets, _pools, _keys, _parameters, _secrets):
            things += look(account, stage)
        things += _log_groups(account, stage, api_id)
    return in_order(things)


def _tables(account: Account, stage: str) -> Iterator[Thing]:
    for page in account.client("dynamodb").get_paginator("list_tables").paginate():
        yield from (Thing("table", name, name) for name in page["TableNames"] if is_of_stage(name, stage))


def _buckets(account: Account, stage: str) -> Iterator[Thing]:
    names = [bucket["Name"] for bucket in account.client("s3").list_buckets()["Buckets"]]
    yield from (Thing("bucket", name, name) for name in names if is_of_stage(name, stage))


def _pools(account: Account, stage: str) -> Iterator[Thing]:
    client = account.client("cognito-idp")
    for page in client.get_paginator("list_user_pools").paginate(PaginationConfig={"PageSize": 60}):
        for pool in page["UserPools"]:
            if pool["Name"] == f"{prefix(stage)}-users":
                yield Thing("user pool", pool["Id"], f"{pool['Name']} ({pool['Id']})")


def _keys(account: Account, stage: str) -> Iterator[Thing]:
    client = account.client("kms")
    for page in client.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            with contextlib.suppress(ClientError):  # a key whose policy does not let us read it is not ours
                tags = client.list_resource_tags(KeyId=key["KeyId"])["Tags"]
                known = {tag["TagKey"]: tag["TagValue"] for tag in tags}
                if is_tagged(known, stage) and _is_kept(client, key["KeyId"]):
                    yield Thing("key", key["KeyId"], f"{key['KeyId']} (deleted after {KEY_DAYS} days)")


def _is_kept(client: Any, key: str) -> bool:
    return bool(client.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] != "PendingDeletion")


def _parameters(account: Account, stage: str) -> Iterator[Thing]:
    names = account.keys(stage)
    yield from (Thing("parameter", f"/{prefix(stage)}/{name}", f"/{prefix(stage)}/{name}") for name in names)


def _secrets(account: Account, stage: str) -> Iterator[Thing]:
    """Those of release 1, and one of a federated provider that was named after the stage."""
    client = account.client("secretsmanager")
    for page in client.get_paginator("list_secrets").paginate():
        for secret in page["SecretList"]:
            if secret["Name"].startswith(f"{prefix(stage)}/"):
                yield Thing("secret", secret["ARN"], secret["Name"])


def _log_groups(account: Account, stage: str, api_id: str) -> Iterator[Thing]:
    client = account.client("logs")
    beginnings = [f"{prefix(stage)}-", f"/aws/lambda/{prefix(stage)}-"]
    beginnings += [f"API-Gateway-Execution-Logs_{api_id}/"] if api_id else []
    for beginning in beginnings:
        for page in client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=beginning):
            yield from (
                Thing("log group", group["logGroupName"], group["logGroupName"])
                for group in page["logGroups"]
            )


def empty_buckets(account: Account, stage: str) -> None:
    """Empty the bucket first: a stack with a non-empty bucket cannot be deleted."""
    with plainly():
        for bucket in _buckets(account, stage):
            _empty(account, bucket.id)


def _empty(account: Account, bucket: str) -> None:
    client = account.client("s3")
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        listed = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        objects = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in listed]
        if objects:
            client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})


def remove(account: Account, thing: Thing) -> None:
    """Remove a resource; a missing one is no error. Stacks are not removed here, because that takes time."""
    with plainly():
        try:
            _REMOVERS[thing.kind](account, thing.id)
        except ClientError as error:
            if error.response["Error"].get("Code") not in _GONE:
                raise


_GONE: Final = frozenset(
    {
        "ResourceNotFoundException",
        "NoSuchBucket",
        "ParameterNotFound",
        "NotFoundException",
        "KMSInvalidStateException",
    }
)


def _remove_table(account: Account, name: str) -> None:
    client = account.client("dynamodb")
    client.update_table(TableName=name, DeletionProtectionEnabled=False)
    client.delete_table(TableName=name)


def _remove_bucket(account: Account, name: str) -> None:
    _empty(account, name)
    account.client("s3").delete_bucket(Bucket=name)


def _remove_pool(account: Account, pool: str) -> None:
    """Remove a pool's deletion protection. An update resets every property that is left out, so all are
    passed again."""
    client = account.client("cognito-idp")
    description = client.describe_user_pool(UserPoolId=pool)["UserPool"]
    if description.get("DeletionProtection") == "ACTIVE":
        kept = {name: description[name] for name in _POOL_SETTINGS if description.get(name)}
        client.update_user_pool(UserPoolId=pool, **kept, DeletionProtection="INACTIVE")
    if domain := description.get("Domain"):
        client.delete_user_pool_domain(UserPoolId=pool, Domain=domain)
    client.delete_user_pool(UserPoolId=pool)


_POOL_SETTINGS: Final = (
    "MfaConfiguration",
    "AdminCreateUserConfig",
    "AccountRecoverySetting",
    "EmailConfiguration",
)


def _remove_key(account: Account, key: str) -> None:
    account.client("kms").schedule_key_deletion(KeyId=key, PendingWindowInDays=KEY_DAYS)


def _remove_parameter(account: Account, name: str) -> None:
    account.client("ssm").delete_parameter(Name=name)


def _remove_secret(account: Account, arn: str) -> None:
    # its name can be used again at once
    account.client("secretsmanager").delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


def _remove_log_group(account: Account, name: str) -> None:
    account.client("logs").delete_log_group(logGroupName=name)


_REMOVERS: Final[Mapping[Kind, Callable[[Account, str], None]]] = {
    "table": _remove_table,
    "bucket": _remove_bucket,
    "user pool": _remove_pool,
    "key": _remove_key,
    "parameter": _remove_parameter,
    "secret": _remove_secret,
    "log group": _remove_log_group,
}
