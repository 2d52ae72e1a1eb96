"""Alarms: who is notified, and what raises one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from dualtrack.runtime.metrics import CHAT_ENDS
from dualtrack_stack.costs import FREE_METRICS, metrics_of

from tests.infra.rules.registry import (
    WITH_ADDRESS,
    WITH_ALARMS,
    alarmed_topics,
    allowed,
    many,
    named,
    of_kind,
    rule,
    statements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template


@rule({"Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {}}})
def an_alarm_has_an_action(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Alarm actions": an alarm without one only changes its colour in the console."""
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
    cloudwatch.amazonaws.com, under aws:SourceAccount. A TopicPolicy replaces the default policy, which allowed this to
    the account.
    """
    for topic in alarmed_topics(template):
        policies = [
            policy
            for policy in of_kind(template, "AWS::SNS::TopicPolicy").values()
            if topic in map(named, policy["Topics"])
        ]
        grants = allowed(statements(policies), "sns:Publish", topic)
        if policies and not any(_is_for_own_alarms(statement) for statement in grants):
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
    the key's policy allows the service kms:GenerateDataKey* and kms:Decrypt, which the AWS managed key never does.
    """
    topics = of_kind(template, "AWS::SNS::Topic")
    keys = of_kind(template, "AWS::KMS::Key")
    for topic in alarmed_topics(template) & set(topics):
        key = named(topics[topic].get("KmsMasterKeyId"))
        if key and not _lets_cloudwatch_encrypt(keys.get(key)):
            yield topic


def _lets_cloudwatch_encrypt(key: dict[str, Any] | None) -> bool:
    key_statements = key["KeyPolicy"]["Statement"] if key else []
    actions = {
        action
        for statement in key_statements
        if statement["Effect"] == "Allow"
        and statement["Principal"] == {"Service": "cloudwatch.amazonaws.com"}
        for action in many(statement["Action"])
    }
    return actions >= {"kms:Decrypt", "kms:GenerateDataKey*"}


@rule(_TOPIC, WITH_ADDRESS)
def an_alarm_reaches_somebody(template: Template) -> Iterator[str]:
    """Amazon SNS Developer Guide, "Creating a subscription": what is published to a topic without subscriptions is
    lost.
    """
    subscriptions = of_kind(template, "AWS::SNS::Subscription").values()
    own = alarmed_topics(template) & set(of_kind(template, "AWS::SNS::Topic"))
    yield from own - {named(subscription["TopicArn"]) for subscription in subscriptions}


def alarms_of(template: Template) -> dict[str, Any]:
    return of_kind(template, "AWS::CloudWatch::Alarm")


