"""Names that are unique in an account, or globally."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from tests.infra.rules.registry import is_deleted, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template

GLOBAL_NAMES: Final = {
    "AWS::CloudFront::CachePolicy": "CachePolicyConfig.Name",
    "AWS::CloudFront::Function": "Name",
    "AWS::CloudFront::OriginAccessControl": "OriginAccessControlConfig.Name",
    "AWS::CloudFront::OriginRequestPolicy": "OriginRequestPolicyConfig.Name",
    "AWS::CloudFront::ResponseHeadersPolicy": "ResponseHeadersPolicyConfig.Name",
    "AWS::CloudWatch::Dashboard": "DashboardName",
    "AWS::IAM::Group": "GroupName",
    "AWS::IAM::InstanceProfile": "InstanceProfileName",
    "AWS::IAM::ManagedPolicy": "ManagedPolicyName",
    "AWS::IAM::Role": "RoleName",
    "AWS::IAM::User": "UserName",
    "AWS::S3::Bucket": "BucketName",
}
"""The name property of types whose names must be unique across regions. Without it CloudFormation generates one."""

FIXED_NAMES: Final = {
    "AWS::DynamoDB::Table": "TableName",
    "AWS::Logs::LogGroup": "LogGroupName",
    "AWS::S3::Bucket": "BucketName",
    "AWS::SecretsManager::Secret": "Name",
    "AWS::SSM::Parameter": "Name",
}
"""Types whose creation fails if their name is taken."""


def name_of(resource: dict[str, Any], path: str) -> Any:
    value: Any = resource.get("Properties", {})
    for part in path.split("."):
        value = value.get(part) if value else None
    return value


def global_names(template: Template) -> Iterator[tuple[str, str]]:
    """(logical id, name as JSON)"""
    for key, resource in template["Resources"].items():
        path = GLOBAL_NAMES.get(resource["Type"])
        name = name_of(resource, path) if path else None
        if name is not None:
            yield key, json.dumps(name)


@rule(
    {
        "Reader": {
            "Type": "AWS::CloudFront::OriginAccessControl",
            "Properties": {"OriginAccessControlConfig": {"Name": "reader"}},
        }
    }
)
def a_global_name_holds_its_region(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Using Amazon CloudWatch dashboards": dashboards are global, not region-specific;
    CloudFront API Reference, "CreateOriginAccessControl" and "CreateResponseHeadersPolicy": AlreadyExists, and
    CloudFront has no regions; IAM User Guide, "IAM object quotas and name requirements"; Amazon S3 User Guide, "Bucket
    naming rules". A second region's deployment would be refused.
    """
    for key, name in global_names(template):
        if "AWS::Region" not in name:
            yield f"{key}: {name}"


@rule(
    {
        "Secret": {
            "Type": "AWS::SecretsManager::Secret",
            "Properties": {"Name": "prod/key"},
            "DeletionPolicy": "Retain",
        }
    }
)
def a_kept_name_does_not_stand_in_its_own_way(template: Template) -> Iterator[str]:
    """CloudFormation User Guide, "DeletionPolicy attribute": with Retain a resource also survives the rollback of its
    own creation, and the next attempt fails because the name is taken; RetainExceptOnCreate removes it.
    """
    for key, resource in template["Resources"].items():
        path = FIXED_NAMES.get(resource["Type"])
        name = name_of(resource, path) if path else None
        if name and not is_deleted(resource) and resource["DeletionPolicy"] != "RetainExceptOnCreate":
            yield key
