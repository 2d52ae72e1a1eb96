"""What AWS refuses, or lets fail silently, and no emulator shows: rules over the synthesised templates.

A rule is a function of a template that yields what is wrong; its docstring names the source. Beside it stands the
smallest template that breaks it, and a test shows that the rule sees that. A new rule needs nothing else.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import pytest

from infra.layers import ROOT
from tests.drivers.templates import WITH_MCP, readable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    Template = dict[str, Any]
    Check = Callable[[Template], Iterator[str]]

RELEASE_1: Final = ROOT / "tests" / "fixtures" / "release-1" / "infrastructure" / "prod"
ALARMED: Final = {
    **WITH_MCP,
    "ALARM_EMAIL": "operators@example.org",
    "DUALTRACK_COURSE_INDEX": "s3vectors",
}
VARIANTS: Final[dict[str, tuple[str, dict[str, str]]]] = {
    "local": ("local", {}),
    "staging": ("staging", {}),
    "prod": ("prod", {}),
    "prod with MCP, an address for alarms, and S3 Vectors": ("prod", ALARMED),
}
"""Stage and settings of everything that the rules are run over."""

WITH_ALARMS: Final = tuple(VARIANTS)[2:]
WITH_ADDRESS: Final = tuple(VARIANTS)[3:]


@dataclass(frozen=True, slots=True)
class Rule:
    """A check, the resources of a template that breaks it, and the variants that it is for."""

    check: Check
    broken: dict[str, Any]
    variants: tuple[str, ...]


RULES: Final[list[Rule]] = []


def rule(broken: dict[str, Any], variants: tuple[str, ...] = tuple(VARIANTS)) -> Callable[[Check], Check]:
    """Register a check. ``broken``: the resources of the smallest template in which it finds something."""

    def register(check: Check) -> Check:
        RULES.append(Rule(check, broken, variants))
        return check

    return register


# ── reading a template ────────────────────────────────────────────────────────────────────────────


def of_kind(template: Template, kind: str) -> dict[str, Any]:
    """Properties by logical id."""
    found = template["Resources"].items()
    return {key: value.get("Properties", {}) for key, value in found if value["Type"] == kind}


def named(value: Any) -> str:
    """The logical id that a ``Ref`` or ``Fn::GetAtt`` names; text for anything else."""
    return readable(value).split(".")[0] if value else ""


def many(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def statements(policies: Iterator[Any] | list[Any]) -> Iterator[dict[str, Any]]:
    for policy in policies:
        yield from policy["PolicyDocument"]["Statement"]


def allowed(found: Iterator[dict[str, Any]], action: str, resource: str) -> Iterator[dict[str, Any]]:
    """The statements that allow an action on what a logical id names."""
    for statement in found:
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
    """Every resource that CloudFormation makes before this one, by reference or ``DependsOn``, over others too."""
    seen: set[str] = set()
    left = [logical_id]
    while left:
        resource = template["Resources"].get(left.pop(), {})
        found = {*_references(resource.get("Properties")), *many(resource.get("DependsOn", []))} - seen
        seen |= found
        left += found
    return seen


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _references(item)
    elif isinstance(value, dict):
        for key, item in value.items():
            if key in ("Ref", "Fn::GetAtt"):
                yield named({key: item})
            else:
                yield from _references(item)


def alarmed_topics(template: Template) -> set[str]:
    alarms = of_kind(template, "AWS::CloudWatch::Alarm").values()
    return {named(action) for alarm in alarms for action in alarm.get("AlarmActions", [])}


def deliveries(template: Template) -> Iterator[tuple[str, dict[str, Any]]]:
    """Targets of rules and schedules, with the logical id of what has them."""
    for key, found in of_kind(template, "AWS::Events::Rule").items():
        yield from ((key, target) for target in found.get("Targets", []))
    for key, found in of_kind(template, "AWS::Scheduler::Schedule").items():
        yield key, found["Target"]


def called_asynchronously(template: Template) -> dict[str, str]:
    """What is invoked so (the logical id of a function or an alias) → by what."""
    calls = [(target["Arn"], key) for key, target in deliveries(template)]
    for key, bucket in of_kind(template, "AWS::S3::Bucket").items():
        configured = bucket.get("NotificationConfiguration", {}).get("LambdaConfigurations", [])
        calls += [(one["Function"], key) for one in configured]
    for key, subscription in of_kind(template, "AWS::SNS::Subscription").items():
        if subscription["Protocol"] == "lambda":
            calls.append((subscription["Endpoint"], key))
    return {named(arn): key for arn, key in calls}


def failure_configs(template: Template) -> Iterator[tuple[str, str, str, str]]:
    """(logical id, function, qualifier, queue) of everything that names a failure destination."""
    for key, found in of_kind(template, "AWS::Lambda::EventInvokeConfig").items():
        destination = found.get("DestinationConfig", {}).get("OnFailure", {}).get("Destination")
        if destination:
            yield key, named(found["FunctionName"]), found["Qualifier"], named(destination)


def failure_queues(template: Template) -> set[str]:
    """Queues into which something falls that went wrong."""
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


# ── the rules ─────────────────────────────────────────────────────────────────────────────────────

_GATEWAY: Final = {"Type": "AWS::EC2::EgressOnlyInternetGateway", "Properties": {"VpcId": {"Ref": "Vpc"}}}


@rule({"One": _GATEWAY, "Two": _GATEWAY})
def a_vpc_has_one_egress_only_gateway(template: Template) -> Iterator[str]:
    """Amazon VPC quotas, "Gateways": one egress-only internet gateway a VPC, and the quota cannot be raised.

    Release 1 had two, the CDK's own beside ours.
    """
    found = of_kind(template, "AWS::EC2::EgressOnlyInternetGateway").values()
    vpcs = Counter(named(gateway["VpcId"]) for gateway in found)
    yield from (f"{vpc} has {count}" for vpc, count in vpcs.items() if count > 1)


_VPC: Final = {
    "Subnet": {
        "Type": "AWS::EC2::Subnet",
        "Properties": {"VpcId": {"Ref": "Vpc"}, "Ipv6CidrBlock": "x"},
    },
    "Way": {
        "Type": "AWS::EC2::SubnetRouteTableAssociation",
        "Properties": {"SubnetId": {"Ref": "Subnet"}, "RouteTableId": {"Ref": "Table"}},
    },
}


@rule(_VPC)
def a_subnet_with_ipv6_has_a_way_out(template: Template) -> Iterator[str]:
    """Amazon VPC User Guide, "Egress-only internet gateways": IPv6 needs a route for ::/0 in the subnet's table.

    In the subnets of the github function it is the only way to KMS and Secrets Manager.
    """
    routes = of_kind(template, "AWS::EC2::Route").values()
    outward = {
        named(route["RouteTableId"]) for route in routes if route.get("DestinationIpv6CidrBlock") == "::/0"
    }
    subnets = of_kind(template, "AWS::EC2::Subnet")
    for way in of_kind(template, "AWS::EC2::SubnetRouteTableAssociation").values():
        subnet = named(way["SubnetId"])
        if "Ipv6CidrBlock" in subnets[subnet] and named(way["RouteTableId"]) not in outward:
            yield subnet


@rule(
    {
        "Block": {"Type": "AWS::EC2::VPCCidrBlock", "Properties": {"VpcId": {"Ref": "Vpc"}}},
        "Out": {"Type": "AWS::EC2::Route", "Properties": {"DestinationIpv6CidrBlock": "::/0"}},
    }
)
def an_ipv6_route_waits_for_the_ipv6_block(template: Template) -> Iterator[str]:
    """AWS CDK, `ec2.Vpc`: what uses the VPC's IPv6 depends on its AWS::EC2::VPCCidrBlock, which no reference names
    (aws/aws-cdk#36714: deployments that fail now and then).
    """
    blocks = set(of_kind(template, "AWS::EC2::VPCCidrBlock"))
    for key, route in of_kind(template, "AWS::EC2::Route").items():
        if "DestinationIpv6CidrBlock" in route and blocks and not dependencies(template, key) & blocks:
            yield key


@rule({"Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {}}})
def an_alarm_has_an_action(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Alarm actions": an alarm without one changes its colour in the console alone."""
    alarms = of_kind(template, "AWS::CloudWatch::Alarm").items()
    yield from (key for key, alarm in alarms if not alarm.get("AlarmActions"))


_TOPIC: Final = {
    "Topic": {"Type": "AWS::SNS::Topic", "Properties": {}},
    "Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"AlarmActions": [{"Ref": "Topic"}]}},
}
_DENY: Final = {
    "Action": "sns:Publish", "Effect": "Deny", "Principal": "*", "Resource": {"Ref": "Topic"},
}  # fmt: skip


@rule(
    {
        **_TOPIC,
        "Policy": {
            "Type": "AWS::SNS::TopicPolicy",
            "Properties": {"Topics": [{"Ref": "Topic"}], "PolicyDocument": {"Statement": [_DENY]}},
        },
    }
)
def an_alarm_may_publish_to_its_topic(template: Template) -> Iterator[str]:
    """Amazon SNS Developer Guide, "Example cases for Amazon SNS access control": CloudWatch alarms publish as
    cloudwatch.amazonaws.com, under aws:SourceAccount. A TopicPolicy takes the place of the default policy, which let
    the account do so. Release 1's held a Deny alone.
    """
    for topic in alarmed_topics(template):
        policies = [
            policy
            for policy in of_kind(template, "AWS::SNS::TopicPolicy").values()
            if topic in map(named, policy["Topics"])
        ]
        found = allowed(statements(policies), "sns:Publish", topic)
        if policies and not any(_is_for_own_alarms(statement) for statement in found):
            yield topic


def _is_for_own_alarms(statement: dict[str, Any]) -> bool:
    principal = statement["Principal"]
    own = {"StringEquals": {"aws:SourceAccount": {"Ref": "AWS::AccountId"}}}
    return principal == {"Service": "cloudwatch.amazonaws.com"} and statement.get("Condition") == own


@rule(
    {
        **_TOPIC,
        "Topic": {"Type": "AWS::SNS::Topic", "Properties": {"KmsMasterKeyId": "alias/aws/sns"}},
    }
)
def an_alarm_may_use_the_key_of_its_topic(template: Template) -> Iterator[str]:
    """Amazon SNS Developer Guide, "Enable compatibility between event sources from AWS services and encrypted topics":
    the key's policy allows the service kms:GenerateDataKey* and kms:Decrypt, which AWS's own key never does.
    """
    topics = of_kind(template, "AWS::SNS::Topic")
    keys = of_kind(template, "AWS::KMS::Key")
    for topic in alarmed_topics(template) & set(topics):
        key = named(topics[topic].get("KmsMasterKeyId"))
        if key and not _lets_cloudwatch_encrypt(keys.get(key)):
            yield topic


def _lets_cloudwatch_encrypt(key: dict[str, Any] | None) -> bool:
    found = key["KeyPolicy"]["Statement"] if key else []
    actions = {
        action
        for statement in found
        if statement["Effect"] == "Allow"
        and statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        for action in many(statement["Action"])
    }
    return actions >= {"kms:Decrypt", "kms:GenerateDataKey*"}


@rule(_TOPIC, WITH_ADDRESS)
def an_alarm_reaches_somebody(template: Template) -> Iterator[str]:
    """Amazon SNS Developer Guide, "Creating a subscription": what is published to a topic without one is gone."""
    subscriptions = of_kind(template, "AWS::SNS::Subscription").values()
    yield from alarmed_topics(template) - {named(one["TopicArn"]) for one in subscriptions}


_ALIAS: Final = {
    "Live": {
        "Type": "AWS::Lambda::Alias",
        "Properties": {"Name": "live", "FunctionName": {"Ref": "Function"}},
    },
    "Function": {
        "Type": "AWS::Lambda::Function",
        "Properties": {"Role": {"Fn::GetAtt": ["Role", "Arn"]}},
    },
}
_SCHEDULE: Final = {
    "Type": "AWS::Scheduler::Schedule",
    "Properties": {"Target": {"Arn": {"Ref": "Live"}, "RoleArn": {"Fn::GetAtt": ["Role", "Arn"]}}},
}
_RULE: Final = {"Type": "AWS::Events::Rule", "Properties": {"Targets": [{"Arn": {"Ref": "Live"}}]}}
_FAILURES: Final = {
    "Type": "AWS::Lambda::EventInvokeConfig",
    "Properties": {
        "FunctionName": {"Ref": "Function"},
        "Qualifier": "$LATEST",
        "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Queue", "Arn"]}}},
    },
}


