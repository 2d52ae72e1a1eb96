"""Walks from one deployment of a stage to the next, over a small fake of CloudFormation (`tests.infra.cloudformation`):
each setting on, off and on again, failures and another attempt, two regions, and the end of a stage at each point.

docs/aws/walks.md says what holds.
"""

from __future__ import annotations

import copy
import dataclasses
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import pytest
from dualtrack_stack.cli.aws import decide, facts
from dualtrack_stack.cli.aws.things import STACK_ORDER
from dualtrack_stack.settings import BadSettings, record_name, refuse_to_drop
from dualtrack_stack.stages import StageSettings

from tests.drivers.own_projects import WITH_A_TOOL, WITH_EVERYTHING
from tests.drivers.walked_stages import SETTINGS, STAGE, SWITCHES, Variant, with_everything
from tests.infra.cloudformation import HOME, Account, Refused
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack_stack.project.model import Project

    from tests.drivers.walked_stages import Stacks

PROD: Final = Variant()
EVERYTHING: Final = with_everything()
WITH_SERVER: Final = Variant(settings=SETTINGS["GitHub's MCP server"])
WITH_VECTORS: Final = Variant(settings=SETTINGS["DUALTRACK_COURSE_INDEX"])
WITH_OTHER_LOGS: Final = Variant(changes=STAGE["logs"])
WITH_TOOLS: Final = Variant(project=WITH_EVERYTHING)
ANOTHER_MODEL: Final = Variant(settings=SETTINGS["DUALTRACK_MODEL"])
WITHOUT_PAGE: Final = Variant(changes=STAGE["no page"])
CANARY: Final = "AWS::StepFunctions::StateMachineAlias"
THERE: Final = "eu-central-1"


@dataclass
class Up:
    """``dualtrack aws up`` and its decisions, over an account. ``mends``: versions that a failed update left are
    deleted first. ``agrees``: to the deletion of what is switched off.
    """

    account: Account = field(default_factory=Account)
    region: str = HOME
    mends: bool = True
    agrees: bool = True

    def __call__(self, variant: Variant, stacks: Stacks | None = None) -> list[str]:
        """Deploy it; why stacks of what is switched off stay. Raises `Refused`."""
        for stack in self.here(variant).values():
            if decide.before_deploy(stack) == "delete":
                self.account.delete(stack.name, self.region)
        if self.mends:
            mend(self.account)
        self.account.deploy(stacks or variant.stacks(), self.region)
        return list(self._switched_off(variant))

    def here(self, variant: Variant) -> dict[str, facts.Stack]:
        """The stage's stacks, by their names in `facts.STACKS`."""
        named = {name: f"{facts.prefix(variant.stage)}-{name}" for name in facts.STACKS}
        found = {name: self.account.stacks.get((self.region, full)) for name, full in named.items()}
        return {name: facts.Stack(named[name], stack.status) for name, stack in found.items() if stack}

    def _switched_off(self, variant: Variant) -> Any:
        stacks = self.here(variant)
        for name in decide.switched_off(stacks, variant.settings, page=variant.read().stage.page):
            if reason := decide.why_it_stays(name, self._in_network(stacks[name].name)):
                yield reason
            elif self.agrees:
                self.account.delete(stacks[name].name, self.region)

    def _in_network(self, stack: str) -> set[int]:
        resources = self.account.stacks[self.region, stack].resources.values()
        subnets = [f'"{resource.name}' for resource in resources if resource.kind == "AWS::EC2::Subnet"]
        return {
            number
            for published in self.account.published.values()
            for number, (_, code) in enumerate(published, 1)
            if any(subnet in code for subnet in subnets)
        }


def mend(account: Account) -> None:
    """Delete versions that are newer than every alias."""
    named = {
        resource.properties["FunctionVersion"].removesuffix(".Version")
        for stack in account.stacks.values()
        for resource in stack.resources.values()
        if resource.kind == "AWS::Lambda::Alias"
    }
    for published in account.published.values():
        while published and published[-1][0] not in named:
            published.pop()


def prune(account: Account, keep: int = 2) -> None:
    """Of each function the newest versions stay."""
    for published in account.published.values():
        del published[:-keep]


