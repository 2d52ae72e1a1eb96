"""The resources of a stage in one region of an account. A stage's are those that carry its tags; what only has such a
name is listed apart, for a person to decide.
"""

from __future__ import annotations

import contextlib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from botocore.exceptions import ClientError, EndpointConnectionError

from dualtrack_stack.cli.aws.account import plainly
from dualtrack_stack.cli.aws.facts import STACKS, is_tagged, prefix, tags_of

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence

    from dualtrack_stack.cli.aws.account import AwsAccount
    from dualtrack_stack.cli.aws.facts import StackResource

    Tags = Mapping[str, str]

ThingKind = Literal[
    "stack", "log group", "parameter", "secret", "user pool", "key", "vector bucket", "bucket", "table"
]
ORDER: Final[tuple[ThingKind, ...]] = (
    "stack", "log group", "parameter", "secret", "user pool", "key", "vector bucket", "bucket", "table",
)  # fmt: skip
"""Stacks first, because resources in use cannot be deleted; conversations last, so that whatever AWS refuses is
refused while they are still there."""
STACK_ORDER: Final = tuple(reversed(STACKS))
"""A stack is deleted before the stacks it imports from."""
KEY_DAYS: Final = 7
"""KMS's shortest time before a key is deleted; until then the deletion can be cancelled."""
GONE: Final = frozenset(
    {
        "ResourceNotFoundException",
        "NoSuchBucket",
        "ParameterNotFound",
        "NotFoundException",
        "InvalidResourceId",
        "KMSInvalidStateException",
    }
)
"""How services say that something does not exist; of a key, that its deletion is scheduled."""


@dataclass(frozen=True, slots=True)
class Thing:
    """A resource: ``id`` for the API, ``name`` for display. ``is_tagged``: with the stage's tags."""

    kind: ThingKind
    id: str
    name: str
    is_tagged: bool = True


def in_order(things: Iterable[Thing]) -> tuple[Thing, ...]:
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


def log_groups_of(resources: Sequence[StackResource]) -> frozenset[str]:
    """The names of all log groups that a stack's resources write to, also of those that Lambda and API Gateway make
    themselves, which carry no tag."""
    of = {kind: [resource.id for resource in resources if resource.kind == kind] for kind in _WRITERS}
    return frozenset(
        [
            *of["AWS::Logs::LogGroup"],
            *(f"/aws/lambda/{name}" for name in of["AWS::Lambda::Function"]),
            *(
                f"API-Gateway-Execution-Logs_{api}/{name}"
                for api in of["AWS::ApiGateway::RestApi"]
                for name in of["AWS::ApiGateway::Stage"]
            ),
        ]
    )


_WRITERS: Final = (
    "AWS::Logs::LogGroup",
    "AWS::Lambda::Function",
    "AWS::ApiGateway::RestApi",
    "AWS::ApiGateway::Stage",
)


def things_of(account: AwsAccount, stage: str, log_groups: Collection[str] = ()) -> tuple[Thing, ...]:
    """All resources of a stage that are in the account and region now. ``log_groups``: exact names of those that are
    the stage's without a tag."""
    with plainly():
        found = [
            Thing(kind, id_, name, is_tagged(tags, stage))
            for kind, look in _FINDERS.items()
            for id_, name, tags in look(account, stage)
        ]
        found += _log_groups(account, stage, log_groups)
    return in_order(found)


