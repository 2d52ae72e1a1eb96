"""What a stage's roles may do, read from its templates with every reference resolved to an ARN."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ACCOUNT: Final = "111122223333"
REGION: Final = "us-east-1"
_PSEUDO: Final = {
    "AWS::Partition": "aws",
    "AWS::Region": REGION,
    "AWS::AccountId": ACCOUNT,
    "AWS::URLSuffix": "amazonaws.com",
}
_ARNS: Final = {
    "AWS::DynamoDB::Table": "dynamodb:{here}:table/{name}",
    "AWS::S3::Bucket": "s3:::{name}",
    "AWS::KMS::Key": "kms:{here}:key/{name}",
    "AWS::Lambda::Function": "lambda:{here}:function:{name}",
    "AWS::StepFunctions::StateMachine": "states:{here}:stateMachine:{name}",
    "AWS::Cognito::UserPool": "cognito-idp:{here}:userpool/{name}",
    "AWS::Logs::LogGroup": "logs:{here}:log-group:{name}:*",
    "AWS::SQS::Queue": "sqs:{here}:{name}",
    "AWS::IAM::Role": "iam::{account}:role/{name}",
}
_REF_IS_ARN: Final = frozenset({"AWS::StepFunctions::StateMachine"})
_NAMES: Final = ("TableName", "BucketName", "FunctionName", "StateMachineName", "LogGroupName", "QueueName")
_ROLE_POLICY: Final = re.compile(r"(\w+)RoleDefaultPolicy[0-9A-F]{8}")


@dataclass(frozen=True)
class ResolvedStage:
    """The templates of a stage's stacks by their stems: ``Data``, ``Identity``, ``Chat`` …"""

    templates: Mapping[str, Any]

    @classmethod
    def of(cls, folder: Path) -> ResolvedStage:
        """Of an assembly."""
        paths = sorted(folder.glob("*.template.json"))
        return cls({path.name.partition(".")[0]: json.loads(path.read_text()) for path in paths})

    def outputs(self) -> dict[str, str]:
        """The values of all outputs that name something of the stage."""
        wanted = re.compile(r"(Table|Bucket|KeyName|Function|MachineArn|UserPoolId|Arn[0-9A-F]{8})$")
        return {
            name: self.text(stack, output["Value"])
            for stack, template in self.templates.items()
            for name, output in template.get("Outputs", {}).items()
            if wanted.search(name)
        }

    def arns(self) -> dict[str, str]:
        """``History``, ``Bodies``, ``Key`` … and their ARNs."""
        outputs = self.outputs()
        here = f"{REGION}:{ACCOUNT}"
        bucket = f"arn:aws:s3:::{outputs['BodiesBucket']}"
        tables = {
            name: f"arn:aws:dynamodb:{here}:table/{outputs[f'{name}Table']}"
            for name in ("History", "Chats", "Credits", "Cache")
        }
        (key,) = [arn for arn in outputs.values() if arn.startswith("arn:aws:kms:")]
        return {
            **tables,
            "Bodies": bucket,
            "Bodies/a": f"{bucket}/a",
            "Key": key,
            "StateMachine": outputs["StateMachineArn"],
            "/anthropic": f"arn:aws:ssm:{here}:parameter{outputs['AnthropicKeyName']}",
        }

    def policies(self) -> dict[str, list[dict[str, Any]]]:
        """The statements of each function's role, by the function's name in the template."""
        resources = self.templates["Chat"]["Resources"]
        return {
            match[1]: [
                self._resolved(statement) for statement in policy["Properties"]["PolicyDocument"]["Statement"]
            ]
            for key, policy in resources.items()
            if policy["Type"] == "AWS::IAM::Policy" and (match := _ROLE_POLICY.fullmatch(key))
        }

    def resource_policies(self) -> dict[str, Any]:
        """The policies of buckets and keys, by the ARN of what they are attached to."""
        resources = self.templates["Data"]["Resources"]
        found = {}
        for name, resource in resources.items():
            if resource["Type"] == "AWS::S3::BucketPolicy":
                bucket = self.text("Data", {"Fn::GetAtt": [resource["Properties"]["Bucket"]["Ref"], "Arn"]})
                found[bucket] = self._plain("Data", resource["Properties"]["PolicyDocument"])
            if resource["Type"] == "AWS::KMS::Key":
                found[self._arn("Data", name)] = self._plain("Data", resource["Properties"]["KeyPolicy"])
        return found

    def text(self, stack: str, value: Any) -> str:
        """A value with its references resolved."""
        if not isinstance(value, dict):
            return str(value)
        ((function, argument),) = value.items()
        match function:
            case "Ref":
                return self._ref(stack, argument)
            case "Fn::GetAtt":
                return self._arn(stack, argument[0]) if argument[1] == "Arn" else ".".join(argument)
            case "Fn::Join":
                return str(argument[0]).join(self.text(stack, part) for part in argument[1])
            case "Fn::ImportValue":
                return self._exported(argument)
        raise TypeError(function)

    def _resolved(self, statement: Mapping[str, Any]) -> dict[str, Any]:
        resources = many(statement["Resource"])
        return {**statement, "Resource": [self.text("Chat", resource) for resource in resources]}

    def _plain(self, stack: str, document: Any) -> Any:
        """A policy document in which every reference is text."""
        if isinstance(document, list):
            return [self._plain(stack, part) for part in document]
        if not isinstance(document, dict):
            return document
        if len(document) == 1 and next(iter(document)).startswith(("Fn::", "Ref")):
            return self.text(stack, document)
        return {name: self._plain(stack, part) for name, part in document.items()}

    def _ref(self, stack: str, name: str) -> str:
        if name in _PSEUDO:
            return _PSEUDO[name]
        resource = self.templates[stack]["Resources"][name]
        properties = resource.get("Properties", {})
        if resource["Type"] == "AWS::Lambda::Alias":
            return f"{self._arn(stack, properties['FunctionName']['Ref'])}:{properties['Name']}"
        return self._arn(stack, name) if resource["Type"] in _REF_IS_ARN else self._name(stack, name)

    def _name(self, stack: str, name: str) -> str:
        """The name that the template gives, else one of the form that CloudFormation makes."""
        properties = self.templates[stack]["Resources"][name].get("Properties", {})
        given = next((properties[key] for key in _NAMES if key in properties), None)
        return self.text(stack, given) if given else f"{self._stage()}-{stack}-{name}".lower()

    def _arn(self, stack: str, name: str) -> str:
        form = _ARNS[self.templates[stack]["Resources"][name]["Type"]]
        return "arn:aws:" + form.format(
            here=f"{REGION}:{ACCOUNT}", account=ACCOUNT, name=self._name(stack, name)
        )

    def _stage(self) -> str:
        parameter = self.templates["Data"]["Outputs"]["AnthropicKeyName"]["Value"]
        return str(parameter).split("/")[1]

    def _exported(self, name: Any) -> str:
        for stack, template in self.templates.items():
            for output in template.get("Outputs", {}).values():
                if output.get("Export", {}).get("Name") == name:
                    return self.text(stack, output["Value"])
        raise KeyError(name)


def many(value: Any) -> list[Any]:
    """A policy's field, which is one value or a list of them."""
    return value if isinstance(value, list) else [value]
