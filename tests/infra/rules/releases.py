"""Versions and aliases of state machines and functions: what a release must keep, and what it may not mix."""

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
    """The logical id of each version's machine, by the version's."""
    return {key: named(one["StateMachineArn"]) for key, one in of_kind(template, _VERSION).items()}


def _preferences(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    for key, alias in of_kind(template, _ALIAS).items():
        yield key, alias.get("DeploymentPreference", {})


@rule({"Version": {"Type": _VERSION, "DeletionPolicy": "Delete", "Properties": {"StateMachineArn": "x"}}})
def a_version_of_a_machine_outlives_the_next_deployment(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineVersion", and User Guide,
    "UpdateReplacePolicy attribute": another revision is another resource, and the version before is deleted
    unless it is retained; the
    alias could not go back to it.
    """
    for key, resource in template["Resources"].items():
        if resource["Type"] == _VERSION and (
            is_deleted(resource) or resource.get("UpdateReplacePolicy") != "Retain"
        ):
            yield key


@rule({"Version": {"Type": _VERSION, "Properties": {"StateMachineArn": "x"}}})
def a_version_is_published_with_every_revision(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineVersion": a version is published when the
    resource is made, and another StateMachineRevisionId makes another; without one the first version is the last.
    """
    for key, version in of_kind(template, _VERSION).items():
        revision = version.get("StateMachineRevisionId")
        if named(version["StateMachineArn"]) != named(revision):
            yield key


@rule({"Alias": {"Type": _ALIAS, "Properties": {"DeploymentPreference": {}, "RoutingConfiguration": []}}})
def an_alias_is_moved_in_one_way(template: Template) -> Iterator[str]:
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineAlias": RoutingConfiguration and
    DeploymentPreference exclude each other, and one of them must be there.
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
    """CloudFormation Template Reference, "AWS::StepFunctions::StateMachineAlias DeploymentPreference": alarms
    are named, and one that does not exist counts as silent, as one does whose ARN is given.
    """
    alarms = [{"Ref": key} for key in of_kind(template, "AWS::CloudWatch::Alarm")]
    for key, preference in _preferences(template):
        if preference.get("Type") in ("CANARY", "LINEAR"):
            watched = preference.get("Alarms", [])
            if not watched or any(one not in alarms for one in watched):
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
    the definition; an alias of a function in it is followed when the state is entered (aws/aws-cdk#17515).
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
    """aws/aws-cdk#17515: a machine's role is the one of today, for executions of earlier versions too; a permission for
    today's versions of the functions alone takes theirs away in the middle of a chat.
    """
    policies = of_kind(template, "AWS::IAM::Policy").values()
    for machine in set(_versions(template).values()):
        properties = of_kind(template, _MACHINE)[machine]
        role = named(properties["RoleArn"])
        held = [one for one in policies if role in map(named, one["Roles"])]
        may = [
            resource
            for one in statements(held)
            if "lambda:InvokeFunction" in many(one["Action"])
            for resource in many(one["Resource"])
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
    machine's ARN is asked for, not the alias'. No condition on the qualifier: the role is the one of versions too that
    start without one until the deployment is through.
    """
    versions = _versions(template)
    for key, machine, starter in _starters(template):
        if machine not in versions.values():
            continue
        held = [
            one
            for one in of_kind(template, "AWS::IAM::Policy").values()
            if named(starter["Role"]) in map(named, one["Roles"])
        ]
        may = [
            one
            for one in allowed(statements(held), "states:StartExecution", machine)
            if "Condition" not in one
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
    """Step Functions Developer Guide, "How Step Functions associates executions with a version or alias": by the
    machine's own ARN the latest revision is started, whatever the alias says. And so who starts them comes after the
    workflow has moved: readers before writers.
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
    stateMachineArn of an execution is without version and alias; those stand in fields of their own.
    """
    machines = of_kind(template, _MACHINE)
    for key, found in of_kind(template, "AWS::Events::Rule").items():
        arns = found.get("EventPattern", {}).get("detail", {}).get("stateMachineArn", [])
        if any(named(arn) not in machines for arn in arns):
            yield key
