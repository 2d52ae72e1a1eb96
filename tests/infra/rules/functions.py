"""Lambda's functions, versions and layers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from tests.drivers.templates import readable
from tests.infra.rules.registry import ON_AWS, is_deleted, named, of_kind, rule

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template


@rule(
    {
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Environment": {"Variables": {"LIST": "x" * 4093}}},
        }
    },
    ON_AWS,
)
def an_environment_fits(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Lambda quotas": 4 KB for all environment variables together, names included.

    Values known only at deployment count as 150 bytes, more than our longest ARN. The local stage has a parameter for
    each setting, and no Lambda.
    """
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        variables = function.get("Environment", {}).get("Variables", {})
        texts = (value if isinstance(value, str) else "?" * 150 for value in variables.values())
        size = sum(len(text.encode()) for text in (*variables, *texts))
        if size > 4096:
            yield f"{key}: {size} bytes"


@rule(
    {"Function": {"Type": "AWS::Lambda::Function", "Properties": {"Layers": ["a", "b", "c", "d", "e", "f"]}}}
)
def a_function_has_at_most_five_layers(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Lambda quotas": five layers a function. Their size is checked in
    tests/infra/test_layers.py.
    """
    functions = of_kind(template, "AWS::Lambda::Function").items()
    yield from (key for key, function in functions if len(function.get("Layers", [])) > 5)


_ADAPTER: Final = re.compile(r":layer:LambdaAdapterLayer\w+?:(\d+)$")


@rule(
    {
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Layers": ["arn:aws:lambda:eu-central-1:753240598075:layer:LambdaAdapterLayerArm64:27"]
            },
        }
    }
)
def the_web_adapter_has_its_security_fixes(template: Template) -> Iterator[str]:
    """aws/aws-lambda-web-adapter, release "v1.0.1": security fixes; its layer is version 28 (27 is 1.0.0)."""
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        for layer in map(readable, function.get("Layers", [])):
            match = _ADAPTER.search(layer)
            if match and int(match[1]) < 28:
                yield f"{key}: {layer}"


@rule({"Version": {"Type": "AWS::Lambda::Version", "Properties": {}}})
def a_version_outlives_the_next_deployment(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::Lambda::Version", and User Guide, "UpdateReplacePolicy attribute": a
    version of other code is a new resource, and the previous one is deleted unless it is retained. Its running
    executions and retries would fail.
    """
    for key, resource in template["Resources"].items():
        if resource["Type"] == "AWS::Lambda::Version" and is_deleted(resource):
            yield key


@rule({"Function": {"Type": "AWS::Lambda::Function", "Properties": {}}})
def a_function_writes_to_a_group_of_its_stack(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Configuring CloudWatch log groups": without a named group Lambda creates
    /aws/lambda/NAME itself, whose lines never expire and which no stack deletes.
    """
    groups = of_kind(template, "AWS::Logs::LogGroup")
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        if named(function.get("LoggingConfig", {}).get("LogGroup")) not in groups:
            yield key


@rule(
    {
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"SnapStart": {"ApplyOn": "PublishedVersions"}, "EphemeralStorage": {"Size": 1024}},
        }
    }
)
def a_snapshot_is_of_a_function_that_can_have_one(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Improving startup performance with Lambda SnapStart": Python from 3.12 on, no Amazon
    EFS, no more than 512 MB of ephemeral storage, no provisioned concurrency.
    """
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        if function.get("SnapStart", {}).get("ApplyOn") != "PublishedVersions":
            continue
        runtime = function.get("Runtime", "")
        able = re.fullmatch(r"python3\.(1[2-9]|[2-9]\d)", runtime)
        if not able or function.get("FileSystemConfigs") or _storage(function) > 512:
            yield key
    for kind in ("AWS::Lambda::Alias", "AWS::Lambda::Version"):
        aliased = of_kind(template, kind).items()
        yield from (key for key, alias in aliased if "ProvisionedConcurrencyConfig" in alias)


def _storage(function: dict[str, Any]) -> int:
    return int(function.get("EphemeralStorage", {}).get("Size", 512))
