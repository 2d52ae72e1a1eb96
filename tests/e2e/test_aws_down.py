"""``dualtrack aws down`` in one of two regions that are both full of data, on the emulator.

Tables, bucket and user pool are those of the synthesised stages. What AWS does and the emulator does not is added where
it is named: `AsOnAws`, the bucket's tags, the vector bucket.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, ClassVar

import pytest
from botocore.exceptions import ClientError
from click.testing import CliRunner, Result
from dualtrack_stack.cli.aws import down
from dualtrack_stack.cli.aws.account import AwsAccount
from dualtrack_stack.cli.aws.facts import tags_of
from dualtrack_stack.cli.aws.things import things_of
from dualtrack_stack.cli.main import main

from tests.drivers.emulated_account import assembly, emulated_account, settings_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.servers.vector_buckets import VectorBuckets

HERE, THERE = "us-east-1", "eu-central-1"
REGIONS = (HERE, THERE)
KEEPS = {"prod": True, "staging": False}
IN_PROD = pytest.mark.parametrize("stage", ["prod"], indirect=True)


class AsOnAws(AwsAccount):
    """An account with AWS's own answers about user pools (API_UpdateUserPool, API_DeleteUserPool), and calls that
    fail: ``fails`` names the service and the operation."""

    fails: ClassVar[tuple[str, str]] = ("", "")

    def client(self, service: str) -> Any:
        client = super().client(service)

        def checked(model: Any, params: Any, **_: Any) -> None:
            if model.name == "DeleteStack":
                self._must_be_empty(params["body"]["StackName"])
            if AsOnAws.fails == (service, model.name):
                raise _error("AccessDeniedException", "not authorized", model.name)

        client.meta.events.register(
            f"before-call.{client.meta.service_model.service_id.hyphenize()}", checked
        )
        return UserPools(client) if service == "cognito-idp" else client

    def _must_be_empty(self, stack: str) -> None:
        """The emulator deletes a stack whose bucket holds something."""
        s3 = self.client("s3")
        for resource in self.resources(stack):
            if resource.kind == "AWS::S3::Bucket" and not resource.is_kept:
                held = s3.list_object_versions(Bucket=resource.id)
                assert not held.get("Versions"), resource
                assert not held.get("DeleteMarkers"), resource


class UserPools:
    """What DescribeUserPool adds and UpdateUserPool then refuses."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def describe_user_pool(self, **request: Any) -> Any:
        answer = self._client.describe_user_pool(**request)
        answer["UserPool"].setdefault("AdminCreateUserConfig", {})["UnusedAccountValidityDays"] = 7
        answer["UserPool"]["Policies"]["PasswordPolicy"]["TemporaryPasswordValidityDays"] = 7
        return answer

    def update_user_pool(self, **request: Any) -> Any:
        if "UnusedAccountValidityDays" in request.get("AdminCreateUserConfig", {}):
            words = "Please use TemporaryPasswordValidityDays in PasswordPolicy instead of UnusedAccountValidityDays"
            raise _error("InvalidParameterException", words, "UpdateUserPool")
        return self._client.update_user_pool(**request)

    def delete_user_pool(self, **request: Any) -> Any:
        pool = self._client.describe_user_pool(**request)["UserPool"]
        if pool.get("Domain") or pool.get("DeletionProtection") == "ACTIVE":
            raise _error("InvalidParameterException", "protected, or it has a domain", "DeleteUserPool")
        return self._client.delete_user_pool(**request)


def _error(code: str, words: str, operation: str) -> ClientError:
    return ClientError({"Error": {"Code": code, "Message": words}}, operation)


@pytest.fixture
def vectors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[VectorBuckets]:
    """Those of an empty account, which is this process's."""
    with emulated_account(tmp_path / "account") as emulated:
        for name, value in emulated.environment().items():
            monkeypatch.setenv(name, value)
        monkeypatch.setattr(down, "AwsAccount", AsOnAws)
        yield emulated.vectors


@pytest.fixture(params=KEEPS)
def stage(request: pytest.FixtureRequest, vectors: VectorBuckets, tmp_path: Path) -> str:
    """One that keeps its data and one that does not, deployed in both regions and full of data."""
    name = str(request.param)
    settings_file(tmp_path, {}, name, keep_data=KEEPS[name])
    folder = assembly(tmp_path, name)
    for region in REGIONS:
        _deploy(folder, name, region, vectors)
    return name