def down(account: Account, variant: Variant, region: str = HOME) -> None:
    """Empty the stage's buckets, then delete its stacks, importers first."""
    account.full.clear()
    for name in STACK_ORDER:
        if (region, full := f"{facts.prefix(variant.stage)}-{name}") in account.stacks:
            account.delete(full, region)


def record(account: Account, stage: str = "prod") -> dict[str, Any]:
    """What the account holds as the settings of the last deployment."""
    (found,) = (
        resource.properties["Value"]
        for stack in account.stacks.values()
        for resource in stack.resources.values()
        if resource.properties.get("Name") == record_name(stage)
    )
    recorded: dict[str, Any] = json.loads(found)
    return recorded


# ── settings ──────────────────────────────────────────────────────────────────────────────────────


def test_every_field_of_a_stage_is_walked() -> None:
    """A new one needs its line in `tests.drivers.walked_stages`."""
    walked = {name for changes in STAGE.values() for name in changes}
    by_name = {"name", "built_layers", "encrypted_transport"}
    assert walked == {item.name for item in dataclasses.fields(StageSettings)} - by_name


def there_and_back(first: Variant, second: Variant) -> None:
    """On, off and on again; each deployment done once changes nothing when it is done again."""
    up = Up()
    for variant in (first, second, first, second, first):
        up(variant)
        assert up.account.deploy(variant.stacks()) == []
    assert record(up.account, first.stage) == json.loads(first.read().recorded())


@pytest.mark.parametrize("stage", ["prod", "staging"])
def test_all_settings_go_on_off_and_on_again(stage: str) -> None:
    there_and_back(Variant(stage), with_everything(stage))


@pytest.mark.parametrize("switch", STAGE if LONG else ["no page", "no alarms"])
def test_a_field_of_the_stage_changes_and_changes_back(switch: str) -> None:
    """Beside every setting, because each may need what the field takes away."""
    there_and_back(PROD, Variant(changes=STAGE[switch]))
    there_and_back(EVERYTHING, with_everything(**STAGE[switch]))


@pytest.mark.skipif(not LONG, reason="the short form switches all at once: DUALTRACK_LONG=1")
@pytest.mark.parametrize("switch", SWITCHES)
def test_a_setting_goes_on_off_and_on_again(switch: str) -> None:
    there_and_back(PROD, Variant(settings=SWITCHES[switch]))
    rest = {name: value for name, value in EVERYTHING.settings.items() if name not in SWITCHES[switch]}
    there_and_back(EVERYTHING, Variant(settings=rest))


def test_events_may_be_put_on_the_bus_alone_and_only_with_the_setting() -> None:
    def allowed(variant: Variant) -> list[str]:
        resources = [one for template in variant.stacks().values() for one in template["Resources"].values()]
        policies = [one.get("Properties", {}).get("PolicyDocument", {}) for one in resources]
        statements = [statement for policy in policies for statement in policy.get("Statement", ())]
        return [json.dumps(one["Resource"]) for one in statements if "events:PutEvents" in one["Action"]]

    assert allowed(PROD) == []
    (resource,) = allowed(Variant(settings=SWITCHES["values"]))
    assert ":event-bus/default" in resource


@pytest.mark.parametrize("project", [WITH_A_TOOL, WITH_EVERYTHING], ids=["a tool", "everything"])
def test_a_project_gets_tools_loses_them_and_gets_them_again(project: Project) -> None:
    there_and_back(PROD, Variant(project=project))
    there_and_back(Variant(project=project), Variant(project=WITH_A_TOOL))


def as_the_cdk_exports(stacks: Stacks) -> Stacks:
    """With the exports alone that another of these stacks imports, which is what the CDK makes by itself."""
    used = json.dumps(stacks)
    trimmed = copy.deepcopy(stacks)
    for template in trimmed.values():
        for key, output in [*template.get("Outputs", {}).items()]:
            if "Export" in output and f'"Fn::ImportValue": "{output["Export"]["Name"]}"' not in used:
                del template["Outputs"][key]
    return trimmed


