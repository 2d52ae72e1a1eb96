"""Environments as `uv sync` makes them from the lock: what is in them, and how large they are."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tests.drivers.documents import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Installed:
    """An environment's folder."""

    folder: Path

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def site_packages(self) -> Path:
        (path,) = self.folder.glob("lib/python*/site-packages")
        return path

    @property
    def packages(self) -> frozenset[str]:
        """Their names, ours included."""
        return frozenset(
            path.name.split("-")[0].replace("_", "-").lower()
            for path in self.site_packages.glob("*.dist-info")
        )

    @property
    def megabytes(self) -> int:
        """As `du -sm` counts them."""
        counted = subprocess.run(["du", "-sm", self.folder], capture_output=True, text=True, check=True)
        return int(counted.stdout.split()[0])


def synced(folder: Path, *options: str, project: Path = ROOT) -> Installed:
    """A new environment with what ``uv sync OPTIONS`` installs. What is in uv's cache is not fetched."""
    uv("sync", "--quiet", "--locked", *options, folder=folder, project=project)
    return Installed(folder)


def built_wheel(folder: Path, *, by_way_of_sdist: bool = False) -> Path:
    """The wheel as it is published, or as somebody builds it from the source distribution."""
    uv(
        "build",
        "--quiet",
        *(() if by_way_of_sdist else ("--wheel",)),
        "--out-dir",
        str(folder),
        folder=folder,
    )
    (built,) = folder.glob("*.whl")
    return built


def client_of(wheel: Path, folder: Path) -> Installed:
    """An environment with the wheel and what it depends on, no extra."""
    made = synced(folder, "--no-default-groups", "--no-install-project")
    python = str(made.python)
    uv("pip", "install", "--quiet", "--no-deps", "--python", python, str(wheel), folder=made.folder)
    return made


def uv(*command: str, folder: Path, project: Path = ROOT) -> None:
    """uv with the environment in ``folder``. Raises RuntimeError with what it says."""
    environment = {
        key: value for key, value in os.environ.items() if key not in {"VIRTUAL_ENV", "UV_NO_SYNC"}
    }
    done = subprocess.run(
        ["uv", *command],
        cwd=project,
        env={**environment, "UV_PROJECT_ENVIRONMENT": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RuntimeError(f"uv {command[0]}: {done.stderr.strip()}")
