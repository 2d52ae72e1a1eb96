"""What a stage costs: upper bounds, and that the bills add up (DESIGN 9)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner
from dualtrack.streaming import delta_writer
from dualtrack_stack import prices as price_module
from dualtrack_stack.cli.aws_commands import as_data, bills_of, borrowed_note, region_of
from dualtrack_stack.cli.main import main
from dualtrack_stack.costs import (
    GROWN,
    TWO_TOOLS,
    chat_lines,
    cold_seconds,
    counted,
    idle_lines,
    junk_lines,
    runs_a_month,
    sizes,
    stream_lines,
    title_lines,
    total,
    unpriced,
)
from dualtrack_stack.prices import HOME, price_table, prices
from dualtrack_stack.stacks.function_specs import SPECS

from bench.chat_cost import CHATS, count
from bench.function_memory import FILE as MEASURED
from tests.drivers.documents import ROOT
from tests.drivers.templates import WITH_MCP
from tests.long_forms import LONG

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Templates = list[dict[str, Any]]

VARIANTS: dict[str, tuple[str, dict[str, str]]] = {
    "staging": ("staging", {}),
    "prod": ("prod", {}),
    "prod with MCP": ("prod", WITH_MCP),
}
MOST_OF_A_CHAT = {TWO_TOOLS: 0.00043, GROWN: 0.00045}
MOST_OF_A_COLD_START = 2.5
MOST_OF_AN_IDLE_MONTH = {"staging": 1.50, "prod": 3.95, "prod with MCP": 15.75}
"""Alarms included."""
EVERYWHERE = {"kms_key_month", "cloudfront_request", "hosted_zone_month", "public_address_hour"}
"""Prices that no region changes."""
COUNTS_VARY = 3
"""Allowed difference of units between runs: ids are random, and a byte may make an item a KB larger."""


@pytest.fixture(scope="module")
def templates_of(assembly: Callable[..., Path]) -> Callable[[str], Templates]:
    def read(variant: str) -> Templates:
        folder = assembly(*VARIANTS[variant])
        return [json.loads(path.read_text()) for path in sorted(folder.glob("*.template.json"))]

    return read


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_chat_with_two_tools_and_an_idle_month_cost_what_they_may(
    variant: str, templates_of: Callable[[str], Templates]
) -> None:
    templates = templates_of(variant)
    assert unpriced(templates) == set()
    for chat, most in MOST_OF_A_CHAT.items():
        assert total(chat_lines(counted()[chat], sizes(templates))) <= most
    assert total(idle_lines(templates)) <= MOST_OF_AN_IDLE_MONTH[variant]


def test_a_cold_start_of_turn_is_short_enough() -> None:
    cpu = json.loads(MEASURED.read_text())["cold_cpu_seconds"]["turn"]
    assert cold_seconds(cpu, SPECS["turn"].memory) <= MOST_OF_A_COLD_START


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_lines_of_a_bill_add_up(variant: str, templates_of: Callable[[str], Templates]) -> None:
    templates = templates_of(variant)
    bills = as_data(bills_of(templates, HOME))
    for bill in bills:
        assert bill["dollars"] == pytest.approx(sum(line["amount"] * line["price"] for line in bill["lines"]))
    alarms = sum(
        line["dollars"] for bill in bills if bill["what"].startswith("Alarms") for line in bill["lines"]
    )
    assert alarms == pytest.approx(metrics_of_alarms(templates) * 0.10)
    idle = next(bill for bill in bills if bill["what"].startswith("A month"))
    assert idle["dollars"] + alarms == pytest.approx(total(idle_lines(templates)))


def metrics_of_alarms(templates: Templates) -> int:
    """What CloudWatch bills: an alarm is on one metric, or on those of its expression."""
    alarms = [
        resource["Properties"]
        for template in templates
        for resource in template["Resources"].values()
        if resource["Type"] == "AWS::CloudWatch::Alarm"
    ]
    return sum(json.dumps(alarm).count('"MetricStat"') or 1 for alarm in alarms)


def test_junk_for_keys_costs_what_the_documents_say() -> None:
    lines = junk_lines({spec.name: spec.memory for spec in SPECS.values()})
    written = total([line for line in lines if "write units" in line.item])
    for document in ("keys.md", "aws/costs.md"):
        text = (ROOT / "docs" / document).read_text()
        assert f"{total(lines):.2f}" in text
        assert f"{total(lines) - written:.2f}" in text


def test_a_minute_of_a_stream_costs_what_the_documents_say() -> None:
    lines = stream_lines({spec.name: spec.memory for spec in SPECS.values()})
    for document in ("clients.md", "aws/costs.md"):
        assert f"{total(lines):.6f}" in (ROOT / "docs" / document).read_text()


def test_a_stage_whose_model_gives_titles_has_their_bill() -> None:
    def bill(titles: str) -> list[str]:
        variables = {"POWERTOOLS_SERVICE_NAME": "summarise", "DUALTRACK_TITLES": titles}
        function = {"MemorySize": 256, "Environment": {"Variables": variables}}
        template = {"Resources": {"F": {"Type": "AWS::Lambda::Function", "Properties": function}}}
        return [line.item for line in title_lines([template], sizes([template]))]

    assert bill("query") == []
    assert len(bill("model")) == 3


def test_a_large_dashboard_is_on_the_bill() -> None:
    def idle(drawn: int) -> float:
        body = json.dumps({"widgets": [{"properties": {"region": "HERE", "metrics": [["n", "m"]] * drawn}}]})
        before, after = body.split("HERE")
        split = {"Fn::Join": ["", [before, {"Ref": "AWS::Region"}, after]]}
        dashboard = {"Type": "AWS::CloudWatch::Dashboard", "Properties": {"DashboardBody": split}}
        return total(idle_lines([{"Resources": {"Dashboard": dashboard}}]))

    assert idle(51) - idle(50) == pytest.approx(3)


def test_the_counts_are_those_of_today() -> None:
    """If it fails: uv run --group test python -m bench.chat_cost --write."""
    assert set(counted()) == set(CHATS)
    names = CHATS if LONG else set(CHATS) - {GROWN}
    today = count(names)
    for name in names:
        now, chat = today[name], counted()[name]
        for each in ("model_calls", "summary_calls", "rounds", "states"):
            assert getattr(now, each) == getattr(chat, each), (name, each)
        assert abs(now.writes - chat.writes) <= COUNTS_VARY, name
        assert abs(now.reads - chat.reads) <= COUNTS_VARY, name


@pytest.mark.parametrize("seconds", [0.0, 60.0], ids=["piece by piece", "all at once"])
def test_the_counts_are_the_same_however_text_arrives(
    seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A machine that is busy writes the same text in other batches."""
    monkeypatch.setattr(delta_writer, "WRITE_SECONDS", seconds)
    assert abs(count([TWO_TOOLS])[TWO_TOOLS].writes - counted()[TWO_TOOLS].writes) <= COUNTS_VARY


