"""The registry of rules over the synthesised templates, and helpers for reading templates."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.drivers.templates import WITH_MCP, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    Template = dict[str, Any]
    Check = Callable[[Template], Iterator[str]]

ALL_SET: Final = {
    **WITH_MCP,
    "ALARM_DAILY_DOLLARS": "25",
    "ALARM_KEY_PERCENT": "80",
    "ALARM_EMAIL": "operators@example.org",
    "ALARM_TOPIC_ARN": "arn:aws:sns:us-east-1:123456789012:on-call",
    "DUALTRACK_COURSE_INDEX": "s3vectors",
    "DUALTRACK_GRAPH_ENGINE": "bolt",
    "DUALTRACK_GRAPH_URL": "neo4j+s://graph.example.org",
    "DOMAIN": "chat.example.org",
    "CERTIFICATE_ARN": f"arn:aws:acm:us-east-1:123456789012:certificate/{'1' * 8}-1111-1111-1111-{'1' * 12}",
    "WAF": "log",
    "OIDC_ISSUER": "https://login.example.org",
    "OIDC_CLIENT_ID": "dualtrack",
    "OIDC_SECRET_NAME": "login/dualtrack",
    "SAML_METADATA_URL": "https://directory.example.org/metadata.xml",
    "SES_FROM": "dualtrack@example.org",
    "OTEL_EXPORTER_OTLP_ENDPOINT": "https://otlp.example.com",
}
VARIANTS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "local": ("local", {}),
    "staging": ("staging", {}),
    "prod": ("prod", {}),
    "prod with everything set": ("prod", ALL_SET),
}
"""Stage and settings of each template set that the rules check."""

ON_AWS: Final = tuple(VARIANTS)[1:]
IN_PROD: Final = tuple(VARIANTS)[2:]
WITH_ALARMS: Final = IN_PROD
WITH_ADDRESS: Final = tuple(VARIANTS)[3:]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check, the resources of a template that breaks it, and the variants that it applies to."""

    check: Check
    broken: dict[str, Any]
    variants: tuple[str, ...]


RULES: Final[list[Rule]] = []


def rule(broken: dict[str, Any], variants: tuple[str, ...] = tuple(VARIANTS)) -> Callable[[Check], Check]:
    """Register a check. ``broken``: the resources of the smallest template that breaks it."""

    def register(check: Check) -> Check:
        RULES.append(Rule(check, broken, variants))
        return check

    return register


# ── reading a template ────────────────────────────────────────────────────────────────────────────


def of_kind(template: Template, kind: str) -> dict[str, Any]:
    """Properties by logical id."""
    resources = template["Resources"].items()
    return {key: value.get("Properties", {}) for key, value in resources if value["Type"] == kind}


def named(value: Any) -> str:
    """The logical id that a ``Ref`` or ``Fn::GetAtt`` names; text for anything else."""
    return readable(value).split(".")[0] if value else ""


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(policies: Iterator[Any] | list[Any]) -> Iterator[dict[str, Any]]:
    for policy in policies:
        yield from policy["PolicyDocument"]["Statement"]


def allowed(
    policy_statements: Iterator[dict[str, Any]], action: str, resource: str
) -> Iterator[dict[str, Any]]:
    """The statements that allow an action on the resource of a logical id."""
    for statement in policy_statements:
        is_meant = action in many(statement["Action"]) and statement["Effect"] == "Allow"
        if is_meant and resource in map(named, many(statement["Resource"])):
            yield statement


def may_by_role(template: Template, role: str, action: str, resource: str) -> bool:
    policies = [
        policy
        for policy in of_kind(template, "AWS::IAM::Policy").values()
        if role in map(named, policy["Roles"])
    ]
    return any(allowed(statements(policies), action, resource))


def dependencies(template: Template, logical_id: str) -> set[str]:
    """Every resource that CloudFormation creates before this one, by reference or ``DependsOn``, transitively."""
    seen: set[str] = set()
    waiting = [logical_id]
    while waiting:
        resource = template["Resources"].get(waiting.pop(), {})
        further = {*references(resource.get("Properties")), *many(resource.get("DependsOn", []))} - seen
        seen |= further
        waiting += further
    return seen


def references(value: Any) -> Iterator[str]:
    """The logical ids that ``Ref`` and ``Fn::GetAtt`` name anywhere in a value."""
    if isinstance(value, list):
        for item in value:
            yield from references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("Ref", "Fn::GetAtt"):
                yield named({key: item})
            else:
                yield from references(item)


def alarmed_topics(template: Template) -> set[str]:
    alarms = of_kind(template, "AWS::CloudWatch::Alarm").values()
    return {named(action) for alarm in alarms for action in alarm.get("AlarmActions", [])}


def deliveries(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Targets of rules and schedules, with the logical id of the rule or schedule."""
    for key, source in of_kind(template, "AWS::Events::Rule").items():
        yield from ((key, target) for target in source.get("Targets", []))
    for key, source in of_kind(template, "AWS::Scheduler::Schedule").items():
        yield key, source["Target"]


def called_asynchronously(template: Template) -> dict[str, str]:
    """What is invoked asynchronously (the logical id of a function or an alias) → by what."""
    calls = [(target["Arn"], key) for key, target in deliveries(template)]
    for key, bucket in of_kind(template, "AWS::S3::Bucket").items():
        configured = bucket.get("NotificationConfiguration", {}).get("LambdaConfigurations", [])
        calls += [(configuration["Function"], key) for configuration in configured]
    for key, subscription in of_kind(template, "AWS::SNS::Subscription").items():
        if subscription["Protocol"] == "lambda":
            calls.append((subscription["Endpoint"], key))
    return {named(arn): key for arn, key in calls}


def failure_configs(template: Template) -> Iterator[tuple[str, str, str, str]]:
    """(logical id, function, qualifier, queue) of every configuration with a failure destination."""
    for key, config in of_kind(template, "AWS::Lambda::EventInvokeConfig").items():
        destination = config.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if destination:
            yield key, named(config["FunctionName"]), config["Qualifier"], named(destination)


def failure_queues(template: Template) -> set[str]:
    """Queues for failed events and invocations."""
    dead_letters = {
        named(target["DeadLetterConfig"]["Arn"])
        for _, target in deliveries(template)
        if "DeadLetterConfig" in target
    }
    redriven = {
        named(queue["RedrivePolicy"]["deadLetterTargetArn"])
        for queue in of_kind(template, "AWS::SQS::Queue").values()
        if "RedrivePolicy" in queue
    }
    return dead_letters | redriven | {queue for *_, queue in failure_configs(template)}


def is_deleted(resource: dict[str, Any]) -> bool:
    """Whether a resource is deleted with its stack (CloudFormation User Guide, "DeletionPolicy attribute")."""
    return bool(resource.get("DeletionPolicy", "Delete") == "Delete")
