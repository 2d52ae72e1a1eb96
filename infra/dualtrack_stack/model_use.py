"""What a query takes of the model, in tokens: the means that ``python -m bench.model_use --write`` has counted."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dualtrack.models.turn import Usage

from dualtrack_stack.roots import PACKAGE

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE: Final = PACKAGE / "model_use.json"


@dataclass(frozen=True, slots=True)
class ModelUse:
    """Of one query, all its calls together."""

    calls: int
    input_tokens: int
    cache_write_tokens: int
    cache_read_tokens: int
    output_tokens: int

    @property
    def usage(self) -> Usage:
        """As a price is asked for."""
        return Usage(self.input_tokens, self.output_tokens, self.cache_read_tokens, self.cache_write_tokens)

    @property
    def limited_input(self) -> int:
        """Tokens of input that count towards a service's limit: those that are not read from its cache."""
        return self.input_tokens + self.cache_write_tokens


def model_use() -> Mapping[str, ModelUse]:
    """By the kind of chat (`dualtrack_stack.costs.counted`)."""
    return {name: ModelUse(**use) for name, use in json.loads(FILE.read_text(encoding="utf-8")).items()}
