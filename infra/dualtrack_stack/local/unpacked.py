"""Layers on this machine: unpacked once, however many processes functions have; so their modules are compiled once.

By itself the emulator unpacks a function's layers for each of its processes, which then compiles what it imports: more
work than the rest of a stack's start.
"""

from __future__ import annotations

import hashlib
import shutil
import tempfile
import threading
import zipfile
from pathlib import Path
from typing import Any

_ONE_AT_A_TIME = threading.Lock()


class LayersOnce(zipfile.ZipFile):
    """In place of the emulator's ``ZipFile``. A process has a link to its layer; a function's own code is unpacked for
    each process, as before."""

    def namelist(self) -> list[str]:
        """None of a layer: for each name the emulator would ask the file system a dozen times whether it leads out of
        the folder, of which `extractall` lets none.
        """
        return [] if self._layer() else super().namelist()

    def extractall(self, path: Any = None, members: Any = None, pwd: bytes | None = None) -> None:
        """Into the folder ``path``, which for a layer is empty and becomes a link."""
        layer = self._layer()
        if not layer:
            super().extractall(path, members, pwd)
            return
        own = Path(path)
        with _ONE_AT_A_TIME:
            own.rmdir()
            own.symlink_to(self._shared(layer), target_is_directory=True)

    def _layer(self) -> Path | None:
        file = Path(self.filename or "")
        return file if file.name.startswith("layer_") else None

    def _shared(self, layer: Path) -> Path:
        """The folder of this content beside those of the processes."""
        processes = layer.parent.parent
        shared = processes / f"layer-{hashlib.sha256(layer.read_bytes()).hexdigest()[:32]}"
        if not shared.is_dir():
            used = {path.resolve() for path in processes.glob("*/layer_*") if path.is_symlink()}
            for earlier in set(processes.glob("layer-*")) - used:
                shutil.rmtree(earlier, ignore_errors=True)
            work = Path(tempfile.mkdtemp(prefix=".layer-", dir=processes))
            super().extractall(work, super().namelist())
            work.rename(shared)
        return shared
