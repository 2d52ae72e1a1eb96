"""Dashboard and alarms: an operator's starting point."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import Aws, CfnOutput, Duration
from aws_cdk import aws_cloudwatch as cloudwatch
from aws_cdk import aws_cloudwatch_actions as actions
from aws_cdk import aws_iam as iam
from aws_cdk import aws_logs as logs
from aws_cdk import aws_sns as sns
from aws_cdk import aws_sns_subscriptions as subscriptions
from constructs import Construct
from dualtrack.runtime.metrics import CHAT_ENDS, CHATS, DEGRADED, ENDS, NAMESPACE, PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_cdk import aws_apigateway as apigateway
    from aws_cdk import aws_ecs as ecs
    from aws_cdk import aws_sqs as sqs
    from aws_cdk import aws_stepfunctions as sfn

    from infra.stacks.functions import Function
    from infra.stages import StageSettings

_PERIOD: Final = Duration.minutes(5)
_WINDOW: Final = Duration.minutes(15)
_MINUTE: Final = Duration.minutes(1)
_MOST_METRICS: Final = 10
"""Of one alarm (Amazon CloudWatch User Guide, "Create an alarm based on a metric math expression")."""
_AT_LEAST: Final = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
FIRST_TEXT_METRIC: Final = "FirstTextMilliseconds"
"""From the request of a turn to the first text of its answer, counted by `functions/turn`."""
_SLOW_MILLISECONDS: Final = 20_000
_WATCHING_A_RELEASE: Final = ("ReleaseFails", "ChatsTimeOut", "AbortFails")
"""The alarms that roll the workflow's alias back. None depends on `api` or `sweep`, which depend on the alias."""


