"""Dashboard and alarms: what an operator looks at first."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_sns as sns
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
    """One dashboard; in stages with alarms also a topic that they notify (subscribe to it)."""

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
    ) -> None:
        super().__init__(scope, construct_id)
        self._functions = functions
        self._machine = machine
        self._rest = rest
        self._undelivered = undelivered
        self._dashboard(stage)
        if stage.alarms:
            self._alarms(stage)

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

    def _alarms(self, stage: StageSettings) -> None:
        topic = sns.Topic(self, "Alarms", topic_name=f"{stage.prefix}-alarms", enforce_ssl=True)
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
