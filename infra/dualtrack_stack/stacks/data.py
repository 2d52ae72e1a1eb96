"""Resources that outlive every deployment: tables, the bucket for large bodies, the connections key; and the
names of the services' keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import CfnOutput, Duration, RemovalPolicy, Stack
from aws_cdk import aws_dynamodb as dynamodb
from aws_cdk import aws_kms as kms
from aws_cdk import aws_s3 as s3
from aws_cdk import aws_ssm as ssm
from dualtrack.settings import keys

from dualtrack_stack.settings import record_name
from dualtrack_stack.stacks.emptier import accept_emptier
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.model_services import SIGNERS

if TYPE_CHECKING:
    from constructs import Construct

    from dualtrack_stack.stages import StageSettings

CORPUS_FOLDER: Final = "corpora/"
"""`dualtrack.storage.corpora.FOLDER`: the prefix of the keys of all objects of corpora."""

UPLOAD_FOLDER: Final = ".uploads/"
"""`dualtrack.storage.uploads.FOLDER`, likewise of files for messages."""

RECOVERY_DAYS: Final = 35
"""How far back tables and objects of a stage that keeps data can be restored; 35 is DynamoDB's most."""

OPEN_CHATS_INDEX: Final = "open"
ACTIVE_ACCOUNTS_INDEX: Final = "active"
LISTED_CONVERSATIONS_INDEX: Final = "listed"


def bodies_export(stage: StageSettings) -> str:
    """The name under which the bucket's ARN is exported."""
    return f"{stage.prefix}-bodies-arn"


def removal(stage: StageSettings) -> RemovalPolicy:
    """Of what holds data: kept by every update and deletion, but removed if its creation fails, because its fixed name
    would block the next attempt."""
    return RemovalPolicy.RETAIN_ON_UPDATE_OR_DELETE if stage.keep_data else RemovalPolicy.DESTROY


