"""Versions and aliases of state machines and functions: what a release must keep, and must not mix."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.infra.rules.registry import (
    IN_PROD,
    ON_AWS,
    allowed,
    dependencies,
    is_deleted,
    many,
    named,
    of_kind,
    rule,
    statements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template

_ALIAS: Final = "AWS::StepFunctions::StateMachineAlias"
_VERSION: Final = "AWS::StepFunctions::StateMachineVersion"
_MACHINE: Final = "AWS::StepFunctions::StateMachine"


def _versions(template: Template) -> dict[str, str]:
    """Logical id of each version → that of its machine."""
    return {key: named(version["StateMachineArn"]) for key, version in of_kind(template, _VERSION).items()}


def _preferences(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, alias in of_kind(template, _ALIAS).items():
        yield key, alias.get("DeploymentPreference", {})


@rule({"Version": {"Type": _VERSION, "DeletionPolicy": "Delete", "Properties": {"StateMachineArn": "x"}}})
def a_version_of_a_machine_outlives_the_next_deployment(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineVersion", and User Guide,
    "UpdateReplacePolicy attribute": a new revision is a new resource, and the previous version is deleted unless it is
    retained; the alias could not roll back to it.
    """
    for key, resource in template["Resources"].items():
        if resource["Type"] == _VERSION and (
            is_deleted(resource) or resource.get("UpdateReplacePolicy") != "Retain"
        ):
            yield key