def _stacks(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    for stack in account.stacks(stage).values():
        # a change set that was never executed: such a stack has no resources yet, and its tags come with them
        is_empty = stack.status == "REVIEW_IN_PROGRESS"
        yield stack.name, stack.name, tags_of(stage) if is_empty else stack.tags


def _tables(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    client = account.client("dynamodb")
    for page in client.get_paginator("list_tables").paginate():
        for name in page["TableNames"]:
            if is_of_stage(name, stage):
                with _gone():
                    table = client.describe_table(TableName=name)["Table"]
                    if table["TableStatus"] != "DELETING":
                        tags = client.get_paginator("list_tags_of_resource").paginate(
                            ResourceArn=table["TableArn"]
                        )
                        yield name, name, _pairs(tag for part in tags for tag in part["Tags"])


def _buckets(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    """S3 lists the buckets of all regions; only this one's are the stage's."""
    client = account.client("s3")
    pages = client.get_paginator("list_buckets").paginate(
        BucketRegion=account.region, Prefix=f"{prefix(stage)}-"
    )
    for page in pages:
        for bucket in page.get("Buckets", ()):
            if bucket.get("BucketRegion") == account.region and is_of_stage(bucket["Name"], stage):
                with _gone():
                    yield bucket["Name"], bucket["Name"], _bucket_tags(client, bucket["Name"])


def _bucket_tags(client: Any, bucket: str) -> Tags:
    try:
        return _pairs(client.get_bucket_tagging(Bucket=bucket)["TagSet"])
    except ClientError as error:
        if error.response["Error"].get("Code") != "NoSuchTagSet":
            raise
        return {}


def _vector_buckets(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    client = account.client("s3vectors")
    with contextlib.suppress(EndpointConnectionError):  # a region that has no S3 Vectors
        for page in client.get_paginator("list_vector_buckets").paginate(prefix=f"{prefix(stage)}-"):
            for bucket in page["vectorBuckets"]:
                if is_of_stage(bucket["vectorBucketName"], stage):
                    with _gone():
                        arn = bucket["vectorBucketArn"]
                        tags = client.list_tags_for_resource(resourceArn=arn)["tags"]
                        yield arn, bucket["vectorBucketName"], tags


def _pools(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    client = account.client("cognito-idp")
    for page in client.get_paginator("list_user_pools").paginate(PaginationConfig={"PageSize": 60}):
        for pool in page["UserPools"]:
            if pool["Name"] == f"{prefix(stage)}-users":
                with _gone():
                    described = client.describe_user_pool(UserPoolId=pool["Id"])["UserPool"]
                    yield pool["Id"], f"{pool['Name']} ({pool['Id']})", described.get("UserPoolTags", {})


def _keys(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    """Keys have no names: those with the tags, and no others."""
    client = account.client("kms")
    for page in client.get_paginator("list_keys").paginate():
        for key in page["Keys"]:
            with contextlib.suppress(ClientError):  # a key whose policy does not let us read it is not ours
                tags = client.list_resource_tags(KeyId=key["KeyId"])["Tags"]
                known = {tag["TagKey"]: tag["TagValue"] for tag in tags}
                if is_tagged(known, stage) and _is_kept(client, key["KeyId"]):
                    yield key["KeyId"], f"{key['KeyId']} (deleted after {KEY_DAYS} days)", known


def _is_kept(client: Any, key: str) -> bool:
    return bool(client.describe_key(KeyId=key)["KeyMetadata"]["KeyState"] != "PendingDeletion")


def _parameters(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    client = account.client("ssm")
    for key in account.keys(stage):
        name = f"/{prefix(stage)}/{key}"
        with _gone():
            answer = client.list_tags_for_resource(ResourceType="Parameter", ResourceId=name)
            yield name, name, _pairs(answer["TagList"])


def _secrets(account: AwsAccount, stage: str) -> Iterator[tuple[str, str, Tags]]:
    """For instance of a federated provider, if it was named after the stage."""
    client = account.client("secretsmanager")
    for page in client.get_paginator("list_secrets").paginate():
        for secret in page["SecretList"]:
            if secret["Name"].startswith(f"{prefix(stage)}/"):
                yield secret["ARN"], secret["Name"], _pairs(secret.get("Tags", ()))


def _log_groups(account: AwsAccount, stage: str, exact: Collection[str]) -> Iterator[Thing]:
    client = account.client("logs")
    beginnings = (f"{prefix(stage)}-", f"/aws/lambda/{prefix(stage)}-")
    groups = {group["logGroupName"]: group for name in beginnings for group in _begin_with(client, name)}
    for name in set(exact) - set(groups):
        groups.update((name, group) for group in _begin_with(client, name) if group["logGroupName"] == name)
    for name, group in groups.items():
        with _gone():
            tags = client.list_tags_for_resource(resourceArn=group["arn"].removesuffix(":*"))["tags"]
            yield Thing("log group", name, name, name in exact or is_tagged(tags, stage))


def _begin_with(client: Any, beginning: str) -> Iterator[Mapping[str, Any]]:
    for page in client.get_paginator("describe_log_groups").paginate(logGroupNamePrefix=beginning):
        yield from page["logGroups"]


def _pairs(tags: Iterable[Mapping[str, str]]) -> Tags:
    return {tag["Key"]: tag["Value"] for tag in tags}


@contextlib.contextmanager
def _gone() -> Iterator[None]:
    """What is deleted while it is looked at is no longer listed."""
    try:
        yield
    except ClientError as error:
        if error.response["Error"].get("Code") not in GONE:
            raise


_FINDERS: Final[Mapping[ThingKind, Callable[[AwsAccount, str], Iterator[tuple[str, str, Tags]]]]] = {
    "stack": _stacks,
    "table": _tables,
    "bucket": _buckets,
    "vector bucket": _vector_buckets,
    "user pool": _pools,
    "key": _keys,
    "parameter": _parameters,
    "secret": _secrets,
}
