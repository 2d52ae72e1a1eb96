"""A stage's settings: what the project's ``dualtrack.toml`` says of it (`dualtrack_stack.project.file`), which the
environment overrides; an empty or unset variable leaves the file's value.

A deployment records its settings in a parameter of the stack that it deploys first. The next one reads them there and
is refused if it would drop one (`dropped`): a variable that was only set in a shell, or a line that the file of
an older checkout lacks. The record is in the account, because a file may not have been committed, and a resource,
because CloudFormation does not update a template's metadata if nothing else changes.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from dualtrack.checked_settings import WrongSettings, checked
from dualtrack.settings import declared
from dualtrack.tools.mcp.config import parse_servers, together

from dualtrack_stack.project.file import parse_file, read_file
from dualtrack_stack.project.model import BadProject
from dualtrack_stack.roots import PROJECT_FILE, project_root

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

    from dualtrack.settings import Settings

    from dualtrack_stack.project.model import Project, ProjectFile
    from dualtrack_stack.project.stdio_server import StdioServer
    from dualtrack_stack.stages import StageSettings

DROP: Final = "DUALTRACK_DROP"

RECORD_LIMIT: Final = 8_192
"""Bytes of a parameter at most (AWS Systems Manager User Guide, "Managing parameter tiers")."""


class BadSettings(ValueError):
    """The project's file is invalid, or a deployment would drop a setting. The message says what to do."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """``given``: the settings that are set, by their names; ``overriding``: the names of those whose value is the
    environment's; ``sources``: file and line of the others; ``stdio``: MCP servers by command."""

    stage: StageSettings
    given: Mapping[str, str]
    overriding: frozenset[str]
    sources: Mapping[str, str]
    stdio: tuple[StdioServer, ...] = ()

    def checked(self) -> Settings:
        """All settings with their values. Raises `BadSettings`, a line for each that is wrong."""
        sources = {name: line for name, line in self.sources.items() if name not in self.overriding}
        try:
            settings = checked(self.given, sources)
            together((*parse_servers(settings.mcp_servers), *(server.entry for server in self.stdio)))
        except (WrongSettings, ValueError) as wrong:
            raise BadSettings(str(wrong)) from None
        return settings

    def recorded(self) -> str:
        """The record for the next deployment, JSON. Raises `BadSettings` if the Parameter Store would refuse it."""
        record = {"settings": dict(sorted(self.given.items())), "overriding": sorted(self.overriding)}
        text = json.dumps(record, ensure_ascii=False)
        if (size := len(text.encode())) > RECORD_LIMIT:
            raise BadSettings(
                f"The settings take {size} bytes; {RECORD_LIMIT} can be recorded for the next deployment."
            )
        return text


def read_settings(stage: str, environ: Mapping[str, str], root: Path | None = None) -> Configuration:
    """The settings of a stage of the project in ``root``, by default of the project we are in; checked. Raises
    `BadSettings`, with a line for each that is wrong."""
    try:
        return configured(read_file(root or project_root()), stage, environ)
    except BadProject as wrong:
        raise BadSettings(str(wrong)) from None


def configured(file: ProjectFile | Project, stage: str, environ: Mapping[str, str]) -> Configuration:
    """The settings of a stage by a project's file. Raises `BadSettings`, likewise."""
    if stage not in file.stages:
        raise BadSettings(f"Unknown stage {stage}; known are {', '.join(file.stages)}.")
    written = file.stages[stage]
    overriding = {
        name: environ[name]
        for name, entry in declared().items()
        if entry.declared.in_file and environ.get(name)
    }
    configuration = Configuration(
        written.stage,
        MappingProxyType({**written.settings, **overriding}),
        frozenset(overriding),
        written.sources,
        written.stdio,
    )
    configuration.checked()
    local = [name for name in configuration.given if declared()[name].declared.is_local]
    if local and stage != "local":
        raise BadSettings(f"For the local stack alone: {', '.join(local)}.")
    return configuration


def dropped(last: Mapping[str, Any], now: Configuration, agreed: Collection[str] = ()) -> list[str]:
    """The settings of the last deployment (`Configuration.recorded`) that this one would drop: a line for each.

    A setting is dropped if it is no longer set, or if the environment had set it and the file's value would replace it.
    A value changed in the file is a decision in the repository, and allowed.
    """
    lines = []
    for name, value in last.get("settings", {}).items():
        current = now.given.get(name, "")
        was_given = name in last.get("overriding", ()) and name not in now.overriding
        if name not in agreed and (not current or (was_given and current != value)):
            source = "the environment" if name in last.get("overriding", ()) else "its file"
            lines.append(f"{name}: was {value} (from {source}), would be {current or 'not set'}")
    return lines


def refuse_to_drop(last: Mapping[str, Any] | None, now: Configuration, agreed: Collection[str] = ()) -> None:
    """Raises `BadSettings` if this deployment would drop settings of the last one without consent. ``agreed``: the
    names that it may drop or change back; ``all`` skips the check (the setting `DROP`)."""
    if last is None or "all" in agreed:
        return
    if lines := dropped(last, now, agreed):
        raise BadSettings(
            "This deployment would drop settings of the last one:\n  "
            + "\n  ".join(lines)
            + f"\nWrite them into [stage.{now.stage.name}.settings] of {PROJECT_FILE}, or consent with "
            f"{DROP}={','.join(line.split(':')[0] for line in lines)}."
        )


def record_name(stage: str) -> str:
    """The parameter of the record; not among the keys of the stage, ``/dualtrack-<stage>/…``."""
    return f"/dualtrack-settings/{stage}"


def last_deployed(ssm: Any, stage: str) -> Mapping[str, Any] | None:
    """The record of the stage's last deployment; None before the first.

    Raises `BadSettings` if the record cannot be read: unknown settings are not dropped silently.
    """
    from botocore.exceptions import BotoCoreError, ClientError  # noqa: PLC0415 - for a deployment alone

    try:
        answer = ssm.get_parameter(Name=record_name(stage))
    except ClientError as error:
        if error.response["Error"].get("Code") == "ParameterNotFound":
            return None
        raise BadSettings(_unreadable(stage, error)) from error
    except BotoCoreError as error:
        raise BadSettings(_unreadable(stage, error)) from error
    recorded: Mapping[str, Any] = json.loads(answer["Parameter"]["Value"])
    return recorded


def _unreadable(stage: str, error: Exception) -> str:
    return (
        f"Cannot read the settings of the last deployment of {stage}: {error}. Reading them takes the action"
        f" ssm:GetParameter on {record_name(stage)}, with credentials of the environment (AWS_PROFILE, not"
        f" --profile); {DROP}=all deploys without this check."
    )


STAGES: Final[Mapping[str, StageSettings]] = MappingProxyType(
    {name: written.stage for name, written in parse_file("").stages.items()}
)
"""The stages where a project says nothing."""