def test_a_region_has_its_own_prices_and_says_which_it_borrows() -> None:
    home, frankfurt, elsewhere = map(price_table, (HOME, "eu-central-1", "ap-south-1"))
    assert (home.borrowed, borrowed_note(home)) == ((), "")
    assert frankfurt.dollars["dynamodb_write"] == 0.0000007625
    assert {"dynamodb_write", "kms_key_month"} & set(frankfurt.borrowed) == set()
    assert "web_acl_month" in frankfurt.borrowed
    assert frankfurt.dollars["web_acl_month"] == home.dollars["web_acl_month"]
    assert set(elsewhere.borrowed) == set(home.dollars) - EVERYWHERE
    assert set(elsewhere.borrowed) <= set(borrowed_note(elsewhere).replace(",", " ").split())
    assert "[region.ap-south-1]" in borrowed_note(elsewhere)
    megabytes = {spec.name: spec.memory for spec in SPECS.values()}
    there = total(chat_lines(counted()[TWO_TOOLS], megabytes, "eu-central-1"))
    assert there > total(chat_lines(counted()[TWO_TOOLS], megabytes))


def test_a_team_adds_its_regions_prices_and_a_wrong_name_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = tmp_path / "prices.toml"
    monkeypatch.setattr(price_module, "PRICES_FILE", table)
    own = (ROOT / "infra/dualtrack_stack/prices.toml").read_text() + "[region.ap-south-1]\nlog_gb = 0.67\n"
    table.write_text(own)
    assert price_table("ap-south-1").dollars["log_gb"] == 0.67
    assert "log_gb" not in price_table("ap-south-1").borrowed
    table.write_text(own + "loggb = 1\n")
    with pytest.raises(ValueError, match="loggb, which is no price"):
        price_table("ap-south-1")


