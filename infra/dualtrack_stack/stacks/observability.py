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
from dualtrack.api.request_log import MESSAGE
from dualtrack.runtime.metrics import CHAT_ENDS, CHATS, DEGRADED, ENDS, KEY_CAPS_NEAR, MODEL_DOLLARS, PARTS
from dualtrack.runtime.plain_log import BROKEN_STREAMS, NAMESPACE

from dualtrack_stack.stacks.function_specs import PLUGIN_STACKS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import TypeAlias

    from aws_cdk import aws_apigateway as apigateway
    from aws_cdk import aws_dynamodb as dynamodb
    from aws_cdk import aws_ecs as ecs
    from aws_cdk import aws_sqs as sqs
    from aws_cdk import aws_stepfunctions as sfn

    from dualtrack_stack.stacks.functions import Function
    from dualtrack_stack.stages import StageSettings
    from dualtrack_stack.watch import Watch

    Watched: TypeAlias = Mapping[str, tuple[cloudwatch.IMetric, float, str]]

_OF_PLUGINS: Final = tuple(alarm for stack in PLUGIN_STACKS for alarm in stack.alarms)
_PERIOD: Final = Duration.minutes(5)
_WINDOW: Final = Duration.minutes(15)
_MINUTE: Final = Duration.minutes(1)
_DAY: Final = Duration.days(1)
_DAY_PART: Final = Duration.hours(6)
_AT_LEAST: Final = cloudwatch.ComparisonOperator.GREATER_THAN_OR_EQUAL_TO_THRESHOLD
_OF_CHATS: Final = ("api", "turn", "tool", "search", "graph", "mcp", "summarise", "stream")
"""The functions whose errors the dashboard draws: CloudWatch bills a dashboard of more than 50 metrics. What the others
fail at reaches a queue or a job's report."""
_BY_ROUTE: Final = (
    "count(*) as requests, pct(milliseconds, 50) as p50, pct(milliseconds, 95) as p95"
    " by service, route, floor(status / 100) as hundreds"
)
FIRST_TEXT_METRIC: Final = "FirstTextMilliseconds"
"""From the request of a turn to the first text of its answer, counted by `functions/turn`."""
_SLOW_MILLISECONDS: Final = 20_000
_SLOW_REQUESTS: Final = 3_000
"""Milliseconds; a request that waits for its chat, and an event stream, may take longer (CONTRACT 4)."""
_WATCHING_A_RELEASE: Final = ("ChatsFail", "ChatsTimeOut", "AbortFails")
"""The alarms that roll the workflow's alias back. None depends on `api` or `sweep`, which depend on the alias."""


