"""The function of a project's tools in the templates: what its settings say, and nothing for any other function."""

from __future__ import annotations

import copy
import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack_stack.costs import idle_lines, total
from dualtrack_stack.local.own import adapt
from dualtrack_stack.local.synth import SHIPPED

from tests.drivers.own_projects import OWN, WITH_A_TOOL, WITH_EVERYTHING
from tests.drivers.templates import Stage, readable
from tests.drivers.walked_stages import Variant
from tests.infra.test_permissions import statements

if TYPE_CHECKING:
    from collections.abc import Mapping


def of_stage(stage: str, project: Any = WITH_EVERYTHING) -> Stage:
    return Stage(stage, Variant(stage, project=project).folder())


def functions(stage: Stage) -> Mapping[str, Any]:
    found = stage.resources("Chat", "AWS::Lambda::Function").values()
    return {f["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]: f for f in found if "Environment" in f}


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_it_has_what_the_project_says_and_its_secrets_names_alone(name: str) -> None:
    own = functions(of_stage(name))["own"]
    variables = own["Environment"]["Variables"]
    assert (own["MemorySize"], own["Timeout"]) == (1024, 40)
    assert own["VpcConfig"] == {"SubnetIds": [*OWN.subnets], "SecurityGroupIds": [*OWN.security_groups]}
    assert variables["TICKETS"] == f"tickets-{name}"
    assert variables["TOOL_VARIABLES"] == "TICKETS"
    assert variables["TOOL_SECRETS"] == f"/dualtrack-{name}/tools/STRIPE_KEY"
    assert "STRIPE_KEY" not in variables


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_its_role_may_do_besides_what_the_project_allows_in_this_stage(name: str) -> None:
    plain = statements(of_stage(name, WITH_A_TOOL), "Own")
    added = [statement for statement in statements(of_stage(name), "Own") if statement not in plain]
    table = f"arn:aws:dynamodb:AWS::Region:AWS::AccountId:table/tickets-{name}"
    secret = f"arn:AWS::Partition:ssm:AWS::Region:AWS::AccountId:parameter/dualtrack-{name}/tools/STRIPE_KEY"
    ((network, _),) = [statement for statement in added if statement[1] == {"*"}]  # with that of traces
    assert ({"dynamodb:GetItem", "dynamodb:PutItem"}, {table}) in added
    assert ({"dynamodb:Query"}, {f"{table}/index/*"}) in added
    assert ({"ssm:GetParameter"}, {secret}) in added
    assert len(added) == 4
    assert len([action for action in network if action.startswith("ec2:")]) == 6


def without_own(template: Mapping[str, Any]) -> dict[str, Any]:
    """Every resource but the function's own; of the machine all but who is called."""
    kept = {}
    for key, resource in copy.deepcopy(template["Resources"]).items():
        if re.match(r"Own(Function|Role|Live|Logs)", key) or key.startswith("ChatMachineRoleDefaultPolicy"):
            continue
        if resource["Type"] == "AWS::StepFunctions::StateMachine":
            resource["Properties"]["DefinitionSubstitutions"].pop("Own", None)
        if resource["Type"] == "AWS::Lambda::Function":
            variables = resource["Properties"].get("Environment", {}).get("Variables", {})
            variables.pop("FUNCTION_SIZES", None)
        kept[key] = resource
    return kept


@pytest.mark.parametrize("name", ["staging", "prod"])
def test_no_other_function_gets_any_of_it(name: str) -> None:
    none, every = Variant(name).stacks(), Variant(name, project=WITH_EVERYTHING).stacks()
    assert none.keys() == every.keys()
    for stack in none:
        text = json.dumps(without_own(every[stack]))
        assert "STRIPE_KEY" not in text
        assert "tickets" not in text
        if not stack.endswith("-chat"):
            assert every[stack] == none[stack]
    for key, resource in without_own(none[f"dualtrack-{name}-chat"]).items():
        if resource["Type"] in ("AWS::IAM::Policy", "AWS::IAM::Role", "AWS::KMS::Key"):
            assert every[f"dualtrack-{name}-chat"]["Resources"][key] == resource


def called(stage: Stage) -> str:
    machines = stage.resources("Chat", "AWS::StepFunctions::StateMachine").values()
    (own,) = [
        machine["DefinitionSubstitutions"]["Own"]
        for machine in machines
        if "Own" in machine["DefinitionSubstitutions"]
    ]
    return readable(own)


def test_without_tools_of_its_own_a_stage_has_no_such_function_and_calls_go_to_tool() -> None:
    none, some = of_stage("prod", None), of_stage("prod", WITH_A_TOOL)
    assert "own" not in functions(none)
    assert called(none).startswith("ToolFunctionCurrentVersion")
    assert called(some).startswith("OwnFunctionCurrentVersion")


def test_it_costs_nothing_while_no_tool_is_called() -> None:
    costs = [
        total(idle_lines([*Variant("prod", project=project).stacks().values()]))
        for project in (None, WITH_EVERYTHING)
    ]
    assert costs[0] == costs[1]


def shipped() -> dict[str, Any]:
    body: dict[str, Any] = json.loads((SHIPPED / "Chat.template.json").read_text())
    return body


def by_name(body: Mapping[str, Any]) -> dict[str, Any]:
    found = [r["Properties"] for r in body["Resources"].values() if r["Type"] == "AWS::Lambda::Function"]
    return {f["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]: f for f in found if "Environment" in f}


def test_the_local_template_is_changed_by_the_same_words() -> None:
    body = shipped()
    adapt(body, OWN)
    own = by_name(body)["own"]
    variables = own["Environment"]["Variables"]
    assert (own["MemorySize"], own["Timeout"], variables["TICKETS"]) == (1024, 40, "tickets-local")
    assert "VpcConfig" not in own
    assert json.loads(by_name(body)["api"]["Environment"]["Variables"]["FUNCTION_SIZES"])["own"] == 1024
    (policy,) = [
        r["Properties"]["PolicyDocument"]["Statement"]
        for key, r in body["Resources"].items()
        if re.match(r"OwnRoleDefaultPolicy[0-9A-F]{8}$", key)
    ]
    table = "arn:aws:dynamodb:us-east-1:000000000000:table/tickets-local"
    secret = "arn:aws:ssm:us-east-1:000000000000:parameter/dualtrack-local/tools/STRIPE_KEY"
    assert [statement["Resource"] for statement in policy[-3:]] == [[table], [f"{table}/index/*"], [secret]]
    plain = without_own(shipped())
    assert without_own(body) == plain


def test_a_project_without_settings_leaves_the_local_template_as_it_is() -> None:
    body = shipped()
    adapt(body, replace(OWN, allow=(), secrets=(), environment={}, memory=512, seconds=55))
    assert body == shipped()
