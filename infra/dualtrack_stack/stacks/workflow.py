"""The state machines of a chat and of a job on a corpus, and everything that starts a function without a caller."""

from __future__ import annotations

from typing import TYPE_CHECKING

from aws_cdk import Aws, Duration, RemovalPolicy
from aws_cdk import aws_events as events
from aws_cdk import aws_events_targets as targets
from aws_cdk import aws_logs as logs
from aws_cdk import aws_scheduler as scheduler
from aws_cdk import aws_scheduler_targets as scheduler_targets
from aws_cdk import aws_sqs as sqs
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

from dualtrack_stack.machines import (
    DEPLOYED,
    EXECUTION_ENDED,
    REFRESH,
    RULES,
    TIMERS,
    definition_of,
    steps_of,
)
from dualtrack_stack.stacks.findings import accept
from dualtrack_stack.stacks.release import Release

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from dualtrack_stack.machines import Timer
    from dualtrack_stack.stacks.functions import Function
    from dualtrack_stack.stages import StageSettings


class Workflow(Construct):
    """A machine, named after the ASL file of its definition, which names the functions' versions if the stage publishes
    versions of the machine, else their aliases.
    """

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        definition: Path,
        *,
        stage: StageSettings,
        functions: Mapping[str, Function],
    ) -> None:
        super().__init__(scope, construct_id)
        self.name = f"{stage.prefix}-{definition.name.split('.')[0]}"
        # without tools of the project's own, calls of withdrawn ones get the error result of `tool`
        called = {
            spec.construct_id: functions.get(spec.name) or functions["tool"] for spec in steps_of(definition)
        }
        # Step Functions accepts a log group only below /aws/vendedlogs once its policy grows long.
        self.log_group = logs.LogGroup(
            self,
            "Logs",
            log_group_name=f"/aws/vendedlogs/states/{self.name}",
            retention=logs.RetentionDays.ONE_MONTH,
            removal_policy=RemovalPolicy.DESTROY,
        )
        self.machine = sfn.StateMachine(
            self,
            "Machine",
            state_machine_name=self.name,
            state_machine_type=sfn.StateMachineType.STANDARD,
            definition_body=sfn.DefinitionBody.from_string(definition_of(definition)),
            definition_substitutions={
                construct_id: function.arn_for(stage) for construct_id, function in called.items()
            },
            timeout=None,
            tracing_enabled=True,
            logs=sfn.LogOptions(
                destination=self.log_group,
                level=sfn.LogLevel.ERROR,
                include_execution_data=False,
            ),
        )
        accept(
            self.machine,
            "AwsSolutions-SF1",
            "Step Functions keeps the history of every execution for 90 days; the log is for what went wrong.",
        )
        accept(
            self.machine,
            "AwsSolutions-IAM5[Resource::*]",
            "Log delivery and X-Ray know no narrower resource.",
        )
        for function in dict.fromkeys(called.values()):
            function.let_invoke(self.machine, stage)
        self.release = Release(self, "Release", self.machine) if stage.has_versions else None

    @property
    def start_arn(self) -> str:
        """The ARN that executions are started with: the alias if there is one."""
        return self.release.alias_arn if self.release else self.machine.state_machine_arn


class Triggers(Construct):
    """Ends of executions to ``abort``; the sweep; the midnight reset; the refresh of MCP tools; timers of plug-ins."""

    def __init__(
        self,
        scope: Construct,
        construct_id: str,
        *,
        stage: StageSettings,
        machine: sfn.StateMachine,
        functions: Mapping[str, Function],
    ) -> None:
        super().__init__(scope, construct_id)
        self._stage = stage
        self.undelivered = self._queue("Undelivered", "It is itself the queue of what was not delivered.")
        self.failed = self._queue("Failed", "It is itself the queue of what failed at every attempt.")
        self._on_execution_end(machine, functions[RULES[EXECUTION_ENDED]])
        for timer in TIMERS:
            self._on_schedule(timer, functions[timer.function])
        self._on_deployment(functions[RULES[DEPLOYED]])
        # Lambda's own attempts, after a delivery that succeeded
        for function in functions.values():
            if retries := function.spec.retries:
                age = Duration.seconds(retries.seconds)
                function.fail_to(self.failed, retry_attempts=retries.attempts, max_event_age=age)

    def _queue(self, name: str, reason: str) -> sqs.Queue:
        """A queue of events that an operator has to look at, for two weeks."""
        queue = sqs.Queue(
            self,
            name,
            encryption=sqs.QueueEncryption.SQS_MANAGED,
            enforce_ssl=self._stage.encrypted_transport,
            retention_period=Duration.days(14),
        )
        accept(queue, "AwsSolutions-SQS3", reason)
        return queue

    def _on_execution_end(self, machine: sfn.StateMachine, abort: Function) -> None:
        """No Catch handles a timeout, a stopped execution, States.Runtime or DataLimitExceeded."""
        events.Rule(
            self,
            EXECUTION_ENDED,
            description="Chats whose workflow ended badly",
            event_pattern=events.EventPattern(
                source=["aws.states"],
                detail_type=["Step Functions Execution Status Change"],
                detail={
                    "status": ["FAILED", "TIMED_OUT", "ABORTED"],
                    "stateMachineArn": [machine.state_machine_arn],
                },
            ),
            targets=[
                targets.LambdaFunction(
                    abort.alias,
                    dead_letter_queue=self.undelivered,
                    retry_attempts=8,
                    max_event_age=Duration.hours(2),
                )
            ],
        )

    def _on_deployment(self, mcp: Function) -> None:
        """A new release may bring other MCP servers: their tools are listed at once, not in an hour."""
        events.Rule(
            self,
            DEPLOYED,
            description="Lists the MCP tools anew after a deployment",
            event_pattern=events.EventPattern(
                source=["aws.cloudformation"],
                detail_type=["CloudFormation Stack Status Change"],
                detail={
                    "stack-id": [Aws.STACK_ID],
                    "status-details": {"status": ["CREATE_COMPLETE", "UPDATE_COMPLETE"]},
                },
            ),
            targets=[
                targets.LambdaFunction(
                    mcp.alias,
                    event=events.RuleTargetInput.from_object(dict(REFRESH)),
                    dead_letter_queue=self.undelivered,
                    retry_attempts=2,
                )
            ],
        )

    def _on_schedule(self, timer: Timer, function: Function) -> None:
        scheduler.Schedule(
            self,
            timer.name,
            schedule=scheduler.ScheduleExpression.expression(timer.expression),
            target=scheduler_targets.LambdaInvoke(
                function.alias,
                input=scheduler.ScheduleTargetInput.from_object(dict(timer.event)),
                dead_letter_queue=self.undelivered,
                retry_attempts=timer.retry_attempts,
                max_event_age=Duration.hours(2),
            ),
        )
