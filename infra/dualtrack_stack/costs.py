"""What a stage costs: a chat, without the model, and a month without chats; line by line, without an AWS
account.

Amounts come from the stage's own templates (sizes, keys, alarms, tasks, schedules) and from requests that were counted
(``infra/dualtrack_stack/chat_counts.json``, written by ``python -m bench.chat_cost --write``); prices from
``infra/dualtrack_stack/prices.toml``. Seconds are assumed, because Lambda bills the wait for the model and for tools:
see the constants.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.credits.aws_cost import (
    LOG_KILOBYTES,
    STEP_SECONDS,
    STREAM_READ_UNITS,
    TITLE_READS,
    TITLE_WRITES,
    AwsUse,
    Line,
    work_lines,
)

from dualtrack_stack import github_mcp
from dualtrack_stack.prices import HOME, prices
from dualtrack_stack.roots import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    StackTemplate = Mapping[str, Any]

COUNTS_FILE: Final = PACKAGE / "chat_counts.json"
MEASURED_FILE: Final = PACKAGE / "measured.json"
TWO_TOOLS: Final = "two tools in parallel"
"""The chat used to choose memory sizes."""
GROWN: Final = f"{TWO_TOOLS}, in a grown conversation"

HOURS: Final = 730
"""Of a month."""

FULL_CPU_MEGABYTES: Final = 1_769
"""Lambda gives a function of this size one whole processor, others their share of it (AWS Lambda Developer Guide,
"Configure Lambda function memory")."""

MODEL_SECONDS: Final = 4.0
"""A call of a small model with an answer of a few hundred tokens; text streams for half of it."""

TOOL_SECONDS: Final = 1.5
SUMMARY_SECONDS: Final = MODEL_SECONDS / 2
TITLE_SECONDS: Final = 1.0
SCHEDULED_SECONDS: Final = 0.5
JUNK: Final = 1_000_000
REFUSAL_SECONDS: Final = 0.03
"""Of `api`, for a request whose key is refused."""
KEPT_SNAPSHOTS: Final = 2
"""The fewest versions that `dualtrack aws prune` keeps: the current one and one for a rollback."""

ALARMS: Final = "Metrics of alarms"
FREE_METRICS: Final = 50
"""Of a dashboard."""

STORED: Final = "Stored assets and logs, GB"
IDLE_GB: Final = 1.0
"""Storage of an unused stage: assets of some deployments, logs, empty tables."""


CHAT_METRICS: Final = 12
EVENT_METRICS: Final = 40
"""Custom metrics of a stage: those that every chat sends, and those of certain events (a busy model, a degraded search,
missing summaries, a cache that was missed, tools left out, a key near its cap, an end other than complete,
leftovers, those of plug-ins); each set of dimensions counts as one (tests/infra/test_metrics.py counts what functions
write)."""


@dataclass(frozen=True, slots=True)
class CountedChat:
    """A chat that was counted. ``model_calls``: of its turns; ``summary_calls``: of the step behind the answer, which
    makes them at once; ``rounds``: for each turn the functions of its tools, which run in parallel."""

    model_calls: int
    summary_calls: int
    rounds: tuple[tuple[str, ...], ...]
    states: int
    writes: float
    reads: float

    @property
    def seconds(self) -> float:
        """From the first turn to the last event; one stream is open all the time."""
        waiting = self.model_calls * (MODEL_SECONDS + STEP_SECONDS)
        waiting += len(self.rounds) * (TOOL_SECONDS + STEP_SECONDS)
        return waiting + self.summary_seconds

    @property
    def summary_seconds(self) -> float:
        """Of the step behind the answer."""
        return (SUMMARY_SECONDS if self.summary_calls else 0.0) + STEP_SECONDS


def counted() -> Mapping[str, CountedChat]:
    """The chats that were counted, by their names."""
    chats = json.loads(COUNTS_FILE.read_text(encoding="utf-8"))
    return {
        name: CountedChat(**chat | {"rounds": tuple(map(tuple, chat["rounds"]))})
        for name, chat in chats.items()
    }


def total(lines: Iterable[Line]) -> float:
    """Dollars."""
    return sum(line.dollars for line in lines)


def cold_seconds(cpu_seconds: float, megabytes: int) -> float:
    """Duration of processor work in a function of this size."""
    return cpu_seconds / min(1.0, megabytes / FULL_CPU_MEGABYTES)


# ── a chat ────────────────────────────────────────────────────────────────────────────────────────


def chat_lines(chat: CountedChat, megabytes: Mapping[str, int], region: str = HOME) -> list[Line]:
    """What one chat costs, followed over one stream. ``megabytes``: each function's size by its name."""
    functions = {
        "api": (1, STEP_SECONDS),
        "turn": (chat.model_calls, chat.model_calls * (MODEL_SECONDS + STEP_SECONDS)),
        **{
            name: (calls, calls * (TOOL_SECONDS + STEP_SECONDS))
            for name, calls in Counter(name for tools in chat.rounds for name in tools).items()
        },
        "summarise": (1, chat.summary_seconds),
    }
    work = AwsUse(functions, chat.seconds, chat.states, chat.writes, chat.reads)
    return work_lines(work, megabytes, prices(region))


