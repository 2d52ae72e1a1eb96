"""The emulated account on disk, which is whole at any moment. In the state folder:

    aws/ objects/    what the emulator works on: its services' state as read at its start, and the objects, which it
                     writes as they come
    saved/           both as they were when it last ended; a hard link for each file
    saving/          the same while it is being written
    whole/           the same, written, before it replaces ``saved/``
    in-use           there while an emulator works, and after one that was cut off

A rename makes ``saving/`` whole. After an emulator that was cut off, the next one works on what was saved before it.
"""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    Services = dict[str, Callable[[], object]]
    SaveAll = Callable[[Services], None]

STATE: Final = "aws"
OBJECTS: Final = "objects"
_SAVED, _SAVING, _WHOLE, _IN_USE = "saved", "saving", "whole", "in-use"

STORED: Final = frozenset(
    {
        "apigateway",
        "apigateway_v1",
        "cloudformation",
        "cloudwatch",
        "cloudwatch_logs",
        "cognito",
        "dynamodb",
        "eventbridge",
        "iam",
        "kms",
        "lambda",
        "s3",
        "scheduler",
        "secretsmanager",
        "sns",
        "sqs",
        "ssm",
        "stepfunctions",
    }
)
"""The emulator's own names for the parts of its state that outlive a run; sessions of roles do not. It would also save
modules that it merely imported, and loading them would be half of a second start."""


class NotSaved(RuntimeError):
    """A service's state could not be written."""


def take_up(root: Path) -> str:
    """Lay out what the next emulator works on; what the user should know of it, if anything."""
    shutil.rmtree(root / _SAVING, ignore_errors=True)
    _finish(root)
    saved, in_use = root / _SAVED, root / _IN_USE
    told = ""
    if in_use.exists():
        for name in (STATE, OBJECTS):
            shutil.rmtree(root / name, ignore_errors=True)
            if (saved / name).is_dir():
                _link_tree(saved / name, root / name)
        told = "The emulated account was cut off before it had saved everything. "
        told += (
            f"It is as it was on {_moment(saved)}; what came after is lost"
            if saved.is_dir()
            else "It is empty"
        )
    in_use.touch(mode=0o600)
    return told


def whole(save_all: SaveAll, state_in: Callable[[Path], None], root: Path) -> SaveAll:
    """Saves all services, or nothing. ``state_in``: makes ``save_all`` write into this folder.

    Raises `NotSaved`; what was saved before stays.
    """

    def save(services: Services) -> None:
        folder = root / _SAVING
        shutil.rmtree(folder, ignore_errors=True)
        (folder / STATE).mkdir(parents=True, mode=0o700)
        state_in(folder / STATE)
        unknown = set()

        def noted(name: str, get_state: Callable[[], object]) -> object:
            state = get_state()
            if state is None:
                unknown.add(name)
            return state

        kept = {name: get for name, get in services.items() if name in STORED}
        save_all({name: lambda name=name, get=get: noted(name, get) for name, get in kept.items()})
        if wrong := sorted(kept.keys() - unknown - {path.stem for path in (folder / STATE).glob("*.json")}):
            raise NotSaved(f"The state of {', '.join(wrong)} could not be written")
        for path in (folder / STATE).glob("*.json"):
            with path.open("rb") as file:
                os.fsync(file.fileno())
        # what this run did not touch, and what services keep in files of their own: keys, functions' code
        _link_tree(root / STATE, folder / STATE)
        _link_tree(root / OBJECTS, folder / OBJECTS)
        folder.rename(root / _WHOLE)
        _finish(root)
        (root / _IN_USE).unlink(missing_ok=True)

    return save


def _finish(root: Path) -> None:
    """Put what has been written whole in the place of what was saved before, and work on it."""
    if (root / _WHOLE).is_dir():
        shutil.rmtree(root / _SAVED, ignore_errors=True)
        (root / _WHOLE).rename(root / _SAVED)
        shutil.rmtree(root / STATE, ignore_errors=True)
        _link_tree(root / _SAVED / STATE, root / STATE)


def _link_tree(source: Path, target: Path) -> None:
    """The same files, where the target has none yet: whoever changes one writes another and renames it."""
    target.mkdir(mode=0o700, parents=True, exist_ok=True)
    ignore = _not_stored if source.name == STATE else None
    if source.is_dir():
        shutil.copytree(source, target, copy_function=_link, ignore=ignore, dirs_exist_ok=True)


def _link(source: str, target: str) -> None:
    if not os.path.lexists(target):
        os.link(source, target)


def _not_stored(folder: str, names: list[str]) -> list[str]:
    """The state of services that does not outlive a run."""
    if Path(folder).name != STATE:
        return []
    return [name for name in names if name.endswith(".json") and name.removesuffix(".json") not in STORED]


def _moment(path: Path) -> str:
    return time.strftime("%Y-%m-%d at %H:%M", time.localtime(path.stat().st_mtime))