class DataStack(Stack):
    """Four tables (pk, sk strings; on-demand; encrypted), one bucket, one key.

    ``record``: the settings of this deployment, for the next one (`dualtrack_stack.settings`). The stack is deployed
    before every other, so what an interrupted deployment has already set is known.

    ``secret_names``: the SecureStrings of the Parameter Store that hold the services' keys. CloudFormation cannot make
    such parameters (Template Reference, AWS::SSM::Parameter), so the operator puts each (docs/aws/settings.md).
    """

    def __init__(self, scope: Construct, construct_id: str, stage: StageSettings, record: str = "") -> None:
        super().__init__(scope, construct_id, stack_name=f"{stage.prefix}-data")
        self._stage = stage
        self._removal = removal(stage)
        self.history = self._table("History", expires=False)
        self.chats = self._table("Chats", expires=True)
        self.credits = self._table("Credits", expires=True)
        self.cache = self._table("Cache", expires=True)
        # Sparse: only chats that still run carry the attribute, so the sweep reads nothing else; and in shards
        # of its own what is to be told.
        self.chats.add_global_secondary_index(
            index_name=OPEN_CHATS_INDEX,
            partition_key=dynamodb.Attribute(name="open", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="deadline", type=dynamodb.AttributeType.NUMBER),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        # Sparse too: accounts that were used since the last reset, so a reset only reads active ones.
        self.credits.add_global_secondary_index(
            index_name=ACTIVE_ACCOUNTS_INDEX,
            partition_key=dynamodb.Attribute(name="active", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="day", type=dynamodb.AttributeType.STRING),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        # Sparse too, because few of a history's items are conversations: by user, in the order of their last queries.
        self.history.add_global_secondary_index(
            index_name=LISTED_CONVERSATIONS_INDEX,
            partition_key=dynamodb.Attribute(name="listed", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="latest", type=dynamodb.AttributeType.STRING),
            projection_type=dynamodb.ProjectionType.KEYS_ONLY,
        )
        self.bodies = self._bucket()
        # exported under a name of our own: cdk-nag's finding on its objects contains it
        self.bodies_arn = self.export_value(self.bodies.bucket_arn, name=bodies_export(stage))
        self.connections_key = kms.Key(
            self,
            "ConnectionsKey",
            description="Encrypts the users' GitHub connections and the secrets of their webhooks",
            enable_key_rotation=True,
            removal_policy=self._removal,
        )
        names = (*keys(), *SIGNERS) if stage.name == "local" else tuple(keys())
        self.secret_names = {name: f"/{stage.prefix}/{name}" for name in names}
        if record:
            self._record(record)
        self._outputs()

    def _record(self, text: str) -> None:
        """Its tier may grow: an advanced parameter (over 4 KB, $0.05 a month) cannot be made a standard one again."""
        ssm.CfnParameter(
            self,
            "Settings",
            type="String",
            tier="Intelligent-Tiering",
            name=record_name(self._stage.name),
            description="The settings of the last deployment",
            value=text,
        )

    def _outputs(self) -> None:
        outputs = {
            "HistoryTable": self.history.table_name,
            "ChatsTable": self.chats.table_name,
            "CreditsTable": self.credits.table_name,
            "CacheTable": self.cache.table_name,
            "BodiesBucket": self.bodies.bucket_name,
            **{f"{key.capitalize()}KeyName": name for key, name in self.secret_names.items()},
        }
        for key, value in outputs.items():
            CfnOutput(self, key, value=value)

    def _table(self, name: str, *, expires: bool) -> dynamodb.Table:
        return dynamodb.Table(
            self,
            name,
            partition_key=dynamodb.Attribute(name="pk", type=dynamodb.AttributeType.STRING),
            sort_key=dynamodb.Attribute(name="sk", type=dynamodb.AttributeType.STRING),
            billing_mode=dynamodb.BillingMode.PAY_PER_REQUEST,
            encryption=dynamodb.TableEncryption.AWS_MANAGED,
            point_in_time_recovery_specification=dynamodb.PointInTimeRecoverySpecification(
                point_in_time_recovery_enabled=self._stage.keep_data,
                recovery_period_in_days=RECOVERY_DAYS if self._stage.keep_data else None,
            ),
            deletion_protection=self._stage.keep_data,
            time_to_live_attribute="ttl" if expires else None,
            removal_policy=self._removal,
        )

    def _bucket(self) -> s3.Bucket:
        bucket = s3.Bucket(
            self,
            "Bodies",
            encryption=s3.BucketEncryption.S3_MANAGED,
            block_public_access=s3.BlockPublicAccess.BLOCK_ALL,
            object_ownership=s3.ObjectOwnership.BUCKET_OWNER_ENFORCED,
            enforce_ssl=self._stage.encrypted_transport,
            versioned=self._stage.keep_data,
            lifecycle_rules=self._lifecycle(),
            # The page puts files to the addresses that the API gives; each is signed for one file.
            cors=[
                s3.CorsRule(
                    allowed_methods=[s3.HttpMethods.PUT],
                    allowed_origins=["*"],
                    allowed_headers=["content-type", "x-amz-checksum-sha256"],
                )
            ],
            removal_policy=self._removal,
            auto_delete_objects=self._stage.empties_buckets,
        )
        if self._stage.empties_buckets:
            accept_emptier(self)
        accept(
            bucket,
            "AwsSolutions-S1",
            "Only the functions' roles reach the bucket; a log of every body read would cost more than the bodies.",
        )
        return bucket

    def _lifecycle(self) -> list[s3.LifecycleRule]:
        """What was deleted or replaced can be brought back as long as the tables can, and is gone after that: an
        object, and then its delete marker, whose key names the user."""
        uploads = f"{CORPUS_FOLDER}uploads/"
        rules = [
            s3.LifecycleRule(abort_incomplete_multipart_upload_after=Duration.days(1)),
            # uploads for a job, which has read them long before
            s3.LifecycleRule(prefix=uploads, expiration=Duration.days(2)),
            # files for messages live an hour, and the sweep deletes them; this finds one that was put as it expired
            s3.LifecycleRule(prefix=UPLOAD_FOLDER, expiration=Duration.days(1)),
        ]
        if not self._stage.keep_data:
            return rules
        kept = s3.LifecycleRule(
            noncurrent_version_expiration=Duration.days(RECOVERY_DAYS), expired_object_delete_marker=True
        )
        return [
            *rules,
            s3.LifecycleRule(prefix=uploads, noncurrent_version_expiration=Duration.days(1)),
            s3.LifecycleRule(prefix=UPLOAD_FOLDER, noncurrent_version_expiration=Duration.days(1)),
            kept,
        ]