def watched_metrics(alarm: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """(namespace, metric, logical id or text of the first dimension) of every metric that an alarm watches."""
    stats = [query["MetricStat"]["Metric"] for query in alarm.get("Metrics", []) if "MetricStat" in query]
    for metric in stats or [alarm]:
        dimensions = metric.get("Dimensions") or [{"Value": ""}]
        yield metric["Namespace"], metric["MetricName"], named(dimensions[0]["Value"])


def all_watched(template: Template) -> set[tuple[str, str, str]]:
    """What any alarm watches."""
    return {triple for alarm in alarms_of(template).values() for triple in watched_metrics(alarm)}


@rule(
    {
        "Alarm": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"Statistic": "Sum", "Threshold": 5, "EvaluationPeriods": 1},
        },
        "Lasting": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"Statistic": "Sum", "Threshold": 1, "EvaluationPeriods": 3},
        },
    },
    WITH_ALARMS,
)
def an_alarm_fires_in_a_quiet_hour(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Configuring how CloudWatch alarms treat missing data": a period without data is no
    breach here, so an alarm on several events, or on events in several periods, never fires if one chat an hour fails.
    An alarm must be on a ratio, or on a sum of at least one in one period.
    """
    for key, alarm in alarms_of(template).items():
        periods = alarm.get("DatapointsToAlarm", alarm.get("EvaluationPeriods", 1))
        is_on_silence = alarm.get("TreatMissingData") == "breaching"
        if alarm.get("Statistic") == "Sum" and not is_on_silence and (alarm["Threshold"] > 1 or periods > 1):
            yield key


@rule(
    {
        "Alarm": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"Metrics": [{"MetricStat": {}}] * 11 + [{"Expression": "SUM(METRICS())"}]},
        }
    }
)
def an_alarm_adds_up_ten_metrics_at_most(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Create a CloudWatch alarm based on a metric math expression": up to 10 metrics."""
    for key, alarm in alarms_of(template).items():
        if sum("MetricStat" in query for query in alarm.get("Metrics", [])) > 10:
            yield key


_CHATS_FAIL: Final = {
    "Type": "AWS::CloudWatch::Alarm",
    "Properties": {
        "Namespace": "AWS/States",
        "MetricName": "ExecutionsFailed",
        "Dimensions": [{"Value": {"Ref": "Machine"}}],
    },
}


@rule({"Alarm": _CHATS_FAIL}, WITH_ALARMS)
def a_timeout_raises_an_alarm(template: Template) -> Iterator[str]:
    """AWS Step Functions Developer Guide, "Monitoring Step Functions metrics using Amazon CloudWatch": executions that
    time out are counted as ExecutionsTimedOut, not as ExecutionsFailed. A chat that ends by its own time, which is
    shorter than that of its execution, is counted by its end, as is one whose execution has timed out.
    """
    watched = all_watched(template)
    ends = {metric for _, metric, _ in watched}
    for namespace, metric, machine in watched:
        is_told = (namespace, "ExecutionsTimedOut", machine) in watched or CHAT_ENDS in ends
        if metric == "ExecutionsFailed" and not is_told:
            yield machine


@rule(
    {
        "Alarm": _CHATS_FAIL,
        "Function": {"Type": "AWS::Lambda::Function", "Properties": {}},
    },
    WITH_ALARMS,
)
def a_throttle_raises_an_alarm(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Types of metrics for Lambda functions": throttled requests count neither as
    invocations nor as errors. Without a dimension the metric is of all functions of the account and region.
    """
    watched = all_watched(template)
    if watched and ("AWS/Lambda", "Throttles", "") not in watched:
        yield from of_kind(template, "AWS::Lambda::Function")


_SLOWS_DOWN: Final = {
    ("AWS/ApiGateway", "Latency"),
    ("AWS/DynamoDB", "ReadThrottleEvents"),
    ("AWS/DynamoDB", "WriteThrottleEvents"),
    ("AWS/States", "ExecutionThrottled"),
}


@rule({"Alarm": _CHATS_FAIL}, WITH_ALARMS)
def what_only_slows_down_raises_an_alarm(template: Template) -> Iterator[str]:
    """AWS Well-Architected Serverless Applications Lens, "REL 1": throttled requests that succeed after retries are
    errors of nobody.
    """
    watched = {(namespace, metric) for namespace, metric, _ in all_watched(template)}
    yield from map(str, _SLOWS_DOWN - watched if watched else ())


@rule({"Alarm": _CHATS_FAIL}, WITH_ALARMS)
def what_no_error_tells_raises_an_alarm(template: Template) -> Iterator[str]:
    """AWS Well-Architected Serverless Applications Lens, "OPS 1: metrics": business metrics beside those of the
    services. These failures are handled, so they are not errors of a function: an account, a slow model, a stream that
    ends in its middle, and a listing where there are MCP servers.
    """
    own = {"CreditAccountsLeft", "FirstTextMilliseconds", "BrokenStreams"}
    functions = of_kind(template, "AWS::Lambda::Function").items()
    mcp: dict[str, Any] = next((f for key, f in functions if key.startswith("McpFunction")), {})
    if mcp.get("Environment", {}).get("Variables", {}).get("MCP_SERVERS", "[]") != "[]":
        own.add("McpListingsFailed")
    watched = {metric for namespace, metric, _ in all_watched(template) if namespace == "dualtrack"}
    yield from own - watched if alarms_of(template) else ()


@rule({"Alarm": _CHATS_FAIL}, WITH_ALARMS)
def an_error_that_nobody_is_told_raises_an_alarm(template: Template) -> Iterator[str]:
    """AWS Lambda Developer Guide, "Using CloudWatch metrics with Lambda", "Errors": for functions whose caller does not
    report errors: an event whose sweep hides them, or a reader that has already received part of its answer.
    """
    watched = {name for _, metric, name in all_watched(template) if metric == "Errors"}
    for name in ("Abort", "Stream") if alarms_of(template) else ():
        if not any(key.startswith(f"{name}Function") for key in watched):
            yield name


@rule({"Alarm": _CHATS_FAIL}, WITH_ALARMS)
def what_a_schedule_does_not_start_is_missed(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Configuring how CloudWatch alarms treat missing data": a function that nobody
    calls has no metrics, so that missing data must breach.
    """
    missed = {
        name
        for alarm in alarms_of(template).values()
        for _, metric, name in watched_metrics(alarm)
        if metric == "Invocations"
        and alarm.get("TreatMissingData") == "breaching"
        and alarm["ComparisonOperator"] == "LessThanThreshold"
    }
    for name in ("Sweep", "CreditReset") if alarms_of(template) else ():
        if not any(key.startswith(f"{name}Function") for key in missed):
            yield name


_RATIO: Final = [
    {"Id": "failed", "MetricStat": {}},
    {"Id": "succeeded", "MetricStat": {}},
    {"Id": "share", "Expression": "IF(failed + succeeded > 0, 100 * failed / (failed + succeeded), 0)"},
]


@rule({"Alarm": {"Type": "AWS::CloudWatch::Alarm", "Properties": {"Metrics": _RATIO}}})
def a_metric_without_points_does_not_hide_another(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Use metric math", "FILL": an expression has no value
    for a period in which one of its metrics has none. Where all chats fail, none succeeds.
    """
    for key, alarm in alarms_of(template).items():
        metrics = alarm.get("Metrics", [])
        ids = [query["Id"] for query in metrics if "MetricStat" in query]
        expressions = " ".join(query.get("Expression", "") for query in metrics)
        rest = re.sub(r"FILL\((\w+), 0\)", "", expressions)
        yield from (f"{key}: {name}" for name in ids if re.search(rf"\b{name}\b", rest))


@rule(
    {
        "Alarm": {
            "Type": "AWS::CloudWatch::Alarm",
            "Properties": {"AlarmActions": [{"Ref": "Topic"}]},
        }
    }
)
def an_alarm_says_when_it_is_over(template: Template) -> Iterator[str]:
    """Amazon CloudWatch User Guide, "Alarm actions": an action for the state OK; whoever is woken wants to know whether
    it has passed."""
    alarms = alarms_of(template).items()
    yield from (key for key, alarm in alarms if alarm.get("OKActions") != alarm.get("AlarmActions"))


@rule(
    {
        "Dashboard": {
            "Type": "AWS::CloudWatch::Dashboard",
            "Properties": {
                "DashboardBody": '{"widgets": [{"properties": {"metrics": [[]' + ", []" * 50 + "]}}]}"
            },
        }
    }
)
def a_dashboard_is_free(template: Template) -> Iterator[str]:
    """Amazon CloudWatch pricing, "Dashboards": three of up to 50 metrics each are free, a larger one is $3 a month."""
    for key, dashboard in of_kind(template, "AWS::CloudWatch::Dashboard").items():
        if metrics_of(dashboard["DashboardBody"]) > FREE_METRICS:
            yield key


@rule(
    {
        "Alarm": _CHATS_FAIL,
        "McpFunction": {"Type": "AWS::Lambda::Function", "Properties": {"VpcConfig": {"SubnetIds": []}}},
    },
    WITH_ALARMS,
)
def a_task_that_is_gone_raises_an_alarm(template: Template) -> Iterator[str]:
    """Amazon ECS Developer Guide, "Amazon ECS service RUNNING task count": the sample count of CPUUtilization is the
    number of running tasks; without a task there is no sample, so missing data must breach.
    """
    tasks = [
        alarm
        for alarm in alarms_of(template).values()
        if alarm.get("Namespace") == "AWS/ECS"
        and alarm["Statistic"] == "SampleCount"
        and alarm["TreatMissingData"] == "breaching"
    ]
    functions = of_kind(template, "AWS::Lambda::Function").items()
    if not tasks:
        yield from (key for key, function in functions if "VpcConfig" in function)