@pytest.mark.parametrize(
    ("first", "second", "complaint"),
    [
        (PROD, WITHOUT_PAGE, "in use by dualtrack-prod-page"),
        (EVERYTHING, with_everything(**STAGE["no alarms"]), "in use by dualtrack-prod-chat"),
    ],
)
def test_with_the_cdks_own_exports_it_could_not_be_switched_off(
    first: Variant, second: Variant, complaint: str
) -> None:
    up = Up()
    up(first, as_the_cdk_exports(first.stacks()))
    with pytest.raises(Refused, match=f"cannot be deleted as it is {complaint}"):
        up(second, as_the_cdk_exports(second.stacks()))


def test_the_page_goes_and_comes_back_and_the_api_does_not_move() -> None:
    up = Up()
    up(PROD)
    api = up.account.stacks[HOME, "dualtrack-prod-chat"].exports
    assert up(WITHOUT_PAGE) == []
    assert "page" not in up.here(PROD)
    up(PROD)
    assert "page" in up.here(PROD)
    assert up.account.stacks[HOME, "dualtrack-prod-chat"].exports == api


def test_what_is_switched_off_stays_if_nobody_agrees_and_is_used_again() -> None:
    up = Up(agrees=False)
    up(PROD)
    page = up.account.stacks[HOME, "dualtrack-prod-page"].resources
    up(WITHOUT_PAGE)
    up(PROD)
    assert up.account.stacks[HOME, "dualtrack-prod-page"].resources == page


def test_the_mcp_servers_network_goes_when_no_version_is_in_it() -> None:
    """Published versions keep network interfaces: the stack could not be deleted, nor then updated."""
    up = Up()
    up(WITH_SERVER)
    (reason,) = up(PROD)
    assert "Versions 1 of the function mcp, of earlier releases, are in its network" in reason
    with pytest.raises(Refused, match=r"Subnet.* cannot be deleted"):
        copy.deepcopy(up.account).delete("dualtrack-prod-mcp")
    prune(up.account)
    assert up(PROD) == [reason]
    up(WITH_OTHER_LOGS)
    prune(up.account)
    assert up(WITH_OTHER_LOGS) == []
    assert "mcp" not in up.here(PROD)
    assert up(WITH_SERVER) == []


def test_the_vectors_are_there_when_they_are_switched_on_again() -> None:
    up = Up()
    up(WITH_VECTORS)
    (bucket,) = (item.name for item in up.account.stacks[HOME, "dualtrack-prod-vectors"].resources.values())
    up.account.full.add(bucket)
    (reason,) = up(PROD)
    assert "the courses' vectors" in reason
    up(WITH_VECTORS)
    assert f"{bucket}.VectorBucketArn" in json.dumps(
        up.account.stacks[HOME, "dualtrack-prod-vectors"].exports
    )
    assert bucket not in up.account.left


# ── the record ────────────────────────────────────────────────────────────────────────────────────


def without_record(stacks: Stacks, settings: Mapping[str, str]) -> Stacks:
    """With the settings in the chat stack's metadata in place of a parameter."""
    changed = copy.deepcopy(stacks)
    del changed["dualtrack-prod-data"]["Resources"]["Settings"]
    changed["dualtrack-prod-chat"] = {**changed["dualtrack-prod-chat"], "Metadata": dict(settings)}
    return changed


@pytest.mark.parametrize(
    "switch", SWITCHES if LONG else ["OpenID Connect", "SAML", "SES", "domain", "values"]
)
def test_what_was_set_in_a_shell_is_not_dropped_by_the_next(switch: str) -> None:
    up = Up()
    up(PROD)
    variant = Variant(settings=SWITCHES[switch])
    up(variant)
    recorded = record(up.account)
    assert recorded == {"settings": SWITCHES[switch], "overriding": sorted(SWITCHES[switch])}
    with pytest.raises(BadSettings, match=next(iter(SWITCHES[switch]))):
        refuse_to_drop(recorded, PROD.read())


@pytest.mark.parametrize("switch", ["OpenID Connect", "SAML", "SES", "domain"])
def test_a_templates_metadata_would_not_have_recorded_it(switch: str) -> None:
    account, variant = Account(), Variant(settings=SETTINGS[switch])
    account.deploy(without_record(PROD.stacks(), {}))
    account.deploy(without_record(variant.stacks(), variant.settings))
    assert account.stacks[HOME, "dualtrack-prod-chat"].template["Metadata"] == {}


