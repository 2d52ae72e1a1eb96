"""Every rule of ``tests/infra/rules`` on every variant of the templates, and on a template that breaks it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.infra.rules import (  # noqa: F401 - they register
    alarms,
    bedrock,
    edge,
    events,
    functions,
    identity,
    lifecycle,
    names,
    network,
    releases,
    vectors,
)
from tests.infra.rules.registry import RULES, VARIANTS

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.infra.rules.registry import Rule


@pytest.mark.parametrize(
    ("name", "rule"),
    [
        pytest.param(name, rule, id=f"{name}-{rule.check.__name__}")
        for name in VARIANTS
        for rule in RULES
        if name in rule.variants
    ],
)
def test_a_rule_holds_in_every_stack(name: str, rule: Rule, assembly: Callable[..., Path]) -> None:
    stage, settings = VARIANTS[name]
    faults = findings(rule, assembly(stage, settings))
    assert len(faults) >= 3
    assert not any(faults.values()), faults


def findings(rule: Rule, folder: Path) -> dict[str, list[str]]:
    """A rule's findings by template file."""
    files = sorted(folder.glob("*.template.json"))
    return {path.name: list(rule.check(_template(path))) for path in files}


@cache
def _template(path: Path) -> dict[str, Any]:
    """Parsed once for all rules, which only read it."""
    template: dict[str, Any] = json.loads(path.read_text())
    return template


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_a_rule_sees_what_breaks_it(rule: Rule) -> None:
    assert list(rule.check({"Resources": rule.broken}))
    assert not list(rule.check({"Resources": {}}))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_a_rule_names_its_source(rule: Rule) -> None:
    assert rule.check.__doc__
    assert '"' in rule.check.__doc__ or "#" in rule.check.__doc__
