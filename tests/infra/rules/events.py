"""Asynchronous work: events, schedules, asynchronous calls and their dead-letter queues."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from tests.infra.rules.registry import (
    WITH_ALARMS,
    allowed,
    called_asynchronously,
    deliveries,
    dependencies,
    failure_configs,
    failure_queues,
    may_by_role,
    named,
    of_kind,
    rule,
    statements,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.infra.rules.registry import Template

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
    records of Lambda asynchronous invocations": EventBridge, Scheduler, S3 and SNS invoke asynchronously; their own
    retries and queues only cover the delivery, and Lambda discards what fails afterwards. Each qualifier has its own
    configuration.
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
    execution role needs sqs:SendMessage, and Lambda refuses the configuration if it is created before that permission
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
            yield f"{key} may be created before the permissions of {function}"


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
    grants = allowed(statements(policies), "sqs:SendMessage", queue)
    return any(statement["Principal"] == {"Service": "events.amazonaws.com"} for statement in grants)


@rule({**_ALIAS, "Rule": _RULE, "Schedule": _SCHEDULE})
def a_delivery_may_call_its_function(template: Template) -> Iterator[str]:
    """Amazon EventBridge User Guide, "Using resource-based policies": a rule calls by a Lambda permission on the same
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
    ApproximateNumberOfMessagesVisible, because messages moved there are not counted as sent; it fires at one message.
    """
    watched = {
        named(alarm["Dimensions"][0]["Value"])
        for alarm in of_kind(template, "AWS::CloudWatch::Alarm").values()
        if alarm.get("MetricName") == "ApproximateNumberOfMessagesVisible"
        and (alarm["Threshold"], alarm["ComparisonOperator"]) == (1, "GreaterThanOrEqualToThreshold")
    }
    yield from failure_queues(template) - watched
