"""How each resource of a stage is emptied and removed. What belongs to the stage, `things` decides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from botocore.exceptions import ClientError

from dualtrack_stack.cli.aws.account import AwsRefusal, plainly
from dualtrack_stack.cli.aws.facts import tags_of
from dualtrack_stack.cli.aws.things import GONE, KEY_DAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from dualtrack_stack.cli.aws.account import AwsAccount
    from dualtrack_stack.cli.aws.facts import StackResource
    from dualtrack_stack.cli.aws.things import Thing, ThingKind

    Remover = Callable[[AwsAccount, str], None]


def claim_log_groups(account: AwsAccount, stage: str, names: Collection[str]) -> None:
    """Tag log groups that services have made for a stack, while the stack still names them: if `down` is interrupted
    after the stack is gone, the next one finds them."""
    client = account.client("logs")
    with plainly():
        for name in names:
            for group in client.describe_log_groups(logGroupNamePrefix=name, limit=1)["logGroups"]:
                if group["logGroupName"] == name:
                    arn = group["arn"].removesuffix(":*")
                    client.tag_resource(resourceArn=arn, tags=dict(tags_of(stage)))


def empty_for(account: AwsAccount, resources: Iterable[StackResource]) -> None:
    """Empty what goes with a stack, which cannot delete a bucket that holds something."""
    with plainly():
        for resource in resources:
            if resource.kind in _EMPTIED and not resource.is_kept:
                _unless_gone(_EMPTIED[resource.kind], account, resource.id)


def release(account: AwsAccount, thing: Thing) -> None:
    """Take off what protects it from deletion; it can be put back."""
    if thing.kind in _RELEASED:
        with plainly():
            _unless_gone(_RELEASED[thing.kind], account, thing.id)


def remove(account: AwsAccount, thing: Thing) -> None:
    """Remove a resource; a missing one is no error. Stacks are not removed here, because that takes time."""
    with plainly():
        _unless_gone(_REMOVED[thing.kind], account, thing.id)


def _unless_gone(remover: Remover, account: AwsAccount, name: str) -> None:
    try:
        remover(account, name)
    except ClientError as error:
        if error.response["Error"].get("Code") not in GONE:
            raise


def _empty_bucket(account: AwsAccount, bucket: str) -> None:
    """Delete all versions and delete markers."""
    client = account.client("s3")
    for page in client.get_paginator("list_object_versions").paginate(Bucket=bucket):
        listed = [*page.get("Versions", ()), *page.get("DeleteMarkers", ())]
        objects = [{"Key": version["Key"], "VersionId": version["VersionId"]} for version in listed]
        if objects:
            answer = client.delete_objects(Bucket=bucket, Delete={"Objects": objects, "Quiet": True})
            _refused(bucket, answer.get("Errors", ()))


def _refused(bucket: str, errors: Iterable[Mapping[str, str]]) -> None:
    for error in errors:
        raise AwsRefusal(f"S3 keeps {error['Key']} in {bucket}: {error.get('Message') or error['Code']}")


def _empty_vector_bucket(account: AwsAccount, bucket: str) -> None:
    client = account.client("s3vectors")
    pages = client.get_paginator("list_indexes").paginate(vectorBucketArn=bucket)
    for index in [index for page in pages for index in page["indexes"]]:
        client.delete_index(indexArn=index["indexArn"])


def _release_table(account: AwsAccount, name: str) -> None:
    client = account.client("dynamodb")
    if client.describe_table(TableName=name)["Table"].get("DeletionProtectionEnabled"):
        client.update_table(TableName=name, DeletionProtectionEnabled=False)


def _release_pool(account: AwsAccount, pool: str) -> None:
    """Remove a pool's sign-in page and its protection.

    Only the protection is sent: UpdateUserPool refuses some of what DescribeUserPool returns, and sets everything
    else to its defaults. The pool is deleted next, and its clients are gone with the stack: nobody can sign in or up.
    """
    client = account.client("cognito-idp")
    described = client.describe_user_pool(UserPoolId=pool)["UserPool"]
    for kind in ("Domain", "CustomDomain"):
        if domain := described.get(kind):
            client.delete_user_pool_domain(UserPoolId=pool, Domain=domain)
    if described.get("DeletionProtection") == "ACTIVE":
        client.update_user_pool(UserPoolId=pool, DeletionProtection="INACTIVE")


def _remove_table(account: AwsAccount, name: str) -> None:
    account.client("dynamodb").delete_table(TableName=name)


def _remove_bucket(account: AwsAccount, name: str) -> None:
    _empty_bucket(account, name)
    account.client("s3").delete_bucket(Bucket=name)


def _remove_vector_bucket(account: AwsAccount, arn: str) -> None:
    _empty_vector_bucket(account, arn)
    account.client("s3vectors").delete_vector_bucket(vectorBucketArn=arn)


def _remove_pool(account: AwsAccount, pool: str) -> None:
    account.client("cognito-idp").delete_user_pool(UserPoolId=pool)


def _remove_key(account: AwsAccount, key: str) -> None:
    account.client("kms").schedule_key_deletion(KeyId=key, PendingWindowInDays=KEY_DAYS)


def _remove_parameter(account: AwsAccount, name: str) -> None:
    account.client("ssm").delete_parameter(Name=name)


def _remove_secret(account: AwsAccount, arn: str) -> None:
    # its name can be used again at once
    account.client("secretsmanager").delete_secret(SecretId=arn, ForceDeleteWithoutRecovery=True)


def _remove_log_group(account: AwsAccount, name: str) -> None:
    account.client("logs").delete_log_group(logGroupName=name)


_EMPTIED: Final[Mapping[str, Remover]] = {
    "AWS::S3::Bucket": _empty_bucket,
    "AWS::S3Vectors::VectorBucket": _empty_vector_bucket,
}
_RELEASED: Final[Mapping[ThingKind, Remover]] = {"table": _release_table, "user pool": _release_pool}
_REMOVED: Final[Mapping[ThingKind, Remover]] = {
    "table": _remove_table,
    "bucket": _remove_bucket,
    "vector bucket": _remove_vector_bucket,
    "user pool": _remove_pool,
    "key": _remove_key,
    "parameter": _remove_parameter,
    "secret": _remove_secret,
    "log group": _remove_log_group,
}
