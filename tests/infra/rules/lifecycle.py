"""What remains, or blocks the deletion, when a stack is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.infra.rules.registry import ON_AWS, is_deleted, named, of_kind, rule

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