@rule({**_ALIAS, "Schedule": _SCHEDULE, "Failures": _FAILURES})
def an_asynchronous_call_has_a_failure_destination(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "How Lambda handles errors and retries with asynchronous invocation" and "Capturing
    records of Lambda asynchronous invocations": EventBridge, Scheduler, S3 and SNS invoke so; their own retries and
    queues end with the delivery, and Lambda discards what fails afterwards. The configuration is the qualifier's own.
    """
    aliases = of_kind(template, "AWS::Lambda::Alias")
    kept = {(function, qualifier) for _, function, qualifier, _ in failure_configs(template)}
    for called, by in called_asynchronously(template).items():
        alias = aliases.get(called)
        target = (named(alias["FunctionName"]), alias["Name"]) if alias else (called, "$LATEST")
        if target not in kept:
            yield f"{by} calls {called}"


@rule({**_ALIAS, "Failures": _FAILURES})
def a_function_may_send_what_failed(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Capturing records of Lambda asynchronous invocations", "Adding a destination": the
    execution role needs sqs:SendMessage, and Lambda refuses the configuration if it is made before that right is
    (aws-amplify/amplify-js#9869).
    """
    functions = of_kind(template, "AWS::Lambda::Function")
    policies = of_kind(template, "AWS::IAM::Policy")
    for key, function, _, queue in failure_configs(template):
        role = named(functions[function]["Role"])
        if not may_by_role(template, role, "sqs:SendMessage", queue):
            yield f"{function} may not send to {queue}"
        own = {name for name, policy in policies.items() if role in map(named, policy["Roles"])}
        if not own <= dependencies(template, key):
            yield f"{key} may come before what {function} may do"


@rule({**_ALIAS, "Rule": _RULE, "Schedule": _SCHEDULE})
def what_is_not_delivered_is_kept(template: Template) -> Iterator[str]:
    """Amazon EventBridge User Guide, "Using dead-letter queues to process undelivered events", and EventBridge
    Scheduler User Guide, "Configuring a dead-letter queue": without one an event is dropped after its retries.
    """
    for key, target in deliveries(template):
        missing = {"DeadLetterConfig", "RetryPolicy"} - set(target)
        if missing:
            yield f"{key} has no {', '.join(sorted(missing))}"


_DEAD_LETTERS: Final = {"DeadLetterConfig": {"Arn": {"Fn::GetAtt": ["Queue", "Arn"]}}}


@rule(
    {
        **_ALIAS,
        "Rule": {**_RULE, "Properties": {"Targets": [{"Arn": {"Ref": "Live"}, **_DEAD_LETTERS}]}},
    }
)
def a_dead_letter_may_be_sent(template: Template) -> Iterator[str]:
    """Amazon EventBridge User Guide, "Using dead-letter queues to process undelivered events", "Granting permissions
    to the dead-letter queue": the queue's policy lets events.amazonaws.com send. EventBridge Scheduler User Guide,
    "Configuring a dead-letter queue": the schedule's role does. Otherwise the event is dropped.
    """
    rules = of_kind(template, "AWS::Events::Rule")
    for key, target in deliveries(template):
        queue = named(target.get("DeadLetterConfig", {}).get("Arn"))
        if not queue:
            continue
        if key in rules:
            is_allowed = _may_send_as_events(template, queue)
        else:
            is_allowed = may_by_role(template, named(target["RoleArn"]), "sqs:SendMessage", queue)
        if not is_allowed:
            yield f"{key} may not send to {queue}"


def _may_send_as_events(template: Template, queue: str) -> bool:
    policies = [
        policy
        for policy in of_kind(template, "AWS::SQS::QueuePolicy").values()
        if queue in map(named, policy["Queues"])
    ]
    found = allowed(statements(policies), "sqs:SendMessage", queue)
    return any(statement["Principal"] == {"Service": "events.amazonaws.com"} for statement in found)


@rule({**_ALIAS, "Rule": _RULE, "Schedule": _SCHEDULE})
def a_delivery_may_call_its_function(template: Template) -> Iterator[str]:
    """Amazon EventBridge User Guide, "Using resource-based policies": a rule calls by a Lambda permission on the very
    qualifier; EventBridge Scheduler User Guide, "Setting up the execution role": a schedule by its role.
    """
    permitted = {
        (named(permission["FunctionName"]), named(permission.get("SourceArn")))
        for permission in of_kind(template, "AWS::Lambda::Permission").values()
        if permission["Principal"] == "events.amazonaws.com"
    }
    rules = of_kind(template, "AWS::Events::Rule")
    for key, target in deliveries(template):
        called = named(target["Arn"])
        if key in rules:
            may = (called, key) in permitted
        else:
            may = may_by_role(template, named(target["RoleArn"]), "lambda:InvokeFunction", called)
        if not may:
            yield f"{key} may not call {called}"


@rule(
    {
        **_ALIAS,
        "Queue": {"Type": "AWS::SQS::Queue", "Properties": {}},
        "Failures": _FAILURES,
        "Other": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {
                "MetricName": "ApproximateAgeOfOldestMessage",
                "Dimensions": [{"Value": {"Fn::GetAtt": ["Queue", "QueueName"]}}],
            },
        },
    },
    WITH_ALARMS,
)
def a_failure_queue_raises_an_alarm(template: Template) -> Iterator[str]:
    """Amazon SQS Developer Guide, "Creating alarms for dead-letter queues using Amazon CloudWatch": the alarm watches
    ApproximateNumberOfMessagesVisible, because what is moved there is not counted as sent; from one message on.
    """
    watched = {
        named(alarm["Dimensions"][0]["Value"])
        for alarm in of_kind(template, "AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
        and (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    }
    yield from failure_queues(template) - watched


@rule(
    {
        "Function": {
            "Type": "AWS::Lambda::Function",
            "Properties": {"Environment": {"Variables": {"LIST": "x" * 4093}}},
        }
    }
)
def an_environment_fits(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Lambda quotas": 4 KB for all environment variables together, names included.

    What is known at deployment alone is counted with 150 bytes, which the longest ARN of ours stays under.
    """
    for key, function in of_kind(template, "AWS::Lambda::Function").items():
        variables = function.get("Environment", {}).get("Variables", {})
        texts = (value if isinstance(value, str) else "?" * 150 for value in variables.values())
        size = sum(len(text.encode()) for text in (*variables, *texts))
        if size > 4096:
            yield f"{key}: {size} bytes"


@rule(
    {"Function": {"Type": "AWS::Lambda::Function", "Properties": {"Layers": ["a", "b", "c", "d", "e", "f"]}}}
)
def a_function_has_at_most_five_layers(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Lambda quotas": five layers a function. Their size is tests/infra/test_layers.py's."""
    functions = of_kind(template, "AWS::Lambda::Function").items()
    yield from (key for key, function in functions if len(function.get("Layers", [])) > 5)


# ── the tests ─────────────────────────────────────────────────────────────────────────────────────


@rule(
    {
        "Policy": {
            "Type": "AWS::IAM::Policy",
            "Properties": {
                "PolicyDocument": {
                    "Statement": [
                        {"Effect": "Allow", "Action": "s3vectors:QueryVectors", "Resource": "arn:index/a"},
                        {"Effect": "Allow", "Action": "s3vectors:GetVectors", "Resource": "arn:index/b"},
                    ]
                }
            },
        }
    }
)
def what_queries_vectors_may_get_them(template: Template) -> Iterator[str]:
    """Amazon S3 API Reference, QueryVectors, "Permissions": a query with a filter is refused with a 403 without
    ``s3vectors:GetVectors``. A search in one course or lesson filters."""
    for key, policy in of_kind(template, "AWS::IAM::Policy").items():
        may: dict[str, set[str]] = {}
        for statement in policy["PolicyDocument"]["Statement"]:
            for action in many(statement["Action"]):
                may.setdefault(action, set()).update(map(named, many(statement["Resource"])))
        if may.get("s3vectors:QueryVectors", set()) - may.get("s3vectors:GetVectors", set()):
            yield f"{key} may query vectors, but not with a filter"


@pytest.mark.parametrize(
    ("name", "one"),
    [
        pytest.param(name, one, id=f"{name}-{one.check.__name__}")
        for name in VARIANTS
        for one in RULES
        if name in one.variants
    ],
)
def test_a_rule_holds_in_every_stack(name: str, one: Rule, assembly: Callable[..., Path]) -> None:
    stage, settings = VARIANTS[name]
    found = findings(one, assembly(stage, settings))
    assert len(found) >= 3
    assert not any(found.values()), found


def findings(one: Rule, folder: Path) -> dict[str, list[str]]:
    """What a rule finds, by the file of the template."""
    files = sorted(folder.glob("*.template.json"))
    return {path.name: list(one.check(json.loads(path.read_text()))) for path in files}


def test_what_release_1_had_wrong_is_seen() -> None:
    seen = {one.check for one in RULES if any(findings(one, RELEASE_1).values())}
    assert seen == {
        a_vpc_has_one_egress_only_gateway,
        an_alarm_may_publish_to_its_topic,
        an_alarm_reaches_somebody,
        an_asynchronous_call_has_a_failure_destination,
    }


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.check.__name__)
def test_a_rule_sees_what_breaks_it(one: Rule) -> None:
    assert list(one.check({"Resources": one.broken}))
    assert not list(one.check({"Resources": {}}))


@pytest.mark.parametrize("one", RULES, ids=lambda one: one.check.__name__)
def test_a_rule_names_its_source(one: Rule) -> None:
    assert one.check.__doc__
    assert '"' in one.check.__doc__ or "#" in one.check.__doc__