def run(stage: str, region: str, *more: str) -> Result:
    arguments = ["aws", "down", "--stage", stage, "--region", region, "--delete-data", f"dualtrack-{stage}"]
    return CliRunner().invoke(main, [*arguments, *(more or ("--yes",))])


def _deploy(folder: Path, stage: str, region: str, vectors: VectorBuckets) -> None:
    account = AwsAccount(region)
    tags = [{"Key": key, "Value": value} for key, value in tags_of(stage).items()]
    formation = account.client("cloudformation")
    for name in ("Data", "Identity"):
        template = json.loads((folder / f"{name}.template.json").read_text())
        del template["Parameters"], template["Rules"]  # the CDK's question for its bootstrap
        # refuses plain HTTP, which is all that the emulator speaks
        template["Resources"] = {
            key: resource
            for key, resource in template["Resources"].items()
            if resource["Type"] != "AWS::S3::BucketPolicy"
        }
        _create(formation, f"dualtrack-{stage}-{name.lower()}", template, tags)
    _create(formation, f"dualtrack-{stage}-chat", _CHAT, tags)
    _fill(account, stage, vectors)


def _create(formation: Any, name: str, template: dict[str, Any], tags: list[dict[str, str]]) -> None:
    formation.create_stack(StackName=name, TemplateBody=json.dumps(template), Tags=tags)
    formation.get_waiter("stack_create_complete").wait(StackName=name, WaiterConfig={"Delay": 1})


_CHAT: dict[str, Any] = {
    "Resources": {
        "Turn": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Runtime": "python3.13",
                "Handler": "index.handler",
                "Role": "arn:aws:iam::000000000000:role/any",
                "Code": {"ZipFile": "def handler(event, context): pass\n"},
            },
        },
        "Api": {"Type": "AWS::ApiGateway::RestApi", "Properties": {"Name": "chat"}},
        "Get": {
            "Type": "AWS::ApiGateway::Method",
            "Properties": {
                "RestApiId": {"Ref": "Api"},
                "ResourceId": {"Fn::GetAtt": ["Api", "RootResourceId"]},
                "HttpMethod": "GET",
                "AuthorizationType": "NONE",
                "Integration": {"Type": "MOCK"},
            },
        },
        "Deployed": {
            "Type": "AWS::ApiGateway::Deployment",
            "DependsOn": "Get",
            "Properties": {"RestApiId": {"Ref": "Api"}},
        },
        "Live": {
            "Type": "AWS::ApiGateway::Stage",
            "Properties": {
                "RestApiId": {"Ref": "Api"},
                "DeploymentId": {"Ref": "Deployed"},
                "StageName": "live",
            },
        },
    }
}


def _physical(account: AwsAccount, stack: str) -> dict[str, str]:
    """Type → physical id, of one resource each."""
    return {resource.kind: resource.id for resource in account.resources(stack)}


def _fill(account: AwsAccount, stage: str, vectors: VectorBuckets) -> None:
    prefix = f"dualtrack-{stage}"
    outputs = account.stacks(stage)["data"].outputs
    history = account.client("dynamodb")
    for number in range(3):
        item = {"pk": f"C#{number}", "sk": "about", "listed": "ann", "latest": f"2026-11-0{number + 1}"}
        history.put_item(
            TableName=outputs["HistoryTable"], Item={key: {"S": value} for key, value in item.items()}
        )
    for table in ("ChatsTable", "CreditsTable", "CacheTable"):
        history.put_item(TableName=outputs[table], Item={"pk": {"S": "a"}, "sk": {"S": "b"}})
    s3, bucket = account.client("s3"), outputs["BodiesBucket"]
    # CloudFormation gives a bucket the template's tags; the emulator's does not
    tags = [{"Key": key, "Value": value} for key, value in tags_of(stage).items()]
    s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": tags})
    s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})
    for body in (b"first", b"second"):
        s3.put_object(Bucket=bucket, Key="users/ann/body", Body=body)
    s3.put_object(Bucket=bucket, Key="users/ann/other", Body=b"third")
    s3.delete_object(Bucket=bucket, Key="users/ann/other")
    vectors.add(
        account.region,
        f"{prefix}-data-coursevectors-0a1b2c3d",
        dict(tags_of(stage)),
        "courses-1",
        "courses-2",
    )
    vectors.add(account.region, f"{prefix}-data-mine-0a1b2c3d", {}, "notes")
    _add_others(account, stage, outputs["CacheTable"])
    for name in ("anthropic", "voyage"):
        account.put_key(stage, name, "secret")
    account.tag_key(stage, "anthropic")
    _users(account, stage)
    chat = _physical(account, f"{prefix}-chat")
    logs = account.client("logs")
    for group in (
        f"/aws/lambda/{chat['AWS::Lambda::Function']}",
        f"API-Gateway-Execution-Logs_{chat['AWS::ApiGateway::RestApi']}/live",
        f"API-Gateway-Execution-Logs_{chat['AWS::ApiGateway::RestApi']}/live2",
        f"{prefix}-notes-of-mine",
    ):
        logs.create_log_group(logGroupName=group)
    account.client("secretsmanager").create_secret(Name=f"{prefix}/oidc", SecretString="x", Tags=tags)


