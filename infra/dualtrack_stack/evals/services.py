"""Who answers the model's calls of a case: the offline model, a recording, or the service that the project uses."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.models.provider import provider_of
from dualtrack.models.thinking import Thinking
from dualtrack.settings import DEFAULTS

from dualtrack_stack.evals.files import FOLDER, RECORDED
from dualtrack_stack.evals.tape import Taped, read_tape
from dualtrack_stack.local.testing.agents import project_at
from dualtrack_stack.local.testing.local_chat import Served
from dualtrack_stack.local.testing.script import NoScript, connect
from dualtrack_stack.local.testing.workflow import WaitingClock
from dualtrack_stack.settings import configured

if TYPE_CHECKING:
    from pathlib import Path

    from dualtrack.models.protocol import Model
    from dualtrack.settings import Settings

Kind = Literal["offline", "recorded", "live"]
_NO_NAME: Final = re.compile(r"[^\w.-]+")


class NoKey(ValueError):
    """The model's service needs a key, and the environment has none."""


@dataclass
class Service:
    """For one case: ``served`` its chat, ``judge`` its judge (None for the offline model, which can judge nothing)."""

    kind: Kind
    served: Served
    judge: Model | None = None
    tape: Any = None

    @property
    def drifted(self) -> int:
        """Requests that were not as they were recorded."""
        return getattr(self.tape, "drifted", 0)


@dataclass(frozen=True)
class Services:
    """``wanted``: None for a recording where there is one, else the offline model. ``model``: a name in place of the
    settings'; ``records``: live answers are written to the project's recordings."""

    root: Path
    wanted: Kind | None = None
    model: str = ""
    records: bool = False
    _live: list[tuple[Settings, Model]] = field(default_factory=list, init=False)

    def of(self, case_id: str) -> Service:
        """That of a case. Raises `NoKey`, `BadTape`, and FileNotFoundError if there is no recording of it."""
        path = recording_of(self.root, case_id)
        kind = self.wanted or ("recorded" if path.is_file() else "offline")
        if kind == "offline":
            script = NoScript()
            return Service(
                kind,
                Served(lambda clock: connect(script, clock), script, self.model or DEFAULTS.dualtrack_model),
            )
        if kind == "recorded":
            if not path.is_file():
                raise FileNotFoundError(path)
            played = read_tape(path)
            return Service(kind, self._served(played, self._settings()), played, played)
        settings, model = self._service()
        taped = Taped(model)
        return Service(kind, self._served(taped, settings), taped, taped)

    def keep(self, case_id: str, service: Service) -> None:
        """The answers of a live case as its recording, if they are recorded."""
        if self.records and isinstance(service.tape, Taped):
            service.tape.write(recording_of(self.root, case_id))

    def _settings(self) -> Settings:
        return configured(project_at(self.root), "local", os.environ).checked()

    def model_name(self) -> str:
        """Of agents that name none."""
        return self.model or self._settings().dualtrack_model

    def _served(self, client: Any, settings: Settings) -> Served:
        thinking = Thinking(settings.dualtrack_thinking_tokens, settings.dualtrack_effort)
        return Served(
            lambda _: client,
            client,
            self.model or settings.dualtrack_model,
            settings.dualtrack_provider,
            thinking,
            settings.dualtrack_max_cost,
            WaitingClock,
        )

    def _service(self) -> tuple[Settings, Model]:
        if not self._live:
            settings = self._settings()
            self._live.append((settings, live_model(settings)))
        return self._live[0]


def live_model(settings: Settings) -> Model:
    """The service of the settings, with the key of the environment. Raises `NoKey`."""
    provider = provider_of(settings.dualtrack_provider)
    key = os.environ.get(provider.key, "") if provider.key else ""
    if provider.key and not (key or os.environ.get(provider.address)):
        raise NoKey(f"The live model needs {provider.key}: set it, or leave out --answers live.")
    from dualtrack.models.open_model import model_with_key  # noqa: PLC0415 - where a service is asked

    return model_with_key(settings, key)


def recording_of(root: Path, case_id: str) -> Path:
    """The file of a case's recorded answers."""
    return root / FOLDER / RECORDED / f"{_NO_NAME.sub('-', case_id).strip('-')}.json"