class Observability(Construct):
    """One dashboard; in stages with alarms also the topic that they notify when they begin and when they are over.

    Output ``AlarmTopicArn``: for other subscribers. Without any subscriber, and without a topic of the operator's
    (`Watch.topic`), an alarm reaches no one.
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
        tables: Mapping[str, dynamodb.ITable],
        undelivered: sqs.Queue,
        failed: sqs.Queue,
        watch: Watch,
        lists_tools: bool,
        mcp_service: ecs.FargateService | None = None,
    ) -> None:
        """``lists_tools``: whether MCP servers are set, whose listings can fail."""
        super().__init__(scope, construct_id)
        self._mcp_service = mcp_service
        self._tables = tables
        self._watch = watch
        self._lists_tools = lists_tools
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
            self._alarms(self._topics(stage))

    @property
    def release_alarms(self) -> list[cloudwatch.Alarm]:
        """The alarms that are watched while a new version of the workflow takes over the chats."""
        return [self._raised[name] for name in _WATCHING_A_RELEASE]

    def _dashboard(self, stage: StageSettings) -> None:
        each = [self._functions[name] for name in _OF_CHATS]
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
                ],
            ),
            cloudwatch.GraphWidget(
                title="Chats: seconds",
                left=[
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
                    self._rest.metric_latency(statistic="p95", period=_PERIOD, label="p95"),
                ],
            ),
        )
        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="Functions of chats: errors",
                left=[f.function.metric_errors(period=_PERIOD, label=f.spec.name) for f in each],
            ),
            cloudwatch.GraphWidget(
                title="Throttles of all functions, and concurrency",
                left=[_throttles(_PERIOD)],
                right=[
                    self._functions["stream"].function.metric(
                        "ConcurrentExecutions", statistic="max", period=_PERIOD, label="open event streams"
                    )
                ],
            ),
        )

        self._money(dashboard)

    def _money(self, dashboard: cloudwatch.Dashboard) -> None:
        """Cost, tokens and times of model calls, as counted by the functions that make them."""

        def figure(name: str, statistic: str, label: str) -> cloudwatch.Metric:
            return self._own("turn", name, statistic, _PERIOD, label)

        dashboard.add_widgets(
            cloudwatch.GraphWidget(
                title="Money: dollars of models",
                left=[
                    figure(MODEL_DOLLARS, "Sum", "turns"),
                    self._own("search", MODEL_DOLLARS, "Sum", _PERIOD, "inside searches"),
                    self._own("summarise", MODEL_DOLLARS, "Sum", _PERIOD, "summaries"),
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
                left=[figure("ModelSeconds", "p95", "p95")],
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
            "Routes": logs.QueryString(
                fields=["route", "status", "milliseconds"],
                filter_statements=[f'message = "{MESSAGE}"'],
                stats_statements=[_BY_ROUTE],
                sort="p95 desc",
            ),
            "Callers": logs.QueryString(
                fields=["user_hash", "route", "status"],
                filter_statements=[f'message = "{MESSAGE}"', "status >= 400"],
                stats_statements=[
                    "count(*) as requests, latest(correlation_id) as a_chat by user_hash, route, status"
                ],
                sort="requests desc",
                limit=100,
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

    def _topics(self, stage: StageSettings) -> list[sns.ITopic]:
        topics: list[sns.ITopic] = [self._own_topic(stage)]
        if self._watch.topic:
            topics.append(sns.Topic.from_topic_arn(self, "OtherTopic", self._watch.topic))
        return topics

    def _own_topic(self, stage: StageSettings) -> sns.Topic:
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
        if self._watch.email:
            topic.add_subscription(subscriptions.EmailSubscription(self._watch.email))
        CfnOutput(self, "AlarmTopicArn", value=topic.topic_arn).override_logical_id("AlarmTopicArn")
        return topic

    def _alarms(self, topics: Sequence[sns.ITopic]) -> None:
        """A single event in a quiet hour can raise every alarm: it is on a share, or on a sum of at least one
        (tests/infra)."""
        watched = {
            **self._chats(),
            **self._requests(),
            **self._background(),
            **self._limits(),
            **self._dollars(),
            **self._key_caps(),
        }
        for name, (metric, threshold, description) in watched.items():
            self._alarm(name, metric, threshold, description, topics)
        for name, (metric, periods, description) in self._silences().items():
            self._alarm(
                name,
                metric,
                1,
                description,
                topics,
                comparison=cloudwatch.ComparisonOperator.LESS_THAN_THRESHOLD,
                periods=periods,
                missing=cloudwatch.TreatMissingData.BREACHING,
            )

    def _chats(self) -> Watched:
        """A new version that fails all of its chats is detected at its first step: where releases move by steps, the
        share is half of that step, a fifth at most, over a shorter time, so a fifth in a quarter of an hour raises it.
        """
        machine = self._machine
        by_steps = self._stage.moves_by_steps
        period = _PERIOD if by_steps else _WINDOW
        failing = _share(
            "failed",
            machine.metric_failed(period=period),
            "succeeded",
            machine.metric_succeeded(period=period),
            period,
        )
        return {
            "ChatsFail": (
                failing,
                min(20, self._stage.release_percent / 2) if by_steps else 20,
                "Too many of the chats that ended in five minutes failed; a release in progress is rolled back"
                if by_steps
                else "A fifth of the chats that ended in a quarter of an hour failed",
            ),
            "ChatsTimeOut": (
                self._own(CHATS, CHAT_ENDS, end="failed_timeout"),
                1,
                "A chat exceeded its time: a step hangs, or waits for an unavailable model",
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
                    self._functions["search"].function.metric_invocations(period=_WINDOW),
                ),
                34,
                "A third of the searches went without embeddings, the model's ranking or the documentation",
            ),
        }

    def _requests(self) -> Watched:
        stream = self._functions["stream"].function
        return {
            "ApiFails": (
                self._rest.metric_server_error(statistic="avg", period=_WINDOW),
                0.05,
                "One request in twenty is answered with 5xx",
            ),
            "ApiSlow": (
                self._rest.metric_latency(statistic="p25", period=_WINDOW),
                _SLOW_REQUESTS,
                "Three requests in four take more than 3 s: more than those that wait for a chat or its events",
            ),
            "StreamsFail": (
                _sum(
                    {
                        "functions": stream.metric_errors(period=_PERIOD),
                        "broken": self._own("stream", BROKEN_STREAMS, period=_PERIOD),
                    }
                ),
                1,
                "An event stream broke off",
            ),
        }

    def _background(self) -> Watched:
        return {
            "AbortFails": (
                self._functions["abort"].function.metric_errors(period=_PERIOD),
                1,
                "A chat could not be ended; the sweep will try again",
            ),
            "AccountsLeft": (
                self._own("credit_reset", "CreditAccountsLeft"),
                1,
                "The reset could not bring some accounts up to date",
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
            **{
                alarm.name: (self._own(alarm.function, alarm.metric), 1, alarm.about)
                for alarm in _OF_PLUGINS
                if alarm.metric
            },
            **self._listings(),
        }

    def _listings(self) -> Watched:
        if not self._lists_tools:
            return {}
        description = "An MCP server did not list its tools; after six hours they are offered no more"
        return {"ListingsFail": (self._own("mcp", "McpListingsFailed"), 1, description)}

    def _silences(self) -> dict[str, tuple[cloudwatch.IMetric, int, str]]:
        """What must happen: missing data breaches. An alarm looks back over at most a day where its periods are
        shorter than an hour, and over seven days otherwise (Amazon CloudWatch User Guide, "Create a CloudWatch alarm
        based on a static threshold")."""

        def runs(name: str, period: Duration) -> cloudwatch.IMetric:
            return self._functions[name].function.metric_invocations(period=period)

        silences: dict[str, tuple[cloudwatch.IMetric, int, str]] = {
            "SweepStopped": (
                runs("sweep", _WINDOW),
                1,
                "The sweep did not run for a quarter of an hour: chats and holds may stay open",
            ),
            "ResetStopped": (
                runs("credit_reset", _DAY_PART),
                5,
                "The daily reset did not run for 30 hours; allowances are right all the same",
            ),
            **{
                alarm.name: (runs(alarm.function, _WINDOW), 1, alarm.about)
                for alarm in _OF_PLUGINS
                if not alarm.metric
            },
        }
        if self._mcp_service:
            # ECS reports the CPU use of running tasks only, so no data means no task
            silences["McpTask"] = (
                self._mcp_service.metric_cpu_utilization(statistic="n", period=_MINUTE),
                5,
                "No task of GitHub's MCP server runs; its tools fail",
            )
        return silences

    def _limits(self) -> Watched:
        return {
            "Throttled": (
                _throttles(_PERIOD),
                1,
                "Lambda throttles functions of this account: its concurrency is used up, or what is reserved",
            ),
            "ChatsThrottled": (
                self._machine.metric_throttled(period=_PERIOD),
                1,
                "Step Functions throttles the states of chats",
            ),
            "TablesThrottled": (
                _sum(self._table_throttles()),
                1,
                "DynamoDB throttles a table or an index of it",
            ),
        }

    def _table_throttles(self) -> dict[str, cloudwatch.IMetric]:
        """Reads of accounts are left out: each comes with a write, whose limit is a third of that of reads."""
        return {
            f"{table}{what}": cloudwatch.Metric(
                namespace="AWS/DynamoDB",
                metric_name=f"{what}ThrottleEvents",
                dimensions_map={"TableName": self._tables[table].table_name},
                statistic="Sum",
                period=_PERIOD,
            )
            for table in ("history", "chats", "credits")
            for what in ("Read", "Write")
            if (table, what) != ("credits", "Read")
        }

    def _dollars(self) -> Watched:
        if not self._watch.daily_dollars:
            return {}
        spent = {
            name: self._own(name, MODEL_DOLLARS, period=_DAY) for name in ("turn", "search", "summarise")
        }
        description = f"Models have cost more than ${self._watch.daily_dollars:g} within a day"
        return {"DailyDollars": (_sum(spent, _DAY), self._watch.daily_dollars, description)}

    def _key_caps(self) -> Watched:
        if not self._watch.key_percent:
            return {}
        description = (
            f"An API key has used or holds {self._watch.key_percent} % of one of its caps, or a chat did not fit one;"
            " the log of the function api names key and cap"
        )
        return {"KeyCapsNear": (self._own("api", KEY_CAPS_NEAR, period=_PERIOD), 1, description)}

    def _alarm(
        self,
        name: str,
        metric: cloudwatch.IMetric,
        threshold: float,
        description: str,
        topics: Sequence[sns.ITopic],
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
        notified = [actions.SnsAction(topic) for topic in topics]
        alarm.add_alarm_action(*notified)
        alarm.add_ok_action(*notified)
        self._raised[name] = alarm


def _throttles(period: Duration) -> cloudwatch.IMetric:
    """Of all functions of the account and region: one metric, where each function's own would cost one each. The limit
    is the account's too (AWS Lambda Developer Guide, "Types of metrics for Lambda functions")."""
    return cloudwatch.Metric(
        namespace="AWS/Lambda", metric_name="Throttles", statistic="Sum", period=period, label="throttles"
    )


def _sum(metrics: Mapping[str, cloudwatch.IMetric], period: Duration = _PERIOD) -> cloudwatch.IMetric:
    """A metric without a point in a period makes a sum without one, unless it is filled."""
    return cloudwatch.MathExpression(
        expression=" + ".join(f"FILL({name}, 0)" for name in metrics),
        using_metrics=metrics,
        period=period,
    )


def _share(
    bad: str,
    of_bad: cloudwatch.IMetric,
    rest: str,
    of_rest: cloudwatch.IMetric,
    period: Duration = _WINDOW,
) -> cloudwatch.IMetric:
    """Percentage of failures; 0 without events. A threshold on a sum would need traffic.

    Each metric is filled: where all chats fail, none succeeds, and the other metric has no point.
    """
    whole = f"FILL({rest}, 0)" if rest == "begun" else f"(FILL({bad}, 0) + FILL({rest}, 0))"
    return cloudwatch.MathExpression(
        expression=f"IF({whole} > 0, 100 * FILL({bad}, 0) / {whole}, 0)",
        using_metrics={bad: of_bad, rest: of_rest},
        period=period,
        label=f"% {bad}",
    )
