"""Deploys the synthesised templates to the emulator, through its CloudFormation."""

from __future__ import annotations

import hashlib
import json
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from botocore.exceptions import ClientError
from dualtrack_stack.local.assets import Asset, AssetTemplate, load

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from dualtrack_stack.local.aws import Aws
    from dualtrack_stack.project.model import Project

ASSETS_BUCKET: Final = "cdk-hnb659fds-assets-000000000000-us-east-1"
DIGEST_TAG: Final = "dualtrack-digest"
DEPLOY_SECONDS: Final = 120.0
_POLL_SECONDS: Final = 0.05
_DONE: Final = {"CREATE_COMPLETE", "UPDATE_COMPLETE"}
_UPDATABLE: Final = {*_DONE, "UPDATE_ROLLBACK_COMPLETE"}


class DeployFailed(RuntimeError):
    """CloudFormation refused a template or a resource."""


@dataclass(frozen=True, slots=True)
class StackOutputs:
    """The outputs of all stacks; ``fresh``: there was no earlier run."""

    outputs: Mapping[str, str]
    changed: bool
    fresh: bool


def deploy(aws: Aws, assembly: Path, parameters: Mapping[str, str], project: Project) -> StackOutputs:
    """Create or update the stacks that are not up to date, with what the project has. The data and identity stacks are
    independent; the chat stack imports from both.
    """
    templates = {name: load(assembly, name, parameters, project) for name in ("Data", "Identity", "Chat")}
    fresh = not _describe(aws.client("cloudformation"), _name(templates["Data"]))
    _upload(aws, [file for template in templates.values() for file in template.files()])
    with ThreadPoolExecutor(2) as pool:
        first = list(pool.map(lambda name: _deploy(aws, templates[name], {}), ("Data", "Identity")))
    results = [*first, _deploy(aws, templates["Chat"], parameters)]
    outputs: dict[str, str] = {}
    for _, stack_outputs in results:
        outputs.update(stack_outputs)
    return StackOutputs(outputs, changed=any(changed for changed, _ in results), fresh=fresh)


def delete_old_versions(aws: Aws) -> None:
    """Delete the functions' versions that no alias names. The emulator keeps a process of each for good; one that still
    runs a call is ended, so this is for a stack without work.
    """
    functions = aws.client("lambda")
    for function in functions.get_paginator("list_functions").paginate().search("Functions[].FunctionName"):
        kept = {"$LATEST"}
        for alias in functions.list_aliases(FunctionName=function)["Aliases"]:
            kept.add(alias["FunctionVersion"])
        versions = functions.get_paginator("list_versions_by_function").paginate(FunctionName=function)
        for version in versions.search("Versions[].Version"):
            if version not in kept:
                functions.delete_function(FunctionName=function, Qualifier=version)


def _upload(aws: Aws, assets: Sequence[Asset]) -> None:
    s3 = aws.client("s3")
    try:
        present = {item["Key"] for item in s3.list_objects_v2(Bucket=ASSETS_BUCKET).get("Contents", [])}
    except s3.exceptions.NoSuchBucket:
        s3.create_bucket(Bucket=ASSETS_BUCKET)
        present = set()
    for asset in assets:
        if asset.key not in present:
            s3.put_object(Bucket=ASSETS_BUCKET, Key=asset.key, Body=asset.content)


def _deploy(aws: Aws, template: AssetTemplate, parameters: Mapping[str, str]) -> tuple[bool, dict[str, str]]:
    name = _name(template)
    digest = hashlib.sha256(f"{template.body} {json.dumps(sorted(parameters.items()))}".encode()).hexdigest()
    cloudformation = aws.client("cloudformation")
    existing = _describe(cloudformation, name)
    if existing and existing["StackStatus"] in _DONE and _tags(existing).get(DIGEST_TAG) == digest:
        return False, _outputs(existing)
    declared = json.loads(template.body).get("Parameters", {})
    request: dict[str, Any] = {
        "StackName": name,
        "TemplateURL": f"{aws.endpoint_url}/{ASSETS_BUCKET}/{template.key}",
        "Capabilities": ["CAPABILITY_IAM", "CAPABILITY_NAMED_IAM"],
        "Parameters": [
            {"ParameterKey": key, "ParameterValue": value}
            for key, value in parameters.items()
            if key in declared
        ],
        "Tags": [{"Key": DIGEST_TAG, "Value": digest}],
    }
    if existing and existing["StackStatus"] in _UPDATABLE:
        cloudformation.update_stack(**request)
    else:
        if existing:
            cloudformation.delete_stack(StackName=name)
            _settle(cloudformation, name, gone=True)
        cloudformation.create_stack(**request)
    return True, _outputs(_settle(cloudformation, name))


def _name(template: AssetTemplate) -> str:
    return f"dualtrack-local-{template.name.lower()}"


def _settle(cloudformation: Any, name: str, *, gone: bool = False) -> Any:
    deadline = time.monotonic() + DEPLOY_SECONDS
    while time.monotonic() < deadline:
        stack = _describe(cloudformation, name)
        if stack is None or stack["StackStatus"] == "DELETE_COMPLETE":
            if gone:
                return None
            raise DeployFailed(f"The stack {name} no longer exists.")
        if not stack["StackStatus"].endswith("_IN_PROGRESS"):
            if stack["StackStatus"] in _DONE:
                return stack
            raise DeployFailed(f"{name}: {stack['StackStatus']}\n{_reasons(cloudformation, name)}")
        time.sleep(_POLL_SECONDS)
    raise DeployFailed(f"{name} was not deployed within {DEPLOY_SECONDS:.0f} s.")


def _describe(cloudformation: Any, name: str) -> Any:
    try:
        return cloudformation.describe_stacks(StackName=name)["Stacks"][0]
    except ClientError as error:
        if error.response["Error"]["Code"] == "ValidationError":  # CloudFormation's error for "no such stack"
            return None
        raise


def _tags(stack: Any) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in stack.get("Tags", [])}


def _outputs(stack: Any) -> dict[str, str]:
    return {output["OutputKey"]: output["OutputValue"] for output in stack.get("Outputs", [])}


def _reasons(cloudformation: Any, name: str) -> str:
    events = cloudformation.describe_stack_events(StackName=name)["StackEvents"]
    return "\n".join(
        f"  {event['LogicalResourceId']}: {event.get('ResourceStatusReason', '')}"
        for event in events
        if event["ResourceStatus"].endswith("_FAILED")
    )