def title_lines(
    templates: Iterable[StackTemplate], megabytes: Mapping[str, int], region: str = HOME
) -> list[Line]:
    """What is added in a new conversation if the stage has the model give it its title; else nothing."""
    price = prices(region)
    set_to = {
        function.get("Environment", {}).get("Variables", {}).get("DUALTRACK_TITLES")
        for template in templates
        for function in _of_kind(template, "AWS::Lambda::Function")
    }
    if "model" not in set_to:
        return []
    gb_seconds = TITLE_SECONDS * megabytes["summarise"] / 1024
    return [
        Line("Lambda summarise, GB-s", gb_seconds, price["lambda_gb_second"]),
        Line("DynamoDB, write units", TITLE_WRITES, price["dynamodb_write"]),
        Line("DynamoDB, read units", TITLE_READS, price["dynamodb_read"]),
    ]


def cold_lines(chat: CountedChat, megabytes: Mapping[str, int], region: str = HOME) -> list[Line]:
    """What is added if every function of the chat starts cold: Lambda bills initialisation since August 2025. Tools in
    parallel start an instance each."""
    cpu = json.loads(MEASURED_FILE.read_text(encoding="utf-8"))["cold_cpu_seconds"]
    tools = Counter[str]()
    for together in map(Counter, chat.rounds):
        tools |= together
    return [
        Line(
            f"Lambda {name}: {starts} × INIT of {cold_seconds(cpu[name], megabytes[name]):.2f} s, GB-s",
            starts * cold_seconds(cpu[name], megabytes[name]) * megabytes[name] / 1024,
            prices(region)["lambda_gb_second"],
        )
        for name, starts in {"api": 1, "turn": 1, **tools, "summarise": 1, "stream": 1}.items()
    ]


def sizes(templates: Iterable[StackTemplate]) -> dict[str, int]:
    """Megabytes of each function by its name, which is also its service name."""
    return {
        function["Environment"]["Variables"]["POWERTOOLS_SERVICE_NAME"]: function["MemorySize"]
        for template in templates
        for function in _of_kind(template, "AWS::Lambda::Function")
        if "POWERTOOLS_SERVICE_NAME" in function.get("Environment", {}).get("Variables", {})
    }


# ── an idle month ─────────────────────────────────────────────────────────────────────────────────

_A_MONTH: Final = MappingProxyType(
    {
        "AWS::KMS::Key": ("KMS keys", "kms_key_month"),
        "AWS::SecretsManager::Secret": ("Secrets", "secret_month"),
        "AWS::ServiceDiscovery::PrivateDnsNamespace": ("Private hosted zones", "hosted_zone_month"),
        "AWS::WAFv2::WebACL": ("Web ACLs", "web_acl_month"),
    }
)
_AN_HOUR: Final = MappingProxyType(
    {
        "AWS::EC2::NatGateway": ("NAT gateways, hours", "nat_gateway_hour"),
    }
)
_PRICED_APART: Final = frozenset(
    {"AWS::Scheduler::Schedule", "AWS::ECS::Service", "AWS::EC2::VPCEndpoint", "AWS::CloudWatch::Alarm",
     "AWS::CloudWatch::Dashboard", "AWS::ApplicationAutoScaling::ScalingPolicy"}
)  # fmt: skip
_FREE_WHILE_IDLE: Final = tuple(
    re.compile(pattern)
    for pattern in (
        r"AWS::(ApiGateway|CDK|CloudFront|Cognito|DynamoDB|Events|IAM|Lambda|Logs|S3|SNS|SQS|StepFunctions)::.*",
        r"AWS::CertificateManager::Certificate",
        r"AWS::EC2::(?!NatGateway|VPCEndpoint|Instance|Volume|EIP|TransitGateway|VPNConnection).*",
        r"AWS::ECS::(Cluster|TaskDefinition|ClusterCapacityProviderAssociations)",
        r"AWS::ApplicationAutoScaling::ScalableTarget",
        r"AWS::Route53::RecordSet(Group)?",
        r"AWS::ServiceDiscovery::Service",
        r"AWS::SSM::Parameter",  # standard ones
        r"AWS::WAFv2::(WebACLAssociation|LoggingConfiguration|IPSet)",
        r"Custom::.*",
    )
)
"""Types that only cost when used."""


