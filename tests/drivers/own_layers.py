"""Functions that can import only what they have on Lambda: the standard library, their own layers, Lambda's SDK.

The layers are built from the same requirements files and locked versions as on AWS, for this machine. A function's
process sees neither the tests' environment nor any other path.
"""

from __future__ import annotations

import contextlib
import os
import sys
from typing import TYPE_CHECKING, Final

from dualtrack_stack import layers
from dualtrack_stack.layers import HERE
from dualtrack_stack.roots import function_folders
from dualtrack_stack.stacks.function_specs import SPECS

from tests.drivers.documents import ROOT
from tests.drivers.lambda_runtime import RUNTIME
from tests.drivers.worker_world import zygote
from tests.drivers.zygote import HANDLERS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

ALONE: Final = "import os, runpy, sys; sys.path += sys.argv.pop(1).split(os.pathsep); "
"""Begins a program whose first argument is its path. With -I and -S it sees only the standard library."""

ZYGOTE: Final = (
    f"{ALONE} runpy.run_path({str(ROOT / 'tests' / 'drivers' / 'zygote.py')!r}, run_name='__main__')"
)
MODULE: Final = f"{ALONE} runpy.run_module(sys.argv.pop(1), run_name='__main__', alter_sys=True)"


def own_path(function: str) -> str:
    """What a function may import from, as Lambda orders it. Raises `layers.NoPackageIndex`."""
    own = [layers.build(layers.ROLES[layer], HERE) / "python" for layer in SPECS[function].layers]
    runtime = layers.build(RUNTIME, HERE) / "python"
    code = function_folders()[function]
    return os.pathsep.join(map(str, (code, ROOT / "layers" / "core" / "python", *own, runtime)))


def alone(function: str, program: str) -> list[str]:
    """The command of a process in which a function can import only its own code and layers."""
    return [sys.executable, "-I", "-S", "-c", program, own_path(function)]


@contextlib.contextmanager
def zygotes_alone(state_dir: Path) -> Iterator[dict[str, str]]:
    """A zygote for each handler, which has the handler's own layers and nothing else."""
    with contextlib.ExitStack() as running:
        yield {
            handler: running.enter_context(zygote(state_dir / handler, alone(handler, ZYGOTE), [handler]))
            for handler in HANDLERS
        }
