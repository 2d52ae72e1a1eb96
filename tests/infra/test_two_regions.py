"""One account, two regions: the same stage beside itself."""

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
    """A value of a template as CloudFormation resolves it there, as far as account and region go."""
    if isinstance(value, list):
        return [in_region(one, region) for one in value]
    if not isinstance(value, dict):
        return value
    known = {"AWS::Region": region, "AWS::AccountId": ACCOUNT, "AWS::Partition": "aws"}
    if value.get("Ref") in known:
        return known[value["Ref"]]
    resolved = {key: in_region(one, region) for key, one in value.items()}
    if "Fn::Join" in resolved and all(isinstance(part, str) for part in resolved["Fn::Join"][1]):
        return resolved["Fn::Join"][0].join(resolved["Fn::Join"][1])
    return resolved


def deployed(folder: Path, region: str) -> set[tuple[str, str]]:
    """(type, name) of everything whose name is not the region's alone."""
    found = set()
    for path in folder.glob("*.template.json"):
        template = in_region(json.loads(path.read_text()), region)
        kinds = {key: resource["Type"] for key, resource in template["Resources"].items()}
        found |= {(kinds[key], name) for key, name in global_names(template)}
    return found


def test_a_second_region_takes_no_name_of_the_first(assembly: Callable[..., Path]) -> None:
    for stage, settings in (("staging", {}), ("prod", ALL_SET)):
        folder = assembly(stage, settings)
        here, there = deployed(folder, "us-east-1"), deployed(folder, "eu-central-1")
        assert {kind for kind, _ in here} >= {
            "AWS::CloudWatch::Dashboard",
            "AWS::CloudFront::OriginAccessControl",
        }
        assert not here & there


def test_a_name_in_common_would_be_seen(tmp_path: Path) -> None:
    kind = next(kind for kind, path in GLOBAL_NAMES.items() if path == "RoleName")
    resources = {"Role": {"Type": kind, "Properties": {"RoleName": "runner"}}}
    (tmp_path / "A.template.json").write_text(json.dumps({"Resources": resources}))
    assert deployed(tmp_path, "us-east-1") & deployed(tmp_path, "eu-central-1")