def idle_lines(templates: Sequence[StackTemplate], region: str = HOME) -> list[Line]:
    """The cost of a month without chats."""
    price = prices(region)
    kinds = Counter(resource["Type"] for stack in templates for resource in stack["Resources"].values())
    lines = [
        *(Line(what, kinds[kind], price[name]) for kind, (what, name) in _A_MONTH.items() if kinds[kind]),
        *(
            Line(what, kinds[kind] * HOURS, price[name])
            for kind, (what, name) in _AN_HOUR.items()
            if kinds[kind]
        ),
        Line(STORED, IDLE_GB, price["storage_gb_month"]),
    ]
    for template in templates:
        lines += [*_acl_rules(template, price), *_tasks(template, price), *_endpoints(template, price)]
        lines += [*_alarms(template, price), *_dashboards(template, price)]
    return [*lines, *_schedules(templates, price), *_snapshots(templates, price)]


def month_of(template: StackTemplate, region: str = HOME) -> float:
    """Dollars of an idle month of one stack; storage, which is the stage's, is not included."""
    return total(line for line in idle_lines([template], region) if line.item != STORED)


def metric_lines(region: str = HOME) -> list[Line]:
    """The cost of the functions' own metrics in a month with chats; a metric that is not sent costs nothing."""
    each = prices(region)["custom_metric_month"]
    return [
        Line("Custom metrics that any chat sends", CHAT_METRICS, each),
        Line("Custom metrics of what may happen, at most", EVENT_METRICS, each),
    ]


def alarms_apart(lines: Iterable[Line]) -> list[Line]:
    """The lines without those of a stage's optional alarms."""
    return [line for line in lines if line.item != ALARMS]


def junk_lines(megabytes: Mapping[str, int], region: str = HOME) -> list[Line]:
    """What a million requests with a key cost that does not exist (docs/keys.md); junk without a key's checksum makes
    no write."""
    price, seconds = prices(region), JUNK * REFUSAL_SECONDS
    return [
        Line("Lambda api, GB-s", seconds * megabytes["api"] / 1024, price["lambda_gb_second"]),
        Line("Lambda, invocations", JUNK, price["lambda_request"]),
        Line("DynamoDB, write units of a well-formed key", JUNK, price["dynamodb_write"]),
        Line("API Gateway, requests", JUNK, price["api_request"]),
        Line("CloudFront, requests", JUNK, price["cloudfront_request"]),
        Line("Logs, GB", 2 * JUNK * LOG_KILOBYTES / 1e6, price["log_gb"]),
    ]


def stream_lines(megabytes: Mapping[str, int], region: str = HOME) -> list[Line]:
    """What an open stream costs a minute, an answer or a chat's events, while text arrives."""
    price, seconds = prices(region), 60
    return [
        Line("Lambda stream, GB-s", seconds * megabytes["stream"] / 1024, price["lambda_gb_second"]),
        Line("DynamoDB, read units", seconds * STREAM_READ_UNITS, price["dynamodb_read"]),
    ]


def user_lines(region: str = HOME) -> list[Line]:
    """What a user who signs in costs in a month, whatever they ask."""
    return [Line("Cognito, active users (Essentials)", 1, prices(region)["active_user_month"])]


