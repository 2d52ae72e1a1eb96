"""Stages: the same stacks with different settings (DESIGN 2.12, 8)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - what checks a project's file reads the fields' types
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal

Releasing = Literal["in_place", "at_once", "canary", "linear"]
MAX_LEDGER_RETENTION_DAYS: Final = 36_500


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Settings that differ between stages: the table ``[stage.NAME]`` of a project's file
    (`dualtrack_stack.project.file`), over ``stages.toml``.

    ``keep_data``: tables, bucket, keys and user pool survive the deletion of their stack; tables and pool are
    protected against deletion, and tables have point-in-time recovery.
    ``built_layers``: uv builds the dependency layers for Lambda; otherwise the machine has the dependencies (local).
    ``log_retention_days``, ``log_level``: how long logs are kept, and from which level on lines are written.
    ``encrypted_transport``: storage refuses plain HTTP, which the emulator speaks (local).
    ``request_rate``, ``request_burst``: the gateway's limits, requests a second for all users with a token together.
    Methods for API keys and for plug-ins' own APIs have limits of their own, each a half and a twelfth of these; the
    two open routes 10 and 20, or less if the stage has less. 0 closes all of them.
    ``reserved_concurrency``: executions that Lambda reserves for a function, which are its limit too:
    ``{"abort": 5, "sweep": 2, "api": 50}`` keeps streams from using up what ends and answers chats. Lambda refuses to
    leave an account less than 100 unreserved.
    ``token_hours``: how long an ID token is valid.
    ``ledger_retention_days``: how long the ledger of an erased user is kept, without the person (docs/privacy.md).
    ``alarms``: raise alarms to the stack's topic.
    ``page``: CloudFront in front of the page and the API. It refuses accounts that AWS has not verified yet.
    ``callback_urls``: addresses to which the sign-in may lead back, besides the page's own.
    ``empties_buckets``: a bucket is emptied when its stack is deleted, else the deletion fails.
    ``password_sign_in``: a client may send a user's password to Cognito, as scripts and tests do; otherwise sign-in is
    by the sign-in page or SRP.
    ``mfa_required``: every user of the pool's own needs a second factor.
    ``upgrade_message``: what a 402 says about getting more (``upgrade.message``), with ``{user}`` for the user's id;
    empty for the prices of plan and pack.
    ``release``, ``release_percent``, ``release_minutes``: how new chats move to a new release (docs/releases.md):
    ``in_place``, without versions (local); ``at_once``; ``canary``, ``release_percent`` of the chats for
    ``release_minutes`` and then all; ``linear``, as much more every ``release_minutes``. The last two go back on an
    alarm.
    ``snap_start``: the functions that Lambda restores from a snapshot instead of a cold start (docs/releases.md).
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "strict": True}

    name: Literal["local", "staging", "prod"]
    keep_data: bool
    built_layers: bool
    log_retention_days: int
    encrypted_transport: bool
    request_rate: int
    request_burst: int
    token_hours: int
    ledger_retention_days: int
    alarms: bool
    log_level: str
    page: bool
    empties_buckets: bool
    password_sign_in: bool
    mfa_required: bool
    callback_urls: tuple[str, ...]
    reserved_concurrency: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    release: Releasing = "in_place"
    release_percent: int = 20
    release_minutes: int = 10
    snap_start: tuple[str, ...] = ()
    upgrade_message: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for an invalid retention or release."""
        self._check_release()
        if not 1 <= self.ledger_retention_days <= MAX_LEDGER_RETENTION_DAYS:
            raise ValueError(
                f"ledger_retention_days of stage {self.name}: must be from 1 to {MAX_LEDGER_RETENTION_DAYS} days,"
                f" not {self.ledger_retention_days}"
            )

    def _check_release(self) -> None:
        """The steps' limits are those of CloudFormation's AWS::StepFunctions::StateMachineAlias."""
        if not (1 <= self.release_percent <= 99 and 1 <= self.release_minutes <= 2_100):
            raise ValueError(
                f"release_percent and release_minutes of stage {self.name}: must be from 1 to 99 and from 1 to 2100,"
                f" not {self.release_percent} and {self.release_minutes}"
            )
        if self.moves_by_steps and not self.alarms:
            raise ValueError(
                f"release of stage {self.name}: {self.release} goes back on alarms, so it needs alarms = true"
            )

    @property
    def has_versions(self) -> bool:
        """Whether each release publishes versions of the machines, and an execution stays on one."""
        return self.release != "in_place"

    @property
    def moves_by_steps(self) -> bool:
        return self.release in ("canary", "linear")

    def asset_name(self, name: str) -> str | None:
        """A fixed name for an asset, or None to name it by its content.

        Local templates have fixed names, so they do not change with the code; the local stack replaces them by the
        content's hash when it deploys.
        """
        return None if self.built_layers else name

    @property
    def prefix(self) -> str:
        """The beginning of every physical name, ``dualtrack-staging``."""
        return f"dualtrack-{self.name}"
