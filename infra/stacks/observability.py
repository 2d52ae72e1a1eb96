"""Dashboard and alarms: what an operator looks at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, CfnOutput, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_apigateway as apigateway
    from aws_cdk import aws_sqs as sqs
    from aws_cdk import aws_stepfunctions as sfn

    from infra.stacks.functions import Function
    from infra.stages import StageSettings

_PERIOD = Duration.minutes(5)


class Observability(Construct):
    """One dashboard; in stages with alarms also a topic that they notify, and with it ``alarm_email``.

    Output ``AlarmTopicArn``: where others subscribe. Without an address and without them nobody hears an alarm.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        functions: Mapping[str, Function],
        machine: sfn.StateMachine,
        rest: apigateway.RestApi,
        undelivered: sqs.Queue,
        failed: sqs.Queue,
        alarm_email: str = "",
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._machine = machine
        self._rest = rest
        self._undelivered = undelivered
        self._failed = failed
        self._dashboard(stage)
        if stage.alarms:
            self._alarms(self._topic(stage, alarm_email))

    def _dashboard(self, stage: StageSettings) -> None:
        each = self._functions.values()
        dashboard = cloudwatch.Dashboard(self, "Dashboard", dashboard_name=f"{stage.prefix}-chats")
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="Chats: workflow executions",
                left=[
                    self._machine.metric_started(period=_PERIOD),
                    self._machine.metric_succeeded(period=_PERIOD),
                    self._machine.metric_failed(period=_PERIOD),
                    self._machine.metric_timed_out(period=_PERIOD),
                    self._machine.metric_aborted(period=_PERIOD),
                ],
            ),
            cloudwatch.GraphWidget(
                title="Chats: seconds",
                left=[
                    self._machine.metric_time(statistic="p50", period=_PERIOD, label="p50"),
                    self._machine.metric_time(statistic="p95", period=_PERIOD, label="p95"),
                ],
            ),
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="API: requests and errors",
                left=[
                    self._rest.metric_count(period=_PERIOD),
                    self._rest.metric_client_error(period=_PERIOD),
                    self._rest.metric_server_error(period=_PERIOD),
                ],
            ),
            cloudwatch.GraphWidget(
                title="API: milliseconds",
                left=[
                    self._rest.metric_latency(statistic="p50", period=_PERIOD, label="p50"),
                    self._rest.metric_latency(statistic="p95", period=_PERIOD, label="p95"),
                ],
            ),
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="Functions: errors",
                left=[f.function.metric_errors(period=_PERIOD, label=f.spec.name) for f in each],
            ),
            cloudwatch.GraphWidget(
                title="Functions: throttles and concurrency",
                left=[f.function.metric_throttles(period=_PERIOD, label=f.spec.name) for f in each],
                right=[
                    self._functions["stream"].function.metric(
                        "ConcurrentExecutions", statistic="max", period=_PERIOD, label="open event streams"
                    )
                ],
            ),
        )

    def _topic(self, stage: StageSettings, alarm_email: str) -> sns.Topic:
        topic = sns.Topic(self, "Alarms", topic_name=f"{stage.prefix}-alarms", enforce_ssl=True)
        # A policy of ours, if only the one of enforce_ssl, takes the place of the default one, which let the
        # account's own alarms publish.
        topic.add_to_resource_policy(
            iam.PolicyStatement(
                sid="AlarmsPublish",
                actions=["sns:Publish"],
                resources=[topic.topic_arn],
                principals=[iam.ServicePrincipal("cloudwatch.amazonaws.com")],
                conditions={"StringEquals": {"aws:SourceAccount": Aws.ACCOUNT_ID}},
            )
        )
        if alarm_email:
            topic.add_subscription(subscriptions.EmailSubscription(alarm_email))
        CfnOutput(self, "AlarmTopicArn", value=topic.topic_arn).override_logical_id("AlarmTopicArn")
        return topic

    def _alarms(self, topic: sns.Topic) -> None:
        watched = {
            "ChatsFail": (self._machine.metric_failed(period=_PERIOD), 5, "Chats end as failed"),
            "ApiFails": (self._rest.metric_server_error(period=_PERIOD), 5, "The API answers 5xx"),
            "AbortFails": (
                self._functions["abort"].function.metric_errors(period=_PERIOD),
                1,
                "A chat could not be ended; the sweep will try again",
            ),
            "SweepFails": (
                self._functions["sweep"].function.metric_errors(period=_PERIOD),
                2,
                "Chats and holds may stay open",
            ),
            "Undelivered": (
                self._undelivered.metric_approximate_number_of_messages_visible(period=_PERIOD),
                1,
                "An event or a schedule did not reach its function",
            ),
            "Failed": (
                self._failed.metric_approximate_number_of_messages_visible(period=_PERIOD),
                1,
                "An event or a schedule reached its function, which failed at every attempt",
            ),
        }
        for name, (metric, threshold, description) in watched.items():
            alarm = cloudwatch.Alarm(
                self,
                name,
                metric=metric,
                threshold=threshold,
                evaluation_periods=1,
                alarm_description=description,
                treat_missing_data=cloudwatch.TreatMissingData.NOT_BREACHING,
            )
            alarm.add_alarm_action(actions.SnsAction(topic))