def test_an_interrupted_deployment_has_recorded_what_it_has_set() -> None:
    """Identity has the provider already, and another shell does not take it away silently."""
    up = Up(account=Account(alarming={"AWS::ApiGateway::RestApi"}))
    variant = Variant(settings=SETTINGS["OpenID Connect"])
    with pytest.raises(Refused):
        up(variant)
    with pytest.raises(BadSettings, match="OIDC_ISSUER"):
        refuse_to_drop(record(up.account), PROD.read())


# ── failures ──────────────────────────────────────────────────────────────────────────────────────


def kinds(variant: Variant) -> list[str]:
    """Every type of resource, each once; in the short form a sample, with those that a release changes."""
    found = {
        resource["Type"]
        for template in variant.stacks().values()
        for resource in template["Resources"].values()
    }
    return sorted(found) if LONG else sorted({*sorted(found)[::9], CANARY, "AWS::Lambda::Alias"} & found)


def fails_once(up: Up, variant: Variant, kind: str) -> bool:
    """A deployment in which the change of such a resource fails; whether one was changed at all."""
    up.account.alarming = {kind}
    try:
        up(variant)
    except Refused:
        return True
    finally:
        up.account.alarming = ()
    return False


def test_a_first_deployment_that_fails_anywhere_is_tried_again() -> None:
    for kind in kinds(EVERYTHING):
        up = Up()
        assert fails_once(up, EVERYTHING, kind), kind
        up(EVERYTHING)


@pytest.mark.parametrize(
    ("first", "second"),
    [(PROD, EVERYTHING), (EVERYTHING, PROD), (PROD, ANOTHER_MODEL), (PROD, WITH_TOOLS), (WITH_TOOLS, PROD)],
)
def test_an_update_that_fails_anywhere_is_tried_again_or_taken_back(first: Variant, second: Variant) -> None:
    deployed = Up()
    deployed(first)
    failed = 0
    for kind in kinds(second):
        up = dataclasses.replace(deployed, account=copy.deepcopy(deployed.account))
        if fails_once(up, second, kind):
            failed += 1
            back = dataclasses.replace(up, account=copy.deepcopy(up.account))
            back(first)
            up(second)
    assert failed > 1


def test_without_the_repair_a_release_that_was_rolled_back_cannot_be_deployed() -> None:
    """Nor can a mended one: the functions that it does not change are those of the failed attempt."""
    up = Up(mends=False)
    up(PROD)
    assert fails_once(up, ANOTHER_MODEL, CANARY)
    with pytest.raises(Refused, match=r"A version for this Lambda function exists \( 2 \)"):
        up(ANOTHER_MODEL)
    up.mends = True
    up(ANOTHER_MODEL)


# ── two regions, and the end ──────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "variant", [Variant("staging"), EVERYTHING, WITH_TOOLS], ids=["staging", "prod", "tools"]
)
def test_two_regions_live_and_end_apart(variant: Variant) -> None:
    account = Account()
    here, there = Up(account), Up(account, THERE)
    for up in (here, there, here, there):
        up(variant)
    before = copy.deepcopy([account.stacks[key] for key in account.stacks if key[0] == THERE])
    down(account, variant)
    assert [account.stacks[key] for key in account.stacks if key[0] == THERE] == before
    assert {region for region, _ in account.stacks} == {THERE}
    here(variant)


@pytest.mark.parametrize("stage", ["staging", "prod"])
@pytest.mark.parametrize("failing", ["", "AWS::ApiGateway::Stage", CANARY])
def test_a_stage_ends_at_any_point_and_begins_again(stage: str, failing: str) -> None:
    """New, with everything, switched off again; after a deployment that was done, or one that failed."""
    plain, everything = Variant(stage), with_everything(stage)
    for walked in ([plain], [plain, everything], [everything, plain]):
        up = Up(agrees=False)
        for variant in walked[:-1]:
            up(variant)
        if not (failing and fails_once(up, walked[-1], failing)):
            up(walked[-1])
        down(up.account, plain)
        assert not up.account.stacks
        up(plain)


