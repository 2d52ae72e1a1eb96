"""Turns texts into vectors with the local model."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import base64
    from pathlib import Path
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from dualtrack.knowledge.minilm import NAME, load

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
model = load(Path(__file__).with_name("tokenizer.json"))


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:
    """``{"texts": [str, …]}`` → ``{"model", "vectors": [base64 of float32, …]}``, in order.

    Fewer vectors than texts if the function's time is running out; the caller then requests the rest.
    """
    vectors = []
    for text in event["texts"]:
        if context.get_remaining_time_in_millis() < 2_000:
            break
        vectors.append(base64.b64encode(model.embed(text)).decode())
    return {"model": NAME, "vectors": vectors}