@rule({"Version": {"Type": _VERSION, "Properties": {"StateMachineArn": "x"}}})
def a_version_is_published_with_every_revision(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineVersion": a version is published when the
    resource is created, and a new StateMachineRevisionId creates another; without one only the first is published.
    """
    for key, version in of_kind(template, _VERSION).items():
        revision = version.get("StateMachineRevisionId")
        if named(version["StateMachineArn"]) != named(revision):
            yield key


@rule({"Alias": {"Type": _ALIAS, "Properties": {"DeploymentPreference": {}, "RoutingConfiguration": []}}})
def an_alias_is_moved_in_one_way(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineAlias": RoutingConfiguration and
    DeploymentPreference exclude each other, and one of them is required.
    """
    for key, alias in of_kind(template, _ALIAS).items():
        if ("RoutingConfiguration" in alias) == ("DeploymentPreference" in alias):
            yield key


@rule(
    {
        "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {}},
        "Alias": {
            "Type": _ALIAS,
            "Properties": {
                "DeploymentPreference": {"Type": "CANARY", "Alarms": [{"Fn::GetAtt": ["Alarm", "Arn"]}]}
            },
        },
    },
    IN_PROD,
)
def a_release_goes_back_on_alarms_that_there_are(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineAlias DeploymentPreference": alarms are given
    by name; one that does not exist, or is given by ARN, counts as not firing.
    """
    alarms = [{"Ref": key} for key in of_kind(template, "AWS::CloudWatch::Alarm")]
    for key, preference in _preferences(template):
        if preference.get("Type") in ("CANARY", "LINEAR"):
            watched = preference.get("Alarms", [])
            if not watched or any(alarm not in alarms for alarm in watched):
                yield key


@rule(
    {
        "Machine": {"Type": _MACHINE, "Properties": {"DefinitionSubstitutions": {"Turn": {"Ref": "Live"}}}},
        "Version": {"Type": _VERSION, "Properties": {"StateMachineArn": {"Ref": "Machine"}}},
        "Live": {"Type": "AWS::Lambda::Alias", "Properties": {}},
    }
)
def no_chat_mixes_releases(template: Template) -> Iterator[str]:
    """Step Functions Developer Guide, "State machine versions in Step Functions workflows": a version is a snapshot of
    the definition; a function's alias in it is resolved when the state is entered (aws/aws-cdk#17515).
    """
    published = of_kind(template, "AWS::Lambda::Version")
    for machine in set(_versions(template).values()):
        put_in = of_kind(template, _MACHINE)[machine]["DefinitionSubstitutions"]
        yield from (f"{machine}: {name}" for name, arn in put_in.items() if named(arn) not in published)


@rule(
    {
        "Function": {"Type": "AWS::Lambda::Function", "Properties": {}},
        "Published": {
            "Type": "AWS::Lambda::Version",
            "Properties": {"FunctionName": {"Ref": "Function"}},
        },
        "Machine": {
            "Type": _MACHINE,
            "Properties": {
                "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]},
                "DefinitionSubstitutions": {"Turn": {"Ref": "Published"}},
            },
        },
        "Version": {"Type": _VERSION, "Properties": {"StateMachineArn": {"Ref": "Machine"}}},
    }
)
def an_execution_that_runs_may_still_call_its_versions(template: Template) -> Iterator[str]:
    """aws/aws-cdk#17515: executions of earlier versions also use the machine's current role; a permission for only the
    current versions of the functions would make them fail in the middle of a chat.
    """
    policies = of_kind(template, "AWS::IAM::Policy").values()
    for machine in set(_versions(template).values()):
        properties = of_kind(template, _MACHINE)[machine]
        role = named(properties["RoleArn"])
        held = [policy for policy in policies if role in map(named, policy["Roles"])]
        may = [
            resource
            for statement in statements(held)
            if "lambda:InvokeFunction" in many(statement["Action"])
            for resource in many(statement["Resource"])
        ]
        for name, arn in properties["DefinitionSubstitutions"].items():
            published = of_kind(template, "AWS::Lambda::Version").get(named(arn))
            if published is None:
                continue
            function = named(published["FunctionName"])
            if {"Fn::Join": ["", [{"Fn::GetAtt": [function, "Arn"]}, ":*"]]} not in may:
                yield f"{machine}: {name}"


@rule(
    {
        "Version": {"Type": _VERSION, "Properties": {"StateMachineArn": {"Ref": "Machine"}}},
        "Machine": {"Type": _MACHINE, "Properties": {}},
        "Alias": {
            "Type": _ALIAS,
            "Properties": {
                "DeploymentPreference": {"StateMachineVersionArn": {"Fn::GetAtt": ["Version", "Arn"]}}
            },
        },
        "Api": {
            "Type": "AWS::Lambda::Function",
            "Properties": {
                "Role": {"Fn::GetAtt": ["Role", "Arn"]},
                "Environment": {"Variables": {"STATE_MACHINE_ARN": {"Fn::GetAtt": ["Alias", "Arn"]}}},
            },
        },
    }
)
def who_starts_by_an_alias_may_start_the_machine(template: Template) -> Iterator[str]:
    """Step Functions Developer Guide, "Authorization for versions and aliases in Step Functions workflows": the
    permission is on the machine's ARN, not the alias's. No condition on the qualifier: function versions that start
    without one use the same role until the deployment is complete.
    """
    versions = _versions(template)
    for key, machine, starter in _starters(template):
        if machine not in versions.values():
            continue
        held = [
            policy
            for policy in of_kind(template, "AWS::IAM::Policy").values()
            if named(starter["Role"]) in map(named, policy["Roles"])
        ]
        may = [
            statement
            for statement in allowed(statements(held), "states:StartExecution", machine)
            if "Condition" not in statement
        ]
        if not may:
            yield key


def _starters(template: Template) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """(logical id, machine, properties) of each function that starts executions of a machine by its alias."""
    versions = _versions(template)
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        variables = function.get("Environment", {}).get("Variables", {})
        for name in ("STATE_MACHINE_ARN", "CORPUS_MACHINE_ARN"):
            alias = of_kind(template, _ALIAS).get(named(variables.get(name)))
            if alias:
                version = named(alias["DeploymentPreference"]["StateMachineVersionArn"])
                yield key, versions[version], function


@rule(
    {
        "Machine": {"Type": _MACHINE, "Properties": {}},
        "Version": {"Type": _VERSION, "Properties": {"StateMachineArn": {"Ref": "Machine"}}},
        "Api": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Environment": {"Variables": {"STATE_MACHINE_ARN": {"Ref": "Machine"}}}},
        },
    },
    ON_AWS,
)
def executions_are_started_by_the_alias(template: Template) -> Iterator[str]:
    """Step Functions Developer Guide, "How Step Functions associates executions with a version or alias": the machine's
    own ARN starts the latest revision, regardless of the alias. Starters are therefore updated after the alias: readers
    before writers.
    """
    aliases = of_kind(template, _ALIAS)
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        variables = function.get("Environment", {}).get("Variables", {})
        arn = variables.get("STATE_MACHINE_ARN")
        if arn and not dependencies(template, key) & set(aliases):
            yield key


@rule(
    {
        "Machine": {"Type": _MACHINE, "Properties": {}},
        "Alias": {"Type": _ALIAS, "Properties": {}},
        "Rule": {
            "Type": "AWS::Events::Rule",
            "Properties": {
                "EventPattern": {"detail": {"stateMachineArn": [{"Fn::GetAtt": ["Alias", "Arn"]}]}}
            },
        },
    }
)
def an_end_is_heard_of_by_the_machines_own_arn(template: Template) -> Iterator[str]:
    """Step Functions Developer Guide, "How Step Functions associates executions with a version or alias":
    stateMachineArn of an execution has no version and alias; those are separate fields.
    """
    machines = of_kind(template, _MACHINE)
    for key, event_rule in of_kind(template, "AWS::Events::Rule").items():
        arns = event_rule.get("EventPattern", {}).get("detail", {}).get("stateMachineArn", [])
        if any(named(arn) not in machines for arn in arns):
            yield key
