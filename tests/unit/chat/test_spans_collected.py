"""A chat's spans, received by the real OpenTelemetry Collector; tests/unit/chat/test_spans.py uses a fake."""

from __future__ import annotations

import json
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat.send_spans import send_spans
from dualtrack.chat.spans import spans_of
from dualtrack.errors import ModelUnavailable
from dualtrack.runtime.otlp import NotSent, post
from dualtrack.settings import Settings

from tests.drivers.world import World, make_world, ref_of
from tests.servers.otel_collector import RealCollector, required_binary, serve_real_collector
from tests.servers.otlp import all_spans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

READ = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
MISSING = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q77"}}


@pytest.fixture(scope="module")
def collector(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealCollector]:
    required_binary()
    with serve_real_collector(tmp_path_factory.mktemp("collector")) as running:
        yield running


def chats(world: World) -> list[Chat]:
    """One with tools, one that failed, one that was cancelled."""
    world.model.script.add({"match": "turn", "content": [READ, MISSING]})
    done = world.ask("What is a ledger?")
    world.model.script.add({"match": "turn", "status": 500})
    failed = world.start("Try it.")
    with suppress(ModelUnavailable):
        world.answer(failed)
    world.abort(failed, "ModelUnavailable")
    executions: Any = world.executions
    cancelled = world.start("Begin.")
    cancel_chat(world.stores, executions, cancelled)
    return [world.load(chat) for chat in (done, failed, cancelled)]


def plain(span: dict[str, Any]) -> dict[str, Any]:
    """A span regardless of the order of keys and of empty fields."""
    attributes = {attribute["key"]: attribute["value"] for attribute in span["attributes"]}
    return {
        name: value for name, value in (span | {"attributes": attributes}).items() if value not in ("", {})
    }


def test_it_receives_every_span_as_it_was_sent(world: World, collector: RealCollector) -> None:
    ended = chats(world)
    log = logging.getLogger("spans")
    for chat in ended:
        send_spans(world.stores, ref_of(chat), Settings(otel_exporter_otlp_endpoint=collector.url), log)
    taken = collector.documents(len(ended))
    for chat, document in zip(ended, taken, strict=True):
        error = (chat.error or {}).get("code", "")
        wanted = spans_of(
            receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment()), "anthropic", error
        )
        assert wanted is not None
        assert [plain(span) for span in all_spans(document)] == [plain(span) for span in all_spans(wanted)]
        assert document["resourceSpans"][0]["resource"] == wanted["resourceSpans"][0]["resource"]
    assert [len(all_spans(document)) > 1 for document in taken] == [True, True, False]
    assert "ledger" not in json.dumps(taken)


def test_it_refuses_an_invalid_span(collector: RealCollector) -> None:
    """So the collector does validate what it accepts."""
    span = {"traceId": "no hex", "spanId": "2" * 16, "name": "n", "kind": 1}
    with pytest.raises(NotSent, match="answered 400"):
        post(collector.url, {}, {"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]})


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world
