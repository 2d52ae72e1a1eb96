"""Bytecode for Lambda's Python, which layers and a project's own function ship (DESIGN 2.13).

As unchecked-hash .pyc: an asset's zip normalises mtimes, which would silently void timestamp .pyc and double every cold
start. The path that a traceback shows is the one on Lambda.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dualtrack_stack.node import node
from dualtrack_stack.roots import PACKAGE

PYTHON: Final = "3.13"
"""Lambda's version."""


class NoCompiler(RuntimeError):
    """No compiler of Lambda's Python version is installed."""


def compile_folder(packages: Path) -> None:
    """Compile with whatever Python of Lambda's version is installed. Raises `NoCompiler` without one."""
    python, wasm = lambda_python(), pyodide()
    if python.path:
        _compile(python.path, packages)
    elif wasm is not None:
        _webassembly(wasm).compile(packages)
    else:
        raise NoCompiler(
            f"Layers need bytecode of Python {PYTHON}, and there is no such interpreter. uv says:\n"
            f"{python.problem}\n"
            f"Install one (uv python install {PYTHON}, or the system's packages), let uv fetch it (not with UV_OFFLINE or"
            " UV_PYTHON_DOWNLOADS=never), or run .ci/install_pyodide.sh, which needs npm."
        )


def pyodide() -> Path | None:
    """CPython of Lambda's version as WebAssembly, if `.ci/install_pyodide.sh` has installed it."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "dualtrack" / "npm-pyodide" / "node_modules" / "pyodide"
    return folder if (folder / "pyodide.mjs").is_file() else None


@dataclass(frozen=True, slots=True)
class Interpreter:
    """The path of a Python, or, without one, why uv has none in its own words."""

    path: str = ""
    problem: str = ""


@functools.cache
def lambda_python() -> Interpreter:
    """One of Lambda's version, which alone can write its bytecode; uv fetches one if it can."""
    finished = subprocess.run(
        ["uv", "run", "--quiet", "--no-project", "--python", PYTHON, "python", "-c", "import sys; print(sys.executable)"],
        cwd=tempfile.gettempdir(), capture_output=True, text=True, check=False,
    )  # fmt: skip
    if finished.returncode:
        return Interpreter(problem=finished.stderr.strip() or f"nothing (exit code {finished.returncode})")
    return Interpreter(finished.stdout.strip())


def _compile(python: str, packages: Path) -> None:
    finished = subprocess.run(
        [
            python, "-m", "compileall", "-q", "--invalidation-mode", "unchecked-hash",
            "-s", str(packages), "-p", "/opt/python", str(packages),
        ],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if finished.returncode:
        raise RuntimeError(f"{packages} cannot be compiled:\n{finished.stdout}{finished.stderr}")


class WebAssembly:
    """CPython of Lambda's version as WebAssembly, in a process of Node: loading it takes longer than compiling most
    layers, so it is loaded once."""

    def __init__(self, pyodide: Path) -> None:
        self._process = subprocess.Popen(
            [node(), str(PACKAGE / "compile_bytecode.mjs"), str(pyodide), PYTHON],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )  # fmt: skip

    def compile(self, packages: Path) -> None:
        """Raises RuntimeError with what it has said."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        with contextlib.suppress(BrokenPipeError):  # it has ended: what it said is raised
            self._process.stdin.write(f"{packages}\n")
            self._process.stdin.flush()
        said = []
        for line in self._process.stdout:
            if line == "compiled\n":
                return
            said.append(line)
            if line == "failed\n":
                break
        raise RuntimeError(f"{packages} cannot be compiled:\n{''.join(said)}")

    def close(self) -> None:
        """End the process."""
        with self._process:
            self._process.kill()


@functools.cache
def _webassembly(pyodide: Path) -> WebAssembly:
    compiler = WebAssembly(pyodide)
    atexit.register(compiler.close)
    return compiler