def _add_others(account: AwsAccount, stage: str, cache: str) -> None:
    """What has only the tags, or only such a name, or is another stage's."""
    tags = [{"Key": key, "Value": value} for key, value in tags_of(stage).items()]
    schema: dict[str, Any] = {
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "BillingMode": "PAY_PER_REQUEST",
    }
    dynamodb, s3, region = account.client("dynamodb"), account.client("s3"), account.region
    dynamodb.create_table(TableName=f"dualtrack-{stage}-notes", Tags=tags, **schema)
    dynamodb.create_table(TableName=f"{cache}0", **schema)
    dynamodb.create_table(TableName=cache.replace(stage, f"{stage}2"), Tags=tags, **schema)
    place = {} if region == "us-east-1" else {"CreateBucketConfiguration": {"LocationConstraint": region}}
    s3.create_bucket(Bucket=f"dualtrack-{stage}-data-mine-0{region.replace('-', '')}", **place)
    account.client("cognito-idp").create_user_pool(PoolName=f"dualtrack-{stage}-users")
    account.client("ssm").put_parameter(Name=f"/dualtrack-{stage}2/anthropic", Value="x", Type="SecureString")
    account.client("kms").create_key()


def _users(account: AwsAccount, stage: str) -> None:
    cognito, pool = account.client("cognito-idp"), account.stacks(stage)["identity"].outputs["UserPoolId"]
    cognito.admin_create_user(UserPoolId=pool, Username="ann")
    if KEEPS[stage]:  # by hand, so that it stays with the pool
        certificate = {"CertificateArn": "arn:aws:acm:us-east-1:000000000000:certificate/any"}
        domain = f"sign-in.{account.region}.example.org"
        cognito.create_user_pool_domain(UserPoolId=pool, Domain=domain, CustomDomainConfig=certificate)


def everything(region: str, vectors: VectorBuckets) -> dict[str, Any]:
    """All data of a region, whoever's."""
    account = AwsAccount(region)
    dynamodb, s3, logs = account.client("dynamodb"), account.client("s3"), account.client("logs")
    cognito, kms = account.client("cognito-idp"), account.client("kms")
    pools = cognito.list_user_pools(MaxResults=60)["UserPools"]
    return {
        "stacks": sorted(
            stack["StackName"] for stack in account.client("cloudformation").describe_stacks()["Stacks"]
        ),
        "tables": {
            name: (dynamodb.scan(TableName=name)["Items"], dynamodb.describe_table(TableName=name)["Table"])
            for name in dynamodb.list_tables()["TableNames"]
        },
        "buckets": {
            bucket["Name"]: [
                (version["Key"], version["VersionId"])
                for kind in ("Versions", "DeleteMarkers")
                for version in s3.list_object_versions(Bucket=bucket["Name"]).get(kind, ())
            ]
            for bucket in s3.list_buckets(BucketRegion=region).get("Buckets", ())
        },
        "vectors": {arn: list(indexes) for arn, indexes in vectors.indexes[region].items()},
        "parameters": [
            parameter["Name"] for parameter in account.client("ssm").describe_parameters()["Parameters"]
        ],
        "secrets": [
            secret["Name"] for secret in account.client("secretsmanager").list_secrets()["SecretList"]
        ],
        "logs": [
            (group["logGroupName"], logs.list_tags_for_resource(resourceArn=group["arn"].removesuffix(":*")))
            for group in logs.describe_log_groups()["logGroups"]
        ],
        "pools": {
            pool["Id"]: [user["Username"] for user in cognito.list_users(UserPoolId=pool["Id"])["Users"]]
            for pool in pools
        },
        "keys": {
            key["KeyId"]: kms.describe_key(KeyId=key["KeyId"])["KeyMetadata"]["KeyState"]
            for key in kms.list_keys()["Keys"]
        },
    }


