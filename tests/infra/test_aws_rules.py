"""Every rule of ``tests/infra/rules`` on every variant of the templates, and on a template that breaks it."""

from __future__ import annotations

import json
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import pytest

from infra.layers import ROOT
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

BROKEN_BY_RELEASE_1: Final = {
    "a_bucket_that_goes_is_emptied",
    "a_global_name_holds_its_region",
    "a_kept_name_does_not_stand_in_its_own_way",
    "a_kept_object_can_be_brought_back_for_35_days_and_no_longer",
    "a_kept_table_can_be_brought_back_as_long_as_its_objects",
    "a_sign_in_leads_to_no_other_machine",
    "a_task_that_is_gone_raises_an_alarm",
    "a_throttle_raises_an_alarm",
    "a_timeout_raises_an_alarm",
    "a_version_outlives_the_next_deployment",
    "a_vpc_has_one_egress_only_gateway",
    "an_administrator_has_a_second_factor",
    "an_alarm_fires_in_a_quiet_hour",
    "an_alarm_may_publish_to_its_topic",
    "an_alarm_reaches_somebody",
    "an_alarm_says_when_it_is_over",
    "an_asynchronous_call_has_a_failure_destination",
    "an_error_that_nobody_is_told_raises_an_alarm",
    "an_open_method_has_a_limit_of_its_own",
    "every_refusal_of_the_gateway_has_the_contracts_form",
    "executions_are_started_by_the_alias",
    "health_starts_no_function",
    "no_client_sends_a_password",
    "page_and_api_share_an_origin",
    "the_firewall_is_there_when_it_is_set",
    "the_gateway_makes_no_log_of_its_own",
    "the_web_adapter_has_its_security_fixes",
    "what_a_schedule_does_not_start_is_missed",
    "what_no_error_tells_raises_an_alarm",
    "what_only_slows_down_raises_an_alarm",
    "whose_task_it_is_can_be_told",
}
"""Rules that release 1's templates break; the others are about later features, or what it had right."""

RELEASE_1: Final = ROOT / "tests" / "fixtures" / "release-1" / "infrastructure"


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


def test_what_release_1_had_wrong_is_seen() -> None:
    """The rules that release 1's templates break fail on the templates that it deployed."""
    stages = {name: RELEASE_1 / name for name in ("staging", "prod")}
    seen = {
        rule.check.__name__
        for rule in RULES
        for stage, folder in stages.items()
        if any(stage in VARIANTS[name][0] for name in rule.variants) and any(findings(rule, folder).values())
    }
    assert seen == BROKEN_BY_RELEASE_1


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_a_rule_sees_what_breaks_it(rule: Rule) -> None:
    assert list(rule.check({"Resources": rule.broken}))
    assert not list(rule.check({"Resources": {}}))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.check.__name__)
def test_a_rule_names_its_source(rule: Rule) -> None:
    assert rule.check.__doc__
    assert '"' in rule.check.__doc__ or "#" in rule.check.__doc__