def unpriced(templates: Iterable[StackTemplate]) -> set[str]:
    """Types with unknown cost, which the figures do not include."""
    known = {*_A_MONTH, *_AN_HOUR, *_PRICED_APART}
    kinds = {
        resource["Type"] for template in templates for resource in template["Resources"].values()
    } - known
    return {kind for kind in kinds if not any(free.fullmatch(kind) for free in _FREE_WHILE_IDLE)}


def _of_kind(template: StackTemplate, kind: str) -> Iterator[Any]:
    return (
        resource.get("Properties", {})
        for resource in template["Resources"].values()
        if resource["Type"] == kind
    )


def _alarms(template: StackTemplate, price: Mapping[str, float]) -> Iterator[Line]:
    """CloudWatch bills an alarm by its metrics."""
    alarms = list(_of_kind(template, "AWS::CloudWatch::Alarm"))
    if alarms:
        watched = sum(
            sum("MetricStat" in query for query in alarm.get("Metrics", ())) or 1 for alarm in alarms
        )
        yield Line(ALARMS, watched, price["alarm_month"])


def _dashboards(template: StackTemplate, price: Mapping[str, float]) -> Iterator[Line]:
    """The first three of an account are free if they have at most `FREE_METRICS`."""
    billed = [
        body
        for dashboard in _of_kind(template, "AWS::CloudWatch::Dashboard")
        if metrics_of(body := dashboard["DashboardBody"]) > FREE_METRICS
    ]
    if billed:
        yield Line(f"Dashboards of more than {FREE_METRICS} metrics", len(billed), price["dashboard_month"])


def metrics_of(dashboard_body: Any) -> int:
    """How many metrics a dashboard of a template draws."""
    parts = dashboard_body["Fn::Join"][1] if isinstance(dashboard_body, dict) else [dashboard_body]
    body = json.loads("".join(part if isinstance(part, str) else "…" for part in parts))
    return sum(len(widget["properties"].get("metrics", ())) for widget in body["widgets"])


def _acl_rules(template: StackTemplate, price: Mapping[str, float]) -> Iterator[Line]:
    for acl in _of_kind(template, "AWS::WAFv2::WebACL"):
        yield Line("Rules of a web ACL", len(acl.get("Rules", [])), price["web_acl_rule_month"])


def _endpoints(template: StackTemplate, price: Mapping[str, float]) -> Iterator[Line]:
    for endpoint in _of_kind(template, "AWS::EC2::VPCEndpoint"):
        if endpoint.get("VpcEndpointType", "Gateway") == "Interface":
            zones = len(endpoint.get("SubnetIds", [])) or 1
            yield Line("Interface endpoint, hours", zones * HOURS, price["interface_endpoint_hour"])


def _tasks(template: StackTemplate, price: Mapping[str, float]) -> Iterator[Line]:
    """Fargate: what a service's tasks reserve, their public addresses, and two alarms of each scaling policy."""
    definitions = {
        key: resource["Properties"]
        for key, resource in template["Resources"].items()
        if resource["Type"] == "AWS::ECS::TaskDefinition"
    }
    for service in _of_kind(template, "AWS::ECS::Service"):
        task = definitions[service["TaskDefinition"]["Ref"]]
        hours = service.get("DesiredCount", 1) * HOURS
        cpu, gigabytes = int(task["Cpu"]) / 1024, int(task["Memory"]) / 1024
        yield Line(f"Fargate, {cpu:g} vCPU, vCPU-hours", cpu * hours, price["fargate_cpu_hour"])
        yield Line(f"Fargate, {gigabytes:g} GB, GB-hours", gigabytes * hours, price["fargate_gb_hour"])
        network = service["NetworkConfiguration"]["AwsvpcConfiguration"]
        if network.get("AssignPublicIp") == "ENABLED":
            yield Line("Public IPv4 address of a task, hours", hours, price["public_address_hour"])
        yield Line("Logs and flow logs of a task, GB", 0.1, price["log_gb"])
    for _ in _of_kind(template, "AWS::ApplicationAutoScaling::ScalingPolicy"):
        yield Line("Alarms of a scaling policy", 2, price["alarm_month"])


