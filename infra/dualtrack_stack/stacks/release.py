"""Versions of a machine: each release publishes one, and the machine's alias moves to it (DESIGN 9).

A version's definition names the functions' own versions, so an execution runs the code of one release from its first
step to its last, whatever is deployed meanwhile. What starts executions names the alias.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from aws_cdk import RemovalPolicy
from aws_cdk import aws_stepfunctions as sfn
from constructs import Construct

if TYPE_CHECKING:
    from collections.abc import Sequence

    from aws_cdk import aws_cloudwatch as cloudwatch

    from dualtrack_stack.stages import StageSettings

MACHINE_ALIAS: Final = "live"


class Release(Construct):
    """The version that this deployment publishes, and the alias, which moves at once unless `move_by_steps` is called.

    A version is published when the machine's revision changes, and is kept after the next one: its executions go on,
    and the alias can go back to it. `dualtrack aws prune` deletes unused versions.
    """

    def __init__(self, scope: Construct, construct_id: str, machine: sfn.StateMachine) -> None:
        super().__init__(scope, construct_id)
        version = sfn.CfnStateMachineVersion(
            self,
            "Version",
            state_machine_arn=machine.state_machine_arn,
            state_machine_revision_id=machine.state_machine_revision_id,
        )
        version.apply_removal_policy(RemovalPolicy.RETAIN)
        self._version_arn = version.attr_arn
        self._alias = sfn.CfnStateMachineAlias(
            self, "Alias", name=MACHINE_ALIAS, deployment_preference=self._preference("ALL_AT_ONCE")
        )

    @property
    def alias_arn(self) -> str:
        return self._alias.attr_arn

    def move_by_steps(self, stage: StageSettings, alarms: Sequence[cloudwatch.IAlarm]) -> None:
        """Give the new version a share of the new executions, then more or all, while the alarms are silent. When one
        is raised the alias goes back, the deployment fails, and CloudFormation rolls back the rest.
        """
        self._alias.deployment_preference = self._preference(
            stage.release.upper(),
            interval=stage.release_minutes,
            percentage=stage.release_percent,
            alarms=[alarm.alarm_name for alarm in alarms],
        )

    def _preference(
        self,
        kind: str,
        *,
        interval: int | None = None,
        percentage: int | None = None,
        alarms: list[str] | None = None,
    ) -> sfn.CfnStateMachineAlias.DeploymentPreferenceProperty:
        return sfn.CfnStateMachineAlias.DeploymentPreferenceProperty(
            state_machine_version_arn=self._version_arn,
            type=kind,
            interval=interval,
            percentage=percentage,
            alarms=alarms,
        )
