"""What remains, or blocks the deletion, when a stack is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.infra.rules.registry import IN_PROD, ON_AWS, is_deleted, named, of_kind, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template


@rule({"Bucket": {"Type": "AWS::S3::Bucket", "Properties": {}}}, ON_AWS)
def a_bucket_that_goes_is_emptied(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::S3::Bucket": only empty buckets can be deleted; otherwise the deletion
    of the stack fails. The CDK has two custom resources that empty one: S3AutoDeleteObjects, and BucketDeployment
    without RetainOnDelete.
    """
    emptied = {
        named(emptier["BucketName"]) for emptier in of_kind(template, "Custom::S3AutoDeleteObjects").values()
    }
    deployments = of_kind(template, "Custom::CDKBucketDeployment").values()
    emptied |= {
        named(deployment["DestinationBucketName"])
        for deployment in deployments
        if deployment.get("RetainOnDelete") is False
    }
    for key, resource in template["Resources"].items():
        if resource["Type"] == "AWS::S3::Bucket" and is_deleted(resource) and key not in emptied:
            yield key


@rule(
    {
        "Stage": {
            "Type": "AWS::ApiGateway::Stage",
            "Properties": {"MethodSettings": [{"LoggingLevel": "ERROR"}]},
        }
    }
)
def the_gateway_makes_no_log_of_its_own(template: Template) -> Iterator[str]:
    """API Gateway Developer Guide, "Set up CloudWatch logging for REST APIs in API Gateway": execution logs go to
    API-Gateway-Execution-Logs_{rest-api-id}/{stage_name}, which API Gateway creates itself, without retention and
    outside the stack.
    """
    for key, stage in of_kind(template, "AWS::ApiGateway::Stage").items():
        levels = {setting.get("LoggingLevel", "OFF") for setting in stage.get("MethodSettings", [])}
        if levels - {"OFF"}:
            yield key


@rule({"Group": {"Type": "AWS::Logs::LogGroup", "Properties": {}}})
def a_log_line_expires(template: Template) -> Iterator[str]:
    """Amazon CloudWatch Logs User Guide, "Change log data retention": by default lines are kept indefinitely."""
    groups = of_kind(template, "AWS::Logs::LogGroup").items()
    yield from (key for key, group in groups if not group.get("RetentionInDays"))


@rule(
    {
        "Plain": {"Type": "AWS::S3::Bucket", "DeletionPolicy": "Retain", "Properties": {}},
        "Forever": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "Properties": {"VersioningConfiguration": {"Status": "Enabled"}},
        },
        "Marked": {
            "Type": "AWS::S3::Bucket",
            "DeletionPolicy": "Retain",
            "Properties": {
                "VersioningConfiguration": {"Status": "Enabled"},
                "LifecycleConfiguration": {
                    "Rules": [
                        {"Status": "Enabled", "NoncurrentVersionExpiration": {"NoncurrentDays": 365}},
                    ]
                },
            },
        },
    },
    IN_PROD,
)
def a_kept_object_can_be_brought_back_for_35_days_and_no_longer(template: Template) -> Iterator[str]:
    """Amazon S3 User Guide, "Retaining multiple versions of objects with S3 Versioning": without versions what was
    deleted is gone, and with them it stays for ever, unless "Examples of S3 Lifecycle configurations" say otherwise:
    NoncurrentVersionExpiration for versions, ExpiredObjectDeleteMarker for the markers, on the whole bucket. 35 days
    are those of the tables' recovery, and what docs/privacy.md promises to whoever is erased.
    """
    for key, resource in template["Resources"].items():
        if resource["Type"] == "AWS::S3::Bucket" and not is_deleted(resource):
            bucket = resource.get("Properties", {})
            rules = bucket.get("LifecycleConfiguration", {}).get("Rules", [])
            whole = [found for found in rules if found["Status"] == "Enabled" and not found.get("Prefix")]
            days = {found.get("NoncurrentVersionExpiration", {}).get("NoncurrentDays") for found in whole}
            is_marked = any(found.get("ExpiredObjectDeleteMarker") for found in whole)
            is_versioned = bucket.get("VersioningConfiguration", {}).get("Status") == "Enabled"
            if not (is_versioned and 35 in days and is_marked):
                yield key


@rule(
    {
        "Table": {
            "Type": "AWS::DynamoDB::Table",
            "DeletionPolicy": "Retain",
            "Properties": {"PointInTimeRecoverySpecification": {"PointInTimeRecoveryEnabled": True}},
        }
    },
    IN_PROD,
)
def a_kept_table_can_be_brought_back_as_long_as_its_objects(template: Template) -> Iterator[str]:
    """Amazon DynamoDB Developer Guide, "Point-in-time recovery": from 1 to 35 days, RecoveryPeriodInDays."""
    for key, resource in template["Resources"].items():
        if resource["Type"] == "AWS::DynamoDB::Table" and not is_deleted(resource):
            recovery = resource.get("Properties", {}).get("PointInTimeRecoverySpecification", {})
            if recovery != {"PointInTimeRecoveryEnabled": True, "RecoveryPeriodInDays": 35}:
                yield key