def test_the_region_is_the_one_given_else_the_environments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-west-1")
    assert region_of("us-west-2") == "us-west-2"
    assert region_of(None) == "eu-west-1"
    monkeypatch.delenv("AWS_REGION")
    monkeypatch.delenv("AWS_DEFAULT_REGION")
    assert region_of(None) == HOME


def test_the_command_needs_neither_layers_nor_an_account(
    templates_of: Callable[[str], Templates], monkeypatch: pytest.MonkeyPatch
) -> None:
    # synthesised before the account is set: a synthesis reads the last deployment's settings there
    expected = as_data(bills_of(templates_of("prod with MCP"), "eu-central-1"))
    monkeypatch.setenv("CDK_DEFAULT_ACCOUNT", "000000000000")
    ended = CliRunner().invoke(
        main, ["aws", "cost", "--stage", "prod", "--github", "--region", "eu-central-1", "--json"]
    )
    assert ended.exit_code == 0, ended.output
    answer = json.loads(ended.stdout)
    assert (answer["region"], "dynamodb_write" in answer["borrowed"]) == ("eu-central-1", False)
    printed = answer["bills"]
    assert {line["what"]: pytest.approx(line["dollars"]) for line in expected} == {
        line["what"]: line["dollars"] for line in printed
    }


def test_a_setting_that_no_service_takes_is_a_usage_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DUALTRACK_EFFORT", "mad")
    ended = CliRunner().invoke(main, ["aws", "cost", "--stage", "prod"])
    assert ended.exit_code == 2
    assert "Error: DUALTRACK_EFFORT = mad (environment): must be low or " in ended.output


def test_what_has_no_price_is_named() -> None:
    odd = {"Resources": {"Db": {"Type": "AWS::RDS::DBInstance"}, "Vm": {"Type": "AWS::EC2::Instance"}}}
    assert unpriced([odd]) == {"AWS::RDS::DBInstance", "AWS::EC2::Instance"}


def test_idle_costs_are_listed() -> None:
    endpoint = {"VpcEndpointType": "Interface", "SubnetIds": ["a", "b"]}
    resources = {
        "Nat": {"Type": "AWS::EC2::NatGateway"},
        "Endpoint": {"Type": "AWS::EC2::VPCEndpoint", "Properties": endpoint},
        "Secret": {"Type": "AWS::SecretsManager::Secret"},
        "Acl": {"Type": "AWS::WAFv2::WebACL", "Properties": {"Rules": [{}, {}]}},
    }
    stored = prices()["storage_gb_month"]
    assert total(idle_lines([{"Resources": resources}])) - stored == pytest.approx(
        730 * 0.045 + 2 * 730 * 0.01 + 0.40 + 5 + 2
    )


@pytest.mark.parametrize(
    ("expression", "runs"),
    [
        ("rate(5 minutes)", 8_760),
        ("rate(1 hour)", 730),
        ("rate(1 day)", 730 / 24),
        ("cron(0 0 * * ? *)", 730 / 24),
    ],
)
def test_how_often_a_schedule_fires(expression: str, runs: float) -> None:
    assert runs_a_month(expression) == pytest.approx(runs)


def test_an_unsupported_schedule_is_an_error() -> None:
    with pytest.raises(ValueError, match="how often"):
        runs_a_month("cron(0/5 * ? * MON-FRI *)")


@pytest.mark.parametrize("variant", VARIANTS)
def test_no_method_has_metrics_of_its_own(variant: str, templates_of: Callable[[str], Templates]) -> None:
    """Amazon CloudWatch pricing: detailed metrics of a REST API are custom metrics, $0.30 a month for each of five
    metrics of each method; those of the whole API are free.
    """
    for template in templates_of(variant):
        for resource in template["Resources"].values():
            for settings in resource.get("Properties", {}).get("MethodSettings", []):
                assert settings.get("MetricsEnabled", False) is False


def test_the_server_of_github_is_documented(templates_of: Callable[[str], Templates]) -> None:
    (mcp,) = (
        resource
        for resource in templates_of("prod with MCP")
        if "AWS::ECS::Service" in {r["Type"] for r in resource["Resources"].values()}
    )
    lines = [line for line in idle_lines([mcp]) if line.item != "Stored assets and logs, GB"]
    text = (ROOT / "docs/mcp.md").read_text()
    for line in lines:
        assert f"| {line.item} | {line.dollars:.2f} |" in text
    assert f"| **together** | **{total(lines):.2f}** |" in text
