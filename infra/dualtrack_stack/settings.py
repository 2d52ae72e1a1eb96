"""A stage's settings: the committed file ``infra/dualtrack_stack/settings.<stage>.toml``, which the environment
overrides.

Table ``[stage]`` has the fields of `dualtrack_stack.stages.StageSettings`. Table ``[settings]`` has the settings of
`dualtrack.settings` by their names in the environment; an empty or unset variable leaves the file's value.

A deployment records its settings in a parameter of the stack that it deploys first. The next one reads them there and
is refused if it would drop one (`dropped`): a variable that was only set in a shell, or a line that the file of
an older checkout lacks. The record is in the account, because a file may not have been committed, and a resource,
because CloudFormation does not update a template's metadata if nothing else changes.
"""

from __future__ import annotations

import difflib
import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Any, Final

from dualtrack.checked_settings import WrongSettings, checked
from dualtrack.settings import declared, text_of
from pydantic import AfterValidator, BaseModel, ConfigDict, TypeAdapter, ValidationError

from dualtrack_stack.stages import StageSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from dualtrack.settings import Settings

FOLDER: Final = Path(__file__).parent
STAGE_NAMES: Final = ("local", "staging", "prod")
DROP: Final = "DUALTRACK_DROP"

RECORD_LIMIT: Final = 8_192
"""Bytes of a parameter at most (AWS Systems Manager User Guide, "Managing parameter tiers")."""


class BadSettings(ValueError):
    """A settings file is invalid, or a deployment would drop a setting. The message says what to do."""


def _may_stand_in_a_file(name: str) -> str:
    entry = declared().get(name)
    if entry is None:
        alike = difflib.get_close_matches(name, declared(), 1)
        raise ValueError(f"there is no such setting{f'; {alike[0]} is alike' if alike else ''}")
    if entry.is_key:
        raise ValueError("a key is no setting: put it into the Parameter Store, docs/aws/settings.md")
    if not entry.declared.in_file:
        raise ValueError("it is set in the environment alone")
    return name


class SettingsFile(BaseModel):
    """The contents of a settings file. A list (``MCP_SERVERS``) counts as its JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    stage: dict[str, Any]
    settings: dict[
        Annotated[str, AfterValidator(_may_stand_in_a_file)], str | bool | int | float | list[Any]
    ] = {}


@dataclass(frozen=True, slots=True)
class Configuration:
    """``given``: the settings that are set, by their names; ``overriding``: the names of those whose value is the
    environment's."""

    stage: StageSettings
    given: Mapping[str, str]
    overriding: frozenset[str]

    def checked(self) -> Settings:
        """All settings with their values. Raises `BadSettings`, a line for each that is wrong."""
        file = f"infra/dualtrack_stack/settings.{self.stage.name}.toml"
        try:
            return checked(self.given, {name: file for name in self.given if name not in self.overriding})
        except WrongSettings as wrong:
            raise BadSettings(str(wrong)) from None

    def recorded(self) -> str:
        """The record for the next deployment, JSON. Raises `BadSettings` if the Parameter Store would refuse it."""
        record = {"settings": dict(sorted(self.given.items())), "overriding": sorted(self.overriding)}
        text = json.dumps(record, ensure_ascii=False)
        if (size := len(text.encode())) > RECORD_LIMIT:
            raise BadSettings(
                f"The settings take {size} bytes; {RECORD_LIMIT} can be recorded for the next deployment."
            )
        return text


def read_settings(stage: str, environ: Mapping[str, str], folder: Path = FOLDER) -> Configuration:
    """The settings of a stage, checked. Raises `BadSettings`, with a line for each field that is wrong."""
    path = folder / f"settings.{stage}.toml"
    if stage not in STAGE_NAMES:
        raise BadSettings(f"Unknown stage {stage}; known are {', '.join(STAGE_NAMES)}.")
    try:
        text = path.read_text(encoding="utf-8")
        file = SettingsFile.model_validate_json(json.dumps(tomllib.loads(text)))
        settings = TypeAdapter(StageSettings).validate_json(json.dumps({**file.stage, "name": stage}))
    except FileNotFoundError:
        raise BadSettings(
            f"There is no {path}: a stage's settings are a file (docs/aws/settings.md)."
        ) from None
    except (
        tomllib.TOMLDecodeError,
        TypeError,
    ) as error:  # TypeError: a date or time, which is no setting's type
        raise BadSettings(f"{path}: {error}") from None
    except ValidationError as error:
        raise BadSettings("\n".join(_problems(path, error))) from None
    written: dict[str, str] = {name: _text(value) for name, value in file.settings.items()}
    overriding = {
        name: environ[name]
        for name, entry in declared().items()
        if entry.declared.in_file and environ.get(name)
    }
    configuration = Configuration(
        settings, MappingProxyType({**written, **overriding}), frozenset(overriding)
    )
    configuration.checked()
    return configuration


def _problems(path: Path, error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in problem["loc"] if part != "[key]")
        yield f"{path.name}: {where or 'file'}: {problem['msg'].removeprefix('Value error, ')}"


def _text(value: str | float | list[Any]) -> str:
    return json.dumps(value) if isinstance(value, list) else text_of(value)


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
        file = f"infra/dualtrack_stack/settings.{now.stage.name}.toml"
        raise BadSettings(
            "This deployment would drop settings of the last one:\n  "
            + "\n  ".join(lines)
            + f"\nWrite them into {file}, or consent with "
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
    {name: read_settings(name, {}).stage for name in STAGE_NAMES}
)
