"""One account, two regions: the same stage deployed twice."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from tests.infra.rules.names import GLOBAL_NAMES, global_names
from tests.infra.rules.registry import ALL_SET

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ACCOUNT = "123456789012"


def in_region(value: Any, region: str) -> Any:
    """A template value with account and region resolved as in CloudFormation."""
    if isinstance(value, list):
        return [in_region(item, region) for item in value]
    if not isinstance(value, dict):
        return value
    known = {"AWS::Region": region, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws"}
    if value.get("Ref") in known:
        return known[value["Ref"]]
    resolved = {key: in_region(item, region) for key, item in value.items()}
    if "Fn::Join" in resolved and all(isinstance(part, str) for part in resolved["Fn::Join"][1]):
        return resolved["Fn::Join"][0].join(resolved["Fn::Join"][1])
    return resolved


def deployed(folder: Path, region: str) -> set[tuple[str, str]]:
    """(type, name) of everything whose name must be unique across regions."""
    names = set()
    for path in folder.glob("*.template.json"):
        template = in_region(json.loads(path.read_text()), region)
        kinds = {key: resource["Type"] for key, resource in template["Resources"].items()}
        names |= {(kinds[key], name) for key, name in global_names(template)}
    return names


def test_two_regions_share_no_name(assembly: Callable[..., Path]) -> None:
    for stage, settings in (("staging", {}), ("prod", ALL_SET)):
        folder = assembly(stage, settings)
        here, there = deployed(folder, "us-east-1"), deployed(folder, "eu-central-1")
        assert {kind for kind, _ in here} >= {
            "AWS::CloudWatch::Dashboard",
            "AWS::CloudFront::OriginAccessControl",
        }
        assert not here & there


def test_a_shared_name_is_detected(tmp_path: Path) -> None:
    kind = next(kind for kind, path in GLOBAL_NAMES.items() if path == "RoleName")
    resources = {"Role": {"Type": kind, "Properties": {"RoleName": "runner"}}}
    (tmp_path / "A.template.json").write_text(json.dumps({"Resources": resources}))
    assert deployed(tmp_path, "us-east-1") & deployed(tmp_path, "eu-central-1")
