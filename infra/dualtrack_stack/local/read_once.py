"""DynamoDB's expressions are read once: by itself the emulator's code reads a query's condition again for each item of
the partition, which takes more time than all the rest of its work."""

from __future__ import annotations

import functools
from typing import Any


def read_once(dynamodb: Any) -> None:
    """``dynamodb``: the emulator's module. What it reads depends on the text alone, and nobody changes it."""
    for name in ("_tokenize", "_condition_syntax_error"):
        read = getattr(dynamodb, name)
        if not hasattr(read, "cache_info"):
            setattr(dynamodb, name, functools.lru_cache(maxsize=1_000)(read))
