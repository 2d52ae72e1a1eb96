"""The AWS account: every call to it that the commands make, and no decisions.

Clients take credentials, region and ``AWS_ENDPOINT_URL`` as every SDK does. An AWS error becomes one line
(`AwsRefusal`) that names the call and, if known, the remedy.
"""

from __future__ import annotations

import json
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, NoRegionError

from dualtrack_stack.cli.aws.facts import STACKS, Caller, PoolUser, Stack, StackResource, prefix, tags_of
from dualtrack_stack.cli.client import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

BOOTSTRAP_VERSION: Final = "/cdk-bootstrap/hnb659fds/version"
"""Where the CDK's bootstrap stack writes its version (the default qualifier)."""
ADMIN_GROUP: Final = "admin"
_NO_STACK: Final = "does not exist"
_EXPIRED: Final = frozenset(
    {"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "RequestExpired"}
)
_DENIED: Final = frozenset({"AccessDenied", "AccessDeniedException", "UnauthorizedOperation"})


class AwsRefusal(CommandFailed):
    """AWS refused a call; the message says what to do."""


@contextmanager
def plainly() -> Iterator[None]:
    """Errors of the SDK as an `AwsRefusal`."""
    try:
        yield
    except NoCredentialsError:
        raise AwsRefusal(
            "There are no AWS credentials: run `aws configure sso` or `aws login`, or set AWS_PROFILE."
        ) from None
    except NoRegionError:
        raise AwsRefusal("There is no AWS region: give --region or set AWS_REGION.") from None
    except ClientError as error:
        raise AwsRefusal(_said(error)) from error
    except BotoCoreError as error:
        raise AwsRefusal(f"AWS cannot be reached: {error}") from error


def _said(error: ClientError) -> str:
    code, message = error.response["Error"].get("Code", ""), error.response["Error"].get("Message", "")
    text = f"AWS refused {error.operation_name}: {message or code}"
    if code in _EXPIRED:
        return f"{text}. The credentials have expired or are unknown: sign in again."
    if code in _DENIED:
        return f"{text}. These credentials lack the permission: use others or extend their policy."
    return text


class AwsAccount:
    """One account in one region."""

    def __init__(self, region: str | None = None) -> None:
        with plainly():
            self._session: Any = boto3.Session(region_name=region or None)
        self.region = self._session.region_name or ""

    def client(self, service: str) -> Any:
        """Return a client of a service."""
        config = Config(
            retries={"mode": "standard", "max_attempts": 5},
            connect_timeout=5,
            s3={"addressing_style": "auto"},
        )
        return self._session.client(service, config=config)

    @cached_property
    def _cloudformation(self) -> Any:
        return self.client("cloudformation")

    @cached_property
    def _cognito(self) -> Any:
        return self.client("cognito-idp")

    def caller(self) -> Caller:
        """The account and the caller."""
        with plainly():
            answer = self.client("sts").get_caller_identity()
        return Caller(answer["Account"], answer["Arn"])

    def concurrency(self) -> int:
        """Lambda's limit of concurrent executions in this region, for all functions together."""
        with plainly():
            limits = self.client("lambda").get_account_settings()["AccountLimit"]
        return int(limits["ConcurrentExecutions"])

    def bootstrap(self) -> int | None:
        """The version of the CDK's bootstrap; None if there is none."""
        ssm = self.client("ssm")
        with plainly():
            try:
                return int(ssm.get_parameter(Name=BOOTSTRAP_VERSION)["Parameter"]["Value"])
            except ssm.exceptions.ParameterNotFound:
                return None

    def stack(self, name: str) -> Stack | None:
        """A stack with the reason for its latest failure; None if it does not exist."""
        with plainly():
            try:
                stack = self._cloudformation.describe_stacks(StackName=name)["Stacks"][0]
            except ClientError as error:
                if _NO_STACK in error.response["Error"].get("Message", ""):
                    return None
                raise
            status = stack["StackStatus"]
            if status == "DELETE_COMPLETE":
                return None
            reason = self._reason(name) if "FAILED" in status or "ROLLBACK" in status else ""
        outputs = {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}
        tags = {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}
        return Stack(name, status, reason, outputs, tags)

    def stacks(self, stage: str) -> Mapping[str, Stack]:
        """The existing stacks of a stage, by their names in `STACKS`."""
        existing = {name: self.stack(f"{prefix(stage)}-{name}") for name in STACKS}
        return {name: stack for name, stack in existing.items() if stack is not None}

    def _reason(self, name: str) -> str:
        """The oldest failure among the newest events: the later ones follow from it."""
        events = self._cloudformation.describe_stack_events(StackName=name)["StackEvents"][:100]
        failed = [event for event in events if event["ResourceStatus"].endswith("_FAILED")]
        causes = [
            event for event in failed if "cancelled" not in event.get("ResourceStatusReason", "").lower()
        ]
        if not causes:
            return ""
        return f"{causes[-1]['LogicalResourceId']}: {causes[-1].get('ResourceStatusReason', '')}"

    def recorded(self, stage: str) -> Mapping[str, Any] | None:
        """The settings that the last deployment recorded (`dualtrack_stack.settings.last_deployed`)."""
        from dualtrack_stack.settings import BadSettings, last_deployed  # noqa: PLC0415 - an installed wheel has none

        try:
            return last_deployed(self.client("ssm"), stage)
        except BadSettings as problem:
            raise AwsRefusal(str(problem)) from problem

    def template(self, name: str) -> Mapping[str, Any]:
        """The template of a stack."""
        with plainly():
            body = self._cloudformation.get_template(StackName=name)["TemplateBody"]
        template: Mapping[str, Any] = body if isinstance(body, dict) else json.loads(body)
        return template

    def versions_in_network(self, function: str) -> frozenset[int]:
        """The published versions of a function that are in a VPC: each keeps network interfaces there."""
        with plainly():
            pages = (
                self.client("lambda")
                .get_paginator("list_versions_by_function")
                .paginate(FunctionName=function)
            )
            versions = [version for page in pages for version in page["Versions"]]
        return frozenset(
            int(version["Version"])
            for version in versions
            if version["Version"] != "$LATEST" and version.get("VpcConfig", {}).get("VpcId")
        )

    def resources(self, stack: str) -> tuple[StackResource, ...]:
        """The resources of a stack, also those that a deletion in progress has removed; none if it does not exist."""
        with plainly():
            try:
                pages = self._cloudformation.get_paginator("list_stack_resources").paginate(StackName=stack)
                listed = [resource for page in pages for resource in page["StackResourceSummaries"]]
                policies = self._deletion_policies(stack) if listed else {}
            except ClientError as error:
                if _NO_STACK in error.response["Error"].get("Message", ""):
                    return ()
                raise
        return tuple(
            StackResource(
                resource["ResourceType"],
                resource["PhysicalResourceId"],
                resource["ResourceStatus"],
                policies.get(resource["LogicalResourceId"]) != "Delete",
            )
            for resource in listed
            if resource.get("PhysicalResourceId")
        )

    def _deletion_policies(self, stack: str) -> Mapping[str, str]:
        template = self._cloudformation.get_template(StackName=stack)["TemplateBody"]
        resources = template.get("Resources", {}).items()
        return {name: resource.get("DeletionPolicy", "Delete") for name, resource in resources}

    def delete_stack(self, name: str) -> None:
        """Start deleting a stack."""
        with plainly():
            self._cloudformation.delete_stack(StackName=name)

    def keys(self, stage: str) -> frozenset[str]:
        """The existing parameters of a stage by their names without its prefix: ``anthropic``, ``tools/NAME``."""
        with plainly():
            pages = (
                self.client("ssm")
                .get_paginator("describe_parameters")
                .paginate(
                    ParameterFilters=[
                        {"Key": "Name", "Option": "BeginsWith", "Values": [f"/{prefix(stage)}/"]}
                    ]
                )
            )
            return frozenset(
                parameter["Name"].removeprefix(f"/{prefix(stage)}/")
                for page in pages
                for parameter in page["Parameters"]
            )

    def put_key(self, stage: str, name: str, value: str) -> None:
        """Put a key into the Parameter Store, encrypted."""
        with plainly():
            self.client("ssm").put_parameter(
                Name=f"/{prefix(stage)}/{name}", Value=value, Type="SecureString", Overwrite=True
            )

    def tag_key(self, stage: str, name: str) -> None:
        """Mark a key as the stage's, for `down`. PutParameter takes no tags when it overwrites."""
        tags = [{"Key": key, "Value": value} for key, value in tags_of(stage).items()]
        with plainly():
            self.client("ssm").add_tags_to_resource(
                ResourceType="Parameter", ResourceId=f"/{prefix(stage)}/{name}", Tags=tags
            )

    def key(self, stage: str, name: str) -> str:
        """The value of a key."""
        with plainly():
            answer = self.client("ssm").get_parameter(Name=f"/{prefix(stage)}/{name}", WithDecryption=True)
        return str(answer["Parameter"]["Value"])

    def admins(self, pool: str) -> tuple[PoolUser, ...]:
        """Up to 60 administrators."""
        with plainly():
            answer = self._cognito.list_users_in_group(UserPoolId=pool, GroupName=ADMIN_GROUP, Limit=60)
        return tuple(PoolUser(user["Username"], user["UserStatus"]) for user in answer["Users"])

    def user(self, pool: str, name: str) -> PoolUser | None:
        """A user by name."""
        with plainly():
            try:
                answer = self._cognito.admin_get_user(UserPoolId=pool, Username=name)
            except self._cognito.exceptions.UserNotFoundException:
                return None
        return PoolUser(answer["Username"], answer["UserStatus"])

    def create_user(self, pool: str, name: str, email: str, password: str = "") -> None:
        """Create a user with a temporary password: Cognito mails one unless ``password`` is set. A second call changes
        nothing."""
        options: dict[str, Any] = (
            {"TemporaryPassword": password, "MessageAction": "SUPPRESS"}
            if password
            else {"DesiredDeliveryMediums": ["EMAIL"]}
        )
        attributes = [{"Name": "email", "Value": email}, {"Name": "email_verified", "Value": "true"}]
        with plainly():
            try:
                self._cognito.admin_create_user(
                    UserPoolId=pool, Username=name, UserAttributes=attributes if email else [], **options
                )
            except self._cognito.exceptions.UsernameExistsException:
                return

    def make_admin(self, pool: str, name: str) -> None:
        """Add a user to the group."""
        with plainly():
            self._cognito.admin_add_user_to_group(UserPoolId=pool, Username=name, GroupName=ADMIN_GROUP)

    def set_password(self, pool: str, name: str, password: str, *, permanent: bool = False) -> None:
        """A new password; one that is not permanent has to be changed at the first sign-in."""
        with plainly():
            self._cognito.admin_set_user_password(
                UserPoolId=pool, Username=name, Password=password, Permanent=permanent
            )

    def sign_in(self, pool: str, client_id: str, name: str, password: str) -> str:
        """An ID token for a password; `AwsRefusal` if the stage does not allow password sign-in."""
        with plainly():
            answer = self._cognito.admin_initiate_auth(
                UserPoolId=pool,
                ClientId=client_id,
                AuthFlow="ADMIN_USER_PASSWORD_AUTH",
                AuthParameters={"USERNAME": name, "PASSWORD": password},
            )
        if "AuthenticationResult" not in answer:
            raise AwsRefusal(f"Cognito asks {name} for {answer.get('ChallengeName')}: give --token instead.")
        return str(answer["AuthenticationResult"]["IdToken"])

    def delete_user(self, pool: str, name: str) -> None:
        """Delete a user of the pool; a missing user is no error."""
        with plainly():
            try:
                self._cognito.admin_delete_user(UserPoolId=pool, Username=name)
            except self._cognito.exceptions.UserNotFoundException:
                return

    def delete_old_users(self, pool: str, beginning: str, before: datetime) -> None:
        """Delete users with this name prefix who were created before a time; at most 60."""
        with plainly():
            answer = self._cognito.list_users(UserPoolId=pool, Filter=f'username ^= "{beginning}"', Limit=60)
        for user in answer["Users"]:
            if user["UserCreateDate"] < before and user["Username"].startswith(beginning):
                self.delete_user(pool, user["Username"])

    def subscriptions(self, topic: str) -> tuple[int, int]:
        """(confirmed, not confirmed) subscriptions of a topic, of its first hundred."""
        with plainly():
            subscriptions = self.client("sns").list_subscriptions_by_topic(TopicArn=topic)["Subscriptions"]
        waiting = sum(
            subscription["SubscriptionArn"] in ("PendingConfirmation", "Deleted")
            for subscription in subscriptions
        )
        return len(subscriptions) - waiting, waiting

    def messages(self, queue: str) -> int:
        """The approximate number of messages in a queue."""
        name = "ApproximateNumberOfMessages"
        with plainly():
            answer = self.client("sqs").get_queue_attributes(QueueUrl=queue, AttributeNames=[name])
        return int(answer["Attributes"][name])

    def running_since(self, machine: str) -> tuple[tuple[str, float], ...]:
        """(name, time of the start) of up to 1,000 running executions."""
        with plainly():
            answer = self.client("stepfunctions").list_executions(
                stateMachineArn=machine, statusFilter="RUNNING", maxResults=1000
            )
        return tuple(
            (execution["name"], execution["startDate"].timestamp()) for execution in answer["executions"]
        )