def _snapshots(templates: Sequence[StackTemplate], price: Mapping[str, float]) -> Iterator[Line]:
    """SnapStart: each published version of a function costs its memory for every second, called or not."""
    megabytes = [
        function["MemorySize"]
        for template in templates
        for function in _of_kind(template, "AWS::Lambda::Function")
        if function.get("SnapStart", {}).get("ApplyOn") == "PublishedVersions"
    ]
    if megabytes:
        gb_seconds = KEPT_SNAPSHOTS * sum(megabytes) / 1024 * HOURS * 3_600
        item = f"Snapshots of {len(megabytes)} functions, {KEPT_SNAPSHOTS} versions each, GB-s"
        yield Line(item, gb_seconds, price["snapshot_gb_second"])


def _schedules(templates: Sequence[StackTemplate], price: Mapping[str, float]) -> Iterator[Line]:
    megabytes = sizes(templates)
    by_id = {spec.construct_id: spec.name for spec in _specs()}
    for template in templates:
        for schedule in _of_kind(template, "AWS::Scheduler::Schedule"):
            target = json.dumps(schedule["Target"]["Arn"])
            # an alias's logical id begins with that of its function's construct
            name = next(by_id[key] for key in sorted(by_id, key=len, reverse=True) if f'"{key}Live' in target)
            runs = runs_a_month(schedule["ScheduleExpression"])
            gb_seconds = runs * SCHEDULED_SECONDS * megabytes[name] / 1024
            each = price["schedule_invocation"] + price["lambda_request"]
            yield Line(f"{schedule['ScheduleExpression']} of {name}, runs", runs, each)
            yield Line(
                f"{schedule['ScheduleExpression']} of {name}, GB-s",
                gb_seconds,
                price["lambda_gb_second"],
            )


def runs_a_month(expression: str) -> float:
    """Of ``rate(5 minutes)``, and of a ``cron`` of one time a day. Raises ValueError for another."""
    if match := re.fullmatch(r"rate\((\d+) (minute|hour|day)s?\)", expression):
        hours = {"minute": 1 / 60, "hour": 1, "day": 24}[match[2]] * int(match[1])
        return HOURS / hours
    if re.fullmatch(r"cron\(\d+ \d+ \* \* \? \*\)", expression):
        return HOURS / 24
    raise ValueError(f"Cannot tell how often {expression} runs.")


def _specs() -> Iterable[Any]:
    from dualtrack_stack.stacks.function_specs import SPECS  # noqa: PLC0415

    return SPECS.values()


# ── the templates of a stage ──────────────────────────────────────────────────────────────────────

_EXAMPLE_DIGEST: Final = "sha256:" + "0" * 64


def templates_of(
    stage: str, environ: Mapping[str, str], *, with_github: bool, folder: Path
) -> list[StackTemplate]:
    """The templates of a stage with the settings of its file, made in ``folder`` without building a layer.

    ``with_github``: with GitHub's MCP server in the account, whether or not the settings name its images.
    """
    import os  # noqa: PLC0415

    from dualtrack_stack.local.synth import IN_PLACE, context  # noqa: PLC0415
    from dualtrack_stack.node import node  # noqa: PLC0415

    os.environ.setdefault("JSII_NODE", node())  # before the CDK is loaded

    import aws_cdk as cdk  # noqa: PLC0415

    from dualtrack_stack.app import build_deployed  # noqa: PLC0415
    from dualtrack_stack.project.read import read_project  # noqa: PLC0415
    from dualtrack_stack.roots import project_root  # noqa: PLC0415
    from dualtrack_stack.settings import read_settings  # noqa: PLC0415

    settings = read_settings(stage, environ)
    given = dict(settings.given)
    if with_github and "GITHUB_MCP_IMAGE" not in given:
        server = f"example.com/github-mcp-server:{github_mcp.VERSION}@{_EXAMPLE_DIGEST}"
        given |= {
            "GITHUB_MCP_IMAGE": server,
            "GITHUB_MCP_PROBE_IMAGE": f"example.com/busybox@{_EXAMPLE_DIGEST}",
        }
    app = cdk.App(outdir=str(folder), context={**context(stage), **IN_PLACE})
    unbuilt = replace(settings.stage, built_layers=False)
    project = read_project(project_root(), stage, environ)
    build_deployed(app, replace(settings, stage=unbuilt, given=given), project)
    app.synth()
    return [json.loads(path.read_text()) for path in sorted(folder.glob("*.template.json"))]
