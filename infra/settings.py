"""A stage's settings: the committed file ``infra/settings.<stage>.toml``, which the environment overrides.

Table ``[stage]`` has the fields of `infra.stages.StageSettings`. Table ``[settings]`` has the settings of CONTRACT 2
by their names in the environment; an empty or unset variable leaves the file's value.

A deployment records its settings in a parameter of the stack that it deploys first. The next one reads them there and
is refused if it would drop one (`dropped`): a variable that was only set in a shell, or a line that the file of
an older checkout lacks. The record is in the account, because a file may not have been committed, and a resource,
because CloudFormation does not update a template's metadata if nothing else changes.
"""

from __future__ import annotations

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from infra.stages import StageSettings

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

FOLDER: Final = Path(__file__).parent
STAGE_NAMES: Final = ("local", "staging", "prod")
DROP: Final = "DUALTRACK_DROP"
"""Comma-separated names that this deployment may drop or change back; ``all`` skips the check."""

RECORD_LIMIT: Final = 8_192
"""Bytes of a parameter at most (AWS Systems Manager User Guide, "Managing parameter tiers")."""

Name = Literal[
    "ALARM_DAILY_DOLLARS", "ALARM_EMAIL", "ALARM_TOPIC_ARN", "ALLOWED_ORIGINS", "ANTHROPIC_BASE_URL", "BEDROCK_BASE_URL",
    "CERTIFICATE_ARN",
    "CONTEXT7_BASE_URL", "DOMAIN", "DUALTRACK_COURSE_INDEX", "DUALTRACK_COURSE_RANKING", "DUALTRACK_EFFORT",
    "DUALTRACK_EMBEDDING_MODEL", "DUALTRACK_GRAPH_ENGINE", "DUALTRACK_GRAPH_URL", "DUALTRACK_GRAPH_USER",
    "DUALTRACK_MAX_COST", "DUALTRACK_MODEL", "DUALTRACK_PROFILES", "DUALTRACK_PROVIDER",
    "DUALTRACK_PROVIDER_BEFORE", "DUALTRACK_SUMMARY_CHARACTERS", "DUALTRACK_SUMMARY_MODEL",
    "DUALTRACK_THINKING_TOKENS", "GITHUB_MCP_IMAGE", "GITHUB_MCP_PROBE_IMAGE", "GITHUB_MCP_URL",
    "MCP_SERVERS", "OIDC_CLIENT_ID", "OIDC_ISSUER", "OIDC_NAME", "OIDC_SECRET_NAME",
    "OTEL_EXPORTER_OTLP_ENDPOINT", "PAGE_URL", "SAML_METADATA_URL", "SAML_NAME", "SES_FROM", "SES_IDENTITY",
    "VOYAGE_BASE_URL", "WAF",
]  # fmt: skip
"""Everything that `infra.app` reads from the environment."""

NAMES: Final[tuple[str, ...]] = get_args(Name)


class BadSettings(ValueError):
    """A settings file is invalid, or a deployment would drop a setting. The message says what to do."""


class SettingsFile(BaseModel):
    """The contents of a settings file. A list (``MCP_SERVERS``) counts as its JSON."""

    model_config = ConfigDict(extra="forbid", strict=True)

    stage: dict[str, Any]
    settings: dict[Name, str | int | float | list[Any]] = {}


@dataclass(frozen=True, slots=True)
class Settings:
    """``environment``: the settings by their names there; ``overriding``: the names whose value is the
    environment's."""

    stage: StageSettings
    environment: Mapping[str, str]
    overriding: frozenset[str]

    def recorded(self) -> str:
        """The record for the next deployment, JSON. Raises `BadSettings` if the Parameter Store would refuse it."""
        record = {"settings": dict(sorted(self.environment.items())), "overriding": sorted(self.overriding)}
        text = json.dumps(record, ensure_ascii=False)
        if (size := len(text.encode())) > RECORD_LIMIT:
            raise BadSettings(
                f"The settings take {size} bytes; {RECORD_LIMIT} can be recorded for the next deployment."
            )
        return text


def read_settings(stage: str, environ: Mapping[str, str], folder: Path = FOLDER) -> Settings:
    """The settings of a stage. Raises `BadSettings`, with a line for each field that is wrong."""
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
    overriding = {name: environ[name] for name in NAMES if environ.get(name)}
    return Settings(settings, MappingProxyType({**written, **overriding}), frozenset(overriding))


def _problems(path: Path, error: ValidationError) -> Iterator[str]:
    for problem in error.errors(include_url=False, include_input=False):
        where = ".".join(str(part) for part in problem["loc"] if part != "[key]")
        hint = (
            " (a key is no setting: put it into the Parameter Store, docs/aws/settings.md)"
            if is_key(where)
            else ""
        )
        yield f"{path.name}: {where or 'file'}: {problem['msg']}{hint}"


def is_key(name: str) -> bool:
    """Whether a setting is a secret, whose place is the Parameter Store."""
    return name.endswith(("_API_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_HEADERS"))


def _text(value: str | float | list[Any]) -> str:
    return json.dumps(value) if isinstance(value, list) else str(value)


def dropped(last: Mapping[str, Any], now: Settings, agreed: Collection[str] = ()) -> list[str]:
    """The settings of the last deployment (`Settings.recorded`) that this one would drop: a line for each.

    A setting is dropped if it is no longer set, or if the environment had set it and the file's value would replace it.
    A value changed in the file is a decision in the repository, and allowed.
    """
    lines = []
    for name, value in last.get("settings", {}).items():
        current = now.environment.get(name, "")
        was_given = name in last.get("overriding", ()) and name not in now.overriding
        if name not in agreed and (not current or (was_given and current != value)):
            source = "the environment" if name in last.get("overriding", ()) else "its file"
            lines.append(f"{name}: was {value} (from {source}), would be {current or 'not set'}")
    return lines


def refuse_to_drop(last: Mapping[str, Any] | None, now: Settings, environ: Mapping[str, str]) -> None:
    """Raises `BadSettings` if this deployment would drop settings of the last one without consent."""
    agreed = [name.strip() for name in environ.get(DROP, "").split(",")]
    if last is None or agreed == ["all"]:
        return
    if lines := dropped(last, now, agreed):
        file = f"infra/settings.{now.stage.name}.toml"
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