def test_a_filled_bucket_of_staging_goes_only_when_it_is_emptied() -> None:
    staging = Variant("staging", SETTINGS["DUALTRACK_COURSE_INDEX"])
    up = Up()
    up(staging)
    (bucket,) = (
        item.name for item in up.account.stacks[HOME, "dualtrack-staging-vectors"].resources.values()
    )
    up.account.full.add(bucket)
    for name in ("page", "chat"):
        up.account.delete(f"dualtrack-staging-{name}")
    with pytest.raises(Refused, match="CourseVectors cannot be deleted"):
        up.account.delete("dualtrack-staging-vectors")
    down(up.account, staging)
    assert not up.account.stacks


# ── the fake can refuse ───────────────────────────────────────────────────────────────────────────


def template(kind: str, name: str = "a", **more: Any) -> dict[str, Any]:
    """One resource, its name exported."""
    names = {"AWS::SSM::Parameter": {"Name": name, "Type": "String", "Value": "v"}}
    resource = {"Type": kind, "Properties": names.get(kind, {"TopicName": name}), **more}
    return {
        "Resources": {"One": resource},
        "Outputs": {"Name": {"Value": {"Ref": "One"}, "Export": {"Name": "x"}}},
    }


PARAMETER: Final = "AWS::SSM::Parameter"
IMPORTER: Final[dict[str, Any]] = {
    "Resources": {"Two": {"Type": PARAMETER, "Properties": {"Name": "b", "Value": {"Fn::ImportValue": "x"}}}}
}


def test_an_export_in_use_is_neither_changed_nor_dropped_nor_its_stack_deleted() -> None:
    account = Account()
    account.deploy({"A": template(PARAMETER), "B": IMPORTER})
    for replaced in ({**template(PARAMETER), "Outputs": {}}, template(PARAMETER, "c")):
        with pytest.raises(Refused, match=r"Export x cannot be (deleted|updated) as it is in use by B"):
            account.deploy({"A": replaced})
        assert account.stacks[HOME, "A"].status == "UPDATE_ROLLBACK_COMPLETE"
    with pytest.raises(Refused, match="in use by B"):
        account.delete("A")
    account.delete("B")
    account.delete("A")
    assert not account.stacks
    assert not account.taken


def test_what_is_imported_must_be_there() -> None:
    account = Account()
    with pytest.raises(Refused, match="No export named x"):
        account.deploy({"B": IMPORTER})
    with pytest.raises(Refused, match="ROLLBACK_COMPLETE state and can not be updated"):
        account.deploy({"B": IMPORTER})


@pytest.mark.parametrize(("policy", "is_left"), [("Retain", True), ("RetainExceptOnCreate", False)])
def test_a_kept_name_stands_in_the_way_of_the_next_attempt(policy: str, is_left: bool) -> None:
    account = Account()
    failing = template(PARAMETER, DeletionPolicy=policy)
    failing["Resources"]["Z"] = {"Type": "AWS::SNS::Topic", "DependsOn": "One"}
    account.alarming = {"AWS::SNS::Topic"}
    with pytest.raises(Refused, match="alarm"):
        account.deploy({"A": failing})
    account.delete("A")
    account.alarming = ()
    if is_left:
        with pytest.raises(Refused, match="already exists"):
            account.deploy({"A": failing})
    else:
        account.deploy({"A": failing})
        account.delete("A")
        with pytest.raises(Refused, match="already exists"):
            account.deploy({"A": failing})


def test_metadata_alone_is_no_change_and_a_resource_is() -> None:
    account = Account()
    account.deploy({"A": template(PARAMETER)})
    assert account.deploy({"A": {**template(PARAMETER), "Metadata": {"a": 1}}}) == []
    assert "Metadata" not in account.stacks[HOME, "A"].template
    changed = {**template(PARAMETER, Metadata={"a": 1}), "Metadata": {"a": 1}}
    assert account.deploy({"A": changed}) == ["A"]
    assert account.stacks[HOME, "A"].template["Metadata"] == {"a": 1}