class Observability(Construct):
    """One dashboard; in stages with alarms also the topic that they notify, with ``alarm_email`` as a subscriber.

    Output ``AlarmTopicArn``: for other subscribers. Without any subscriber an alarm reaches no one.
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
        mcp_service: ecs.FargateService | None = None,
    ) -> None:
        super().__init__(scope, construct_id)
        self._mcp_service = mcp_service
        self._functions = functions
        self._machine = machine
        self._rest = rest
        self._undelivered = undelivered
        self._failed = failed
        self._stage = stage
        self._raised: dict[str, cloudwatch.Alarm] = {}
        self._dashboard(stage)
        if stage.encrypted_transport:  # on AWS: the emulator knows no saved queries
            self._queries(stage)
        if stage.alarms:
            self._alarms(self._topic(stage, alarm_email))

    @property
    def release_alarms(self) -> list[cloudwatch.Alarm]:
        """The alarms that are watched while a new version of the workflow takes over the chats."""
        return [self._raised[name] for name in _WATCHING_A_RELEASE]

    def _dashboard(self, stage: StageSettings) -> None:
        each = self._functions.values()
        dashboard = cloudwatch.Dashboard(
            # dashboards are the account's, not the region's
            self,
            "Dashboard",
            dashboard_name=f"{stage.prefix}-chats-{Aws.REGION}",
        )
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

        self._money(dashboard)

    def _money(self, dashboard: cloudwatch.Dashboard) -> None:
        """Cost, tokens and times of model calls, as counted by `functions/turn` and `functions/search`, without
        summaries."""

        def figure(name: str, statistic: str, label: str) -> cloudwatch.Metric:
            return self._own("turn", name, statistic, _PERIOD, label)

        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="Money: dollars of models",
                left=[
                    figure("ModelDollars", "Sum", "turns"),
                    self._own("search", "ModelDollars", "Sum", _PERIOD, "inside searches"),
                ],
            ),
            cloudwatch.GraphWidget(
                title="Tokens of the model's turns",
                left=[
                    figure("FreshTokens", "Sum", "fresh"),
                    figure("CacheWriteTokens", "Sum", "written to the cache"),
                    figure("CacheReadTokens", "Sum", "read from the cache"),
                    figure("OutputTokens", "Sum", "output"),
                ],
            ),
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="The model: seconds",
                left=[
                    figure("ModelSeconds", "p50", "p50"),
                    figure("ModelSeconds", "p95", "p95"),
                ],
            ),
            cloudwatch.GraphWidget(
                title="The model: milliseconds to the first text",
                left=[figure(FIRST_TEXT_METRIC, "p50", "p50"), figure(FIRST_TEXT_METRIC, "p95", "p95")],
            ),
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="The model: requests a turn, and turns that waited for it",
                left=[figure("ModelTries", "Average", "requests")],
                right=[
                    figure("BusyModel", "Sum", "waits"),
                    self._own("summarise", "MissingSummaries", "Sum", _PERIOD, "missing summaries"),
                ],
            ),
            cloudwatch.GraphWidget(title="Searches that ran degraded", left=self._degraded()),
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(title="Chats that ended otherwise than complete", left=self._ends())
        )

    def _degraded(self) -> list[cloudwatch.IMetric]:
        return [self._own("search", DEGRADED, "Sum", _PERIOD, part, part=part) for part in PARTS]

    def _ends(self) -> list[cloudwatch.IMetric]:
        return [self._own(CHATS, CHAT_ENDS, "Sum", _PERIOD, end, end=end) for end in ENDS]

    def _own(
        self,
        service: str,
        name: str,
        statistic: str = "Sum",
        period: Duration = _WINDOW,
        label: str | None = None,
        **dimensions: str,
    ) -> cloudwatch.Metric:
        """Metrics that functions write, by their dimensions (`dualtrack.runtime.metrics`)."""
        return cloudwatch.Metric(
            namespace=NAMESPACE,
            metric_name=name,
            dimensions_map={"service": service, "stage": self._stage.name, **dimensions},
            statistic=statistic,
            period=period,
            label=label,
        )

    def _queries(self, stage: StageSettings) -> None:
        """Saved queries of Logs Insights. `correlation_id` is the chat's id in every function's lines."""
        groups = [function.log_group for function in self._functions.values()]
        fields = ("@timestamp", "service", "level", "message", "turn", "next", "error")
        wanted = {
            "Chat": logs.QueryString(
                fields=[*fields],
                filter_statements=['correlation_id = "ch_…"'],
                sort="@timestamp asc",
                limit=1000,
            ),
            "Errors": logs.QueryString(
                fields=[*fields, "correlation_id"],
                filter_statements=['level in ["ERROR", "CRITICAL"]'],
                sort="@timestamp desc",
                limit=200,
            ),
            "Dollars": logs.QueryString(
                fields=["ModelDollars.0 as dollars"],
                filter_statements=["ispresent(ModelDollars.0)"],
                stats_statements=["sum(dollars) as model_dollars, count(*) as entries by service, bin(1d)"],
            ),
        }
        for name, text in wanted.items():
            logs.QueryDefinition(
                self,
                f"{name}Query",
                query_definition_name=f"{stage.prefix}/{name.lower()}",
                query_string=text,
                log_groups=groups,
            )

    def _topic(self, stage: StageSettings, alarm_email: str) -> sns.Topic:
        topic = sns.Topic(self, "Alarms", topic_name=f"{stage.prefix}-alarms", enforce_ssl=True)
        # Any policy of our own, here that of enforce_ssl, replaces the default one, which lets the account's alarms
        # publish.
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
        """A single event in a quiet hour can raise every alarm: it is on a share, or on a sum of at least one
        (tests/infra)."""
        for name, (metric, threshold, description) in self._watched().items():
            self._alarm(name, metric, threshold, description, topic)
        if self._mcp_service:
            # ECS reports the CPU use of running tasks only, so no data means no task
            self._alarm(
                "McpTask",
                self._mcp_service.metric_cpu_utilization(statistic="n", period=_MINUTE),
                1,
                "No task of GitHub's MCP server runs; its tools fail",
                topic,
                comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                periods=5,
                missing=cloudwatch.TreatMissingData.BREACHING,
            )

    def _watched(self) -> dict[str, tuple[cloudwatch.IMetric, float, str]]:
        machine, functions = self._machine, self._functions
        return {
            "ChatsFail": (
                _share(
                    "failed",
                    machine.metric_failed(period=_WINDOW),
                    "succeeded",
                    machine.metric_succeeded(period=_WINDOW),
                ),
                20,
                "A fifth of the chats that ended in a quarter of an hour failed",
            ),
            "ChatsTimeOut": (
                machine.metric_timed_out(period=_WINDOW),
                1,
                "A chat exceeded its 15 minutes: a step hangs, or waits for an unavailable model",
            ),
            "ApiFails": (
                self._rest.metric_server_error(statistic="avg", period=_WINDOW),
                0.05,
                "One request in twenty is answered with 5xx",
            ),
            "StreamsFail": (
                _share(
                    "failed",
                    functions["stream"].function.metric_errors(period=_WINDOW),
                    "begun",
                    functions["stream"].function.metric_invocations(period=_WINDOW),
                ),
                5,
                "Event streams break off",
            ),
            "AbortFails": (
                functions["abort"].function.metric_errors(period=_PERIOD),
                1,
                "A chat could not be ended; the sweep will try again",
            ),
            "SweepFails": (
                functions["sweep"].function.metric_errors(period=_PERIOD),
                1,
                "Chats and holds may stay open",
            ),
            "ResetFails": (
                functions["credit_reset"].function.metric_errors(period=_PERIOD),
                1,
                "Stored accounts are not brought up to date; allowances are right all the same",
            ),
            "AccountsLeft": (
                self._own("credit_reset", "CreditAccountsLeft"),
                1,
                "The reset could not bring some accounts up to date",
            ),
            "ListingsFail": (
                self._own("github", "McpListingsFailed"),
                1,
                "An MCP server did not list its tools; after six hours they are offered no more",
            ),
            "SlowFirstText": (
                self._own("turn", FIRST_TEXT_METRIC, "p95"),
                _SLOW_MILLISECONDS,
                "One model call in twenty writes its first text after more than 20 s",
            ),
            "SearchesDegraded": (
                _share(
                    "degraded",
                    self._own("search", DEGRADED),
                    "begun",
                    functions["search"].function.metric_invocations(period=_WINDOW),
                ),
                34,
                "A third of the searches went without embeddings, the model's ranking or the documentation",
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
            **self._release(),
            **self._throttles(),
        }

    def _release(self) -> dict[str, tuple[cloudwatch.IMetric, float, str]]:
        """A new version that fails all of its chats is detected at its first step: the threshold is half of that
        share."""
        if not self._stage.moves_by_steps:
            return {}
        machine = self._machine
        failing = _share(
            "failed",
            machine.metric_failed(period=_PERIOD),
            "succeeded",
            machine.metric_succeeded(period=_PERIOD),
            _PERIOD,
        )
        description = (
            "Too many of the chats that ended in five minutes failed; a release in progress is rolled back"
        )
        return {"ReleaseFails": (failing, self._stage.release_percent / 2, description)}

    def _throttles(self) -> dict[str, tuple[cloudwatch.IMetric, float, str]]:
        """An alarm adds up ten metrics at most."""
        names = list(self._functions)
        alarms: dict[str, tuple[cloudwatch.IMetric, float, str]] = {}
        for number, first in enumerate(range(0, len(names), _MOST_METRICS)):
            group = names[first : first + _MOST_METRICS]
            using: dict[str, cloudwatch.IMetric] = {
                name: self._functions[name].function.metric_throttles(period=_PERIOD) for name in group
            }
            total = cloudwatch.MathExpression(
                expression=f"SUM([{', '.join(f'FILL({name}, 0)' for name in group)}])",
                using_metrics=using,
                period=_PERIOD,
                label="throttles",
            )
            alarms[f"Throttled{number}"] = (total, 1, f"Lambda throttles one of {', '.join(group)}")
        return alarms

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        threshold: float,
        description: str,
        topic: sns.Topic,
        *,
        comparison: cloudwatch.ComparisonOperator = _AT_LEAST,
        periods: int = 1,
        missing: cloudwatch.TreatMissingData = cloudwatch.TreatMissingData.NOT_BREACHING,
    ) -> None:
        alarm = cloudwatch.Alarm(
            self,
            name,
            metric=metric,
            threshold=threshold,
            comparison_operator=comparison,
            evaluation_periods=periods,
            alarm_description=description,
            treat_missing_data=missing,
        )
        alarm.add_alarm_action(actions.SnsAction(topic))
        self._raised[name] = alarm


def _share(
    bad: str,
    of_bad: cloudwatch.IMetric,
    rest: str,
    of_rest: cloudwatch.IMetric,
    period: Duration = _WINDOW,
) -> cloudwatch.IMetric:
    """Percentage of failures; 0 without events. A threshold on a sum would need traffic."""
    whole = rest if rest == "begun" else f"({bad} + {rest})"
    return cloudwatch.MathExpression(
        expression=f"IF({whole} > 0, 100 * {bad} / {whole}, 0)",
        using_metrics={bad: of_bad, rest: of_rest},
        period=period,
        label=f"% {bad}",
    )
