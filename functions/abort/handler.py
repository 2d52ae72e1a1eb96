"""Ends a chat whose workflow failed: called by the workflow's Catch and by EventBridge."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    import json
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from dualtrack.chat.end_chat import end_chat, failure_of, said_by
    from dualtrack.ids import number_of_execution
    from dualtrack.models.trouble import ErrorDetails, own_words
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.metrics import count_end
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import ChatStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext

logger = Logger()
settings = settings_from()
stores = open_stores(settings, ChatStores)
details = ErrorDetails(settings.dualtrack_provider)


@logger.inject_lambda_context
def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001
    """``{"user", "chat_id", "conversation_id", "execution", "error"?}`` or a status change of an execution → ``{}``."""
    request, cause = _parse(event)
    ref = chat_ref(request)
    logger.set_correlation_id(ref.chat_id)
    failure, number = failure_of(cause, details), number_of_execution(request["execution"])
    chat = end_chat(stores, ref, failure, count_end, number)
    logger.warning(
        "Chat ended from outside",
        status=chat.status if chat else "unknown",
        error=cause.get("Error", ""),
        said=own_words(said_by(cause)),
    )
    if settings.otel_exporter_otlp_endpoint:
        from dualtrack.chat.send_spans import send_spans  # noqa: PLC0415 - only if a collector is set

        send_spans(stores, ref, settings, logger)
    return {}


def _parse(event: Mapping[str, Any]) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    detail = event.get("detail")
    if detail is None:
        return event, event.get("error") or {}
    request = {**json.loads(detail["input"]), "execution": detail["name"]}
    return request, {"Error": detail["status"], "Cause": detail.get("cause") or ""}
