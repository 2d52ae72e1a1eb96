"""A project's folder, read and checked."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from dualtrack.checked_settings import checked

from dualtrack_stack.profiles import BadProfile, own_profiles
from dualtrack_stack.project.model import BadProject, Project

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


def read_project(root: Path, stage: str = "local", environ: Mapping[str, str] = os.environ) -> Project:
    """The project in a folder; what is checked by settings is checked by those of ``stage``, which ``environ``
    overrides. Raises `BadProject`, with a line for each problem."""
    del stage
    try:
        return Project(root, profiles=own_profiles(checked(environ), root))
    except (BadProfile, ValueError) as wrong:
        raise BadProject(str(wrong)) from None