def _without_metadata(value: Any) -> Any:
    return json.loads(
        json.dumps(value, default=str), object_hook=lambda found: {**found, "ResponseMetadata": None}
    )


def test_the_other_region_is_not_touched(stage: str, vectors: VectorBuckets) -> None:
    """And of this region, only what carries no tag remains; it is said how to delete it."""
    before = _without_metadata(everything(THERE, vectors))
    done = run(stage, HERE)
    assert done.exit_code == 0, done.output
    assert _without_metadata(everything(THERE, vectors)) == before
    assert f"in account 000000000000, region {HERE}" in done.output
    assert THERE not in done.output

    left, began = everything(HERE, vectors), f"dualtrack-{stage}"
    assert not left["stacks"]
    assert {name.rsplit("-", 1)[0] for name in left["tables"]} == {
        began, f"{began}-data-Cache18F6EE16", f"{began}2-data-Cache18F6EE16",
    }  # fmt: skip
    assert list(left["buckets"]) == [f"{began}-data-mine-0useast1"]
    assert list(left["pools"].values()) == [[]]
    assert not left["secrets"]
    assert sorted(left["keys"].values()) == ["Enabled", "PendingDeletion"]
    assert left["parameters"] == [f"/{began}/voyage", f"/{began}2/anthropic"]
    assert [arn.rsplit("/")[-1] for arn in left["vectors"]] == [f"{began}-data-mine-0a1b2c3d"]
    other_stage, notes = sorted(name for name, _ in left["logs"])
    assert other_stage.endswith("/live2")
    assert notes == f"{began}-notes-of-mine"
    for kind in ("table", "bucket", "user pool", "vector bucket", "parameter", "log group"):
        assert f"The {kind} " in done.output, "what has no tag is said"
    assert f"aws ssm delete-parameter --name /{began}/voyage --region {HERE}" in done.output

    again = run(stage, HERE)
    assert again.exit_code == 0
    assert f"Nothing of dualtrack-{stage} is in account 000000000000, region {HERE}." in again.output
    assert f"/dualtrack-{stage}/voyage" in again.output, "it is said again"
    other = run(stage, THERE)
    assert other.exit_code == 0, other.output


@IN_PROD
def test_what_will_be_lost_is_listed_before_anything_is_asked(stage: str, vectors: VectorBuckets) -> None:
    before = _without_metadata(everything(HERE, vectors))
    refused = run(stage, HERE, "--stage", stage)
    assert refused.exit_code == 2, refused.output
    assert "pass --yes" in refused.output
    for held in (
        "conversations: 3; items: 3,",
        "objects and versions: 3, 16 bytes",
        "indexes: at least 1",
        "users: about",
    ):
        assert held in refused.output
    lines = [line for line in refused.output.splitlines() if line.startswith("      ")]
    assert all(f"in account 000000000000, region {HERE}" in line for line in lines), lines
    assert _without_metadata(everything(HERE, vectors)) == before


REFUSED = (
    ("cloudformation", "DeleteStack"),
    ("cognito-idp", "DeleteUserPoolDomain"),
    ("cognito-idp", "UpdateUserPool"),
    ("dynamodb", "UpdateTable"),
    ("logs", "DeleteLogGroup"),
    ("ssm", "DeleteParameter"),
    ("secretsmanager", "DeleteSecret"),
    ("cognito-idp", "DeleteUserPool"),
    ("kms", "ScheduleKeyDeletion"),
    ("s3vectors", "DeleteIndex"),
    ("s3vectors", "DeleteVectorBucket"),
)


@IN_PROD
def test_what_is_refused_is_refused_before_conversations_are_deleted(
    stage: str, vectors: VectorBuckets, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each call refused in turn; each repeat goes on, and the last one finishes."""
    before = everything(HERE, vectors)
    for refused in REFUSED:
        monkeypatch.setattr(AsOnAws, "fails", refused)
        done = run(stage, HERE)
        assert done.exit_code == 4, f"{refused} was never called"
        assert f"AWS refused {refused[1]}" in done.output
        now = everything(HERE, vectors)
        assert now["buckets"] == before["buckets"], refused
        assert _items(now) == _items(before), refused
    monkeypatch.setattr(AsOnAws, "fails", ("", ""))
    assert run(stage, HERE).exit_code == 0
    assert not any(thing.is_tagged for thing in things_of(AwsAccount(HERE), stage))


def _items(found: dict[str, Any]) -> dict[str, Any]:
    return {name: items for name, (items, _) in found["tables"].items()}
