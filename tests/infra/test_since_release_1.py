"""What a stage of release 1 keeps when it is updated to the templates of today (DESIGN 9).

The templates of release 1 are in tests/fixtures/release-1/infrastructure and are never rewritten.
"""

from __future__ import annotations

import copy
import json
from typing import TYPE_CHECKING, Any, Final

import pytest
from cfnlint.schema.manager import PROVIDER_SCHEMA_MANAGER

from infra.layers import ROOT
from tests.drivers.templates import WITH_MCP

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Template = dict[str, Any]

RELEASE_1: Final = ROOT / "tests" / "fixtures" / "release-1" / "infrastructure"
STAGES: Final[dict[str, dict[str, str]]] = {"local": {}, "staging": {}, "prod": WITH_MCP}
HOLDING: Final = frozenset(
    {
        # replacing them would lose their content
        "AWS::DynamoDB::Table", "AWS::S3::Bucket", "AWS::KMS::Key",
        "AWS::Cognito::UserPool", "AWS::Cognito::UserPoolClient", "AWS::Cognito::UserPoolDomain",
        "AWS::Logs::LogGroup",
        # running executions name them by their ARN, and clients by their address
        "AWS::StepFunctions::StateMachine", "AWS::Lambda::Function", "AWS::Lambda::Alias",
        "AWS::ApiGateway::RestApi", "AWS::CloudFront::Distribution",
    }
)  # fmt: skip
"""Types whose replacement loses something. Secrets are not included: keys moved to the Parameter Store, prod's old
secrets remain in the account (Retain), and docs/aws/settings.md says how to move a key.
"""


def losses(old: Template, new: Template) -> Iterator[str]:
    """What an update would delete, replace, or cannot do in one step."""
    for key, resource in old["Resources"].items():
        if resource["Type"] in HOLDING:
            yield from _lost(key, resource, new["Resources"].get(key))
    gone = exports(old) - exports(new)
    yield from (f"the export {name} is gone" for name in sorted(gone))


def _lost(key: str, old: Template, new: Template | None) -> Iterator[str]:
    """CloudFormation User Guide, "Update behaviors of stack resources": a new logical id or type is a new resource, and
    so is a new value of a property that is create-only in the type's schema.
    """
    if new is None or new["Type"] != old["Type"]:
        yield f"{key} is gone"
        return
    for name in _create_only(old["Type"]):
        before, after = old["Properties"].get(name), new["Properties"].get(name)
        if before != after:
            yield f"{key} would be replaced: {name} was {before}, is {after}"
    if old["Type"] == "AWS::DynamoDB::Table":
        yield from _table_losses(key, old["Properties"], new["Properties"])


def _create_only(kind: str) -> set[str]:
    schema = PROVIDER_SCHEMA_MANAGER.get_resource_schema("us-east-1", kind).schema
    return {pointer.split("/")[2] for pointer in schema.get("createOnlyProperties") or ()}


def _table_losses(key: str, old: Template, new: Template) -> Iterator[str]:
    """CloudFormation Template Reference, AWS::DynamoDB::Table: a new KeySchema replaces the table; "Updating
    GlobalSecondaryIndexes": one index can be created or deleted per update.
    """
    if old["KeySchema"] != new["KeySchema"]:
        yield f"{key} would be replaced: another KeySchema"
    before, after = (
        {json.dumps(index) for index in table.get("GlobalSecondaryIndexes", [])} for table in (old, new)
    )
    if before - after:
        yield f"{key} loses an index, or changes one"
    if len(after - before) > 1:
        yield f"{key} gets {len(after - before)} indexes at once"


def exports(template: Template) -> set[str]:
    outputs = template.get("Outputs", {}).values()
    return {output["Export"]["Name"] for output in outputs if "Export" in output}


@pytest.mark.parametrize("stage", STAGES)
def test_an_update_of_release_1_loses_nothing(stage: str, assembly: Callable[..., Path]) -> None:
    today = assembly(stage, STAGES[stage])
    files = sorted((RELEASE_1 / stage).glob("*.template.json"))
    assert files
    lost = {
        path.name: list(losses(json.loads(path.read_text()), json.loads((today / path.name).read_text())))
        for path in files
    }
    assert not any(lost.values()), lost


def _renamed(template: Template) -> None:
    resources = template["Resources"]
    (key,) = [key for key in resources if key.startswith("History")]
    resources["Another"] = resources.pop(key)


def _named_anew(template: Template) -> None:
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::DynamoDB::Table":
            resource["Properties"]["TableName"] = "another"


def _keyed_anew(template: Template) -> None:
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::DynamoDB::Table":
            resource["Properties"]["KeySchema"].pop()


def _indexed_twice(template: Template) -> None:
    for resource in template["Resources"].values():
        if resource["Type"] == "AWS::DynamoDB::Table":
            indexes = resource["Properties"].setdefault("GlobalSecondaryIndexes", [])
            indexes += [{"IndexName": "one"}, {"IndexName": "two"}]


def _without_index(template: Template) -> None:
    for resource in template["Resources"].values():
        resource["Properties"].pop("GlobalSecondaryIndexes", None)


def _without_exports(template: Template) -> None:
    for output in template["Outputs"].values():
        output.pop("Export", None)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_renamed, "is gone"),
        (_named_anew, "would be replaced: TableName"),
        (_keyed_anew, "another KeySchema"),
        (_indexed_twice, "gets 2 indexes at once"),
        (_without_index, "loses an index"),
        (_without_exports, "the export dualtrack-prod-bodies-arn is gone"),
    ],
)
def test_a_loss_is_detected(change: Callable[[Template], None], complaint: str) -> None:
    old = json.loads((RELEASE_1 / "prod" / "Data.template.json").read_text())
    new = copy.deepcopy(old)
    assert not list(losses(old, new))
    change(new)
    assert [loss for loss in losses(old, new) if complaint in loss]
