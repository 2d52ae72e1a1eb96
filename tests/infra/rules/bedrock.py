"""The permission to call Bedrock."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.drivers.templates import readable
from tests.infra.rules.registry import many, of_kind, rule, statements

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template


@rule(
    {
        "Policy": {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyDocument": {
                    "Statement": [
                        {
                            "Effect": "Allow",
                            "Action": "bedrock-mantle:CreateInference",
                            "Resource": "arn:aws:bedrock:us-east-1::foundation-model/*",
                        }
                    ]
                }
            },
        }
    }
)
def inference_is_allowed_on_projects(template: Template) -> Iterator[str]:
    """AWS Managed Policy Reference, "AmazonBedrockMantleInferenceAccess": ``bedrock-mantle`` has projects, not the
    models and profiles of the service ``bedrock``. A statement on another resource allows nothing.
    """
    for key, policy in of_kind(template, "AWS::IAM::Policy").items():
        for statement in statements([policy]):
            if any(action.startswith("bedrock-mantle:") for action in many(statement["Action"])):
                resources = map(readable, many(statement["Resource"]))
                yield from (
                    f"{key}: {resource}"
                    for resource in resources
                    if ":bedrock-mantle:" not in resource or ":project/" not in resource
                )
