"""Sends an ended chat's spans to the stage's collector. Imported only if a collector is set.

It runs after the terminal event, so it can neither fail a chat nor delay it by more than `SECONDS` on the wire. Lost
spans are not sent again; the receipt has the same data.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat.spans import spans_of
from dualtrack.runtime.otlp import NotSent, headers_of, post, within_time
from dualtrack.runtime.secrets import secret

if TYPE_CHECKING:
    from logging import Logger as StandardLogger
    from typing import Any

    from aws_lambda_powertools import Logger

    from dualtrack.frozen import JsonObject
    from dualtrack.requests import ChatRef
    from dualtrack.settings import Settings
    from dualtrack.storage.stores import ToolStores


def send_spans(stores: ToolStores, ref: ChatRef, settings: Settings, logger: Logger | StandardLogger) -> None:
    """Send the spans if the chat has ended; errors are logged and never raised."""
    try:
        document = _document(stores, ref, settings.dualtrack_provider)
        if document:
            within_time(partial(_send, settings, document))
    except Exception as error:  # noqa: BLE001 - the chat has its answer
        # no traceback and no message of a library: they could show a header's value
        reason = str(error) if isinstance(error, NotSent) else type(error).__name__
        logger.warning("Spans not sent", extra={"reason": reason})


def _document(stores: ToolStores, ref: ChatRef, provider: str) -> dict[str, Any] | None:
    chat = stores.chats.load(ref.user, ref.chat_id)
    if chat is None:
        return None
    chat_evidence = evidence(stores, chat, None)
    error = (chat_evidence.chat.error or {}).get("code", "")
    return spans_of(receipt_of(chat_evidence, Deployment()), provider, error)


def _send(settings: Settings, document: JsonObject) -> None:
    headers = headers_of(secret(settings.otlp_secret))
    post(settings.otel_exporter_otlp_endpoint, headers, document)
