"""What a project's settings tell its tools: the variables and the secrets of ``[tools]`` in ``dualtrack.toml``."""

from __future__ import annotations

import logging
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from dualtrack.runtime.environment import put_variables, variables
from dualtrack.runtime.secrets import secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack.settings import Settings

_log: Final = logging.getLogger(__name__)


def project_settings(settings: Settings) -> Mapping[str, str]:
    """Variables and secrets by their names, as the tools get them (`ToolContext.settings`).

    Secrets are also put into the environment of this process, where packages look for their keys; they stand in no
    function's configuration. They are read again after five minutes. One that the operator has not put is left out,
    and the log says so. Raises `GetParameterError` if the Parameter Store cannot be read.
    """
    found = {name.rpartition("/")[2]: secret(name) for name in settings.tool_secrets}
    for name in settings.tool_secrets:
        if not found[name.rpartition("/")[2]]:
            _log.error(
                "there is no secret in the parameter %s: `dualtrack aws doctor` says how to put it", name
            )
    secrets = {name: value for name, value in found.items() if value}
    put_variables(secrets)
    return MappingProxyType({**variables(settings.tool_variables), **secrets})
