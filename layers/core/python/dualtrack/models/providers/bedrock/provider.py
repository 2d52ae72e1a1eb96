"""What must be known of Claude on Amazon Bedrock. Pure.

It is the Messages API of the endpoint ``bedrock-mantle``, signed with IAM credentials (Amazon Bedrock User Guide,
"Inference using Anthropic Messages API"). Its model ids are ``anthropic.`` and the name without a date; ids with a
region or a version (``us.``, ``-v1:0``) belong to another endpoint.
"""

from __future__ import annotations

import re
from typing import Final

from dualtrack.models.provider import Provider, Signing

_PREFIX: Final = "anthropic."
_DATE: Final = re.compile(r"-20\d{6}$")


def bedrock_model(model: str) -> str:
    """``anthropic.claude-haiku-4-5`` for ``claude-haiku-4-5-20251001``; a Bedrock id is not changed."""
    return model if model.startswith(_PREFIX) else f"{_PREFIX}{_DATE.sub('', model)}"


SIGNING: Final = Signing(
    service="bedrock-mantle",
    actions=("CreateInference",),
    # in the form of AmazonBedrockMantleInferenceAccess (AWS Managed Policy Reference); a request that names no
    # project belongs to the account's default one
    resource="project/*",
    wildcard="The account's default project has no documented ARN.",
    url="https://bedrock-mantle.{region}.api.aws/anthropic",
    credentials="BEDROCK_SECRET",
)

PROVIDER: Final = Provider(
    "bedrock",
    "Bedrock",
    span_name="aws.bedrock",
    served=bedrock_model,
    address="BEDROCK_BASE_URL",
    look_at="the access to the model in Amazon Bedrock, and at DUALTRACK_MODEL and AWS_REGION",
    opened="enable it in Bedrock's console, Model access",
    signing=SIGNING,
)
