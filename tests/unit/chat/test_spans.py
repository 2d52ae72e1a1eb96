"""A chat's OpenTelemetry spans: built from its receipt, sent after its end, checked by a strict collector."""

from __future__ import annotations

import json
import logging
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from dualtrack.chat.cancel_chat import cancel_chat
from dualtrack.chat.explain_chat import evidence
from dualtrack.chat.receipt import Deployment, receipt_of
from dualtrack.chat.send_spans import send_spans
from dualtrack.chat.spans import spans_of
from dualtrack.errors import ModelUnavailable
from dualtrack.events import turn_begins
from dualtrack.runtime import otlp
from dualtrack.runtime.otlp import NotSent, headers_of, within_time
from dualtrack.settings import Settings

from tests.drivers.world import World, call_for_summaries, make_world, ref_of
from tests.servers.otlp import Collector, all_spans, problems, serve_collector

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack.storage.chats import Chat

ROOT: Final = Path(__file__).resolve().parents[3]
READ: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}
MISSING: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q77"}}
LOG: Final = logging.getLogger("spans")


@pytest.fixture
def world() -> Iterator[World]:
    with make_world() as new_world:
        yield new_world


@pytest.fixture
def collector() -> Iterator[Collector]:
    with serve_collector() as control:
        yield control


def sent(world: World, chat: Chat, collector: Collector, otlp_secret: str = "") -> list[dict[str, Any]]:
    """What the collector has received once the function that ended the chat is done."""
    configured = Settings(otel_exporter_otlp_endpoint=collector.url, otlp_secret=otlp_secret)
    send_spans(world.stores, ref_of(chat), configured, LOG)
    assert collector.problems == []
    return collector.spans


def attributes(span: dict[str, Any]) -> dict[str, Any]:
    """A span's attributes by key; 64-bit numbers as numbers."""
    return {
        attribute["key"]: int(value) if kind == "intValue" else value
        for attribute in span["attributes"]
        for kind, value in attribute["value"].items()
    }


def test_a_chat_is_a_trace_of_its_calls_and_tools(
    world: World, collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    call_for_summaries(monkeypatch)
    world.model.script.add({"match": "turn", "content": [READ, MISSING]})
    world.model.script.add({"match": "turn", "text": "The secret answer. " * 60})
    chat = world.ask("A question that nobody else may read.")
    root, *children = sent(world, chat, collector)
    assert root["name"] == f"invoke_agent {chat.profile}"
    assert "parentSpanId" not in root
    assert {child["parentSpanId"] for child in children} == {root["spanId"]}
    assert {span["traceId"] for span in collector.spans} == {root["traceId"]}
    names = sorted(child["name"] for child in children)
    assert names == [f"chat {chat.model}"] * 3 + ["execute_tool retrieve_full_context"] * 2
    seen = attributes(root)
    assert seen["gen_ai.operation.name"] == "invoke_agent"
    assert seen["gen_ai.conversation.id"] == chat.conversation_id
    assert (seen["dualtrack.chat.id"], seen["dualtrack.credits"]) == (chat.chat_id, chat.credits_used)
    usage = chat.usage
    prompt = sum(usage[name] for name in ("input_tokens", "cache_write_tokens", "cache_read_tokens"))
    assert seen["gen_ai.usage.input_tokens"] == prompt
    assert seen["gen_ai.usage.output_tokens"] == usage["output_tokens"]
    calls = [attributes(child) for child in children if child["name"].startswith("chat")]
    turns = [call for call in calls if call["dualtrack.line"].startswith("turn")]
    assert sum(call["gen_ai.usage.input_tokens"] for call in turns) == prompt
    assert {call["gen_ai.provider.name"] for call in calls} == {"anthropic"}
    failed = [child for child in children if child["status"]]
    assert [attributes(span)["error.type"] for span in failed] == ["tool_error"]
    assert attributes(failed[0])["gen_ai.tool.call.id"] == "q1-t2"
    for text in ("nobody else", "secret answer", "q77", f'"{chat.user}"'):
        assert text not in json.dumps(collector.documents)


def test_the_same_chat_twice_is_the_same_spans(world: World, collector: Collector) -> None:
    chat, other = world.ask("One."), world.ask("Two.")
    sent(world, chat, collector)
    sent(world, chat, collector)
    first, again = collector.documents
    assert first == again
    sent(world, other, collector)
    known = {span["spanId"] for span in all_spans(first)}
    assert not known & {span["spanId"] for span in all_spans(collector.documents[-1])}


def test_a_chat_that_failed_says_so_and_a_lost_call_has_no_tokens(world: World, collector: Collector) -> None:
    world.model.script.add({"match": "turn", "status": 500})
    chat = world.start("Try it.")
    world.stores.log(chat).append([turn_begins(1, 15, final=False)])
    with pytest.raises(ModelUnavailable):
        world.answer(chat)
    world.abort(chat, "ModelUnavailable")
    root, *children = sent(world, chat, collector)
    assert root["status"] == {"code": 2}
    assert attributes(root)["error.type"] == "unavailable"
    assert children
    for child in children:
        assert attributes(child)["error.type"] == "lost"
        assert not [key for key in attributes(child) if key.startswith("gen_ai.usage")]


def test_a_cancelled_chat_is_sent_and_a_running_one_is_not(world: World, collector: Collector) -> None:
    chat = world.start("Begin.")
    assert sent(world, chat, collector) == []
    executions: Any = world.executions
    cancel_chat(world.stores, executions, chat)
    (root,) = sent(world, chat, collector)
    assert attributes(root)["dualtrack.stop"] == "cancelled"
    assert root["status"] == {}


def test_bedrock_is_named_as_the_conventions_do(world: World) -> None:
    chat = world.ask("Hello.")
    document = spans_of(
        receipt_of(evidence(world.stores, chat, world.stores.ledger), Deployment()), "bedrock"
    )
    assert document is not None
    assert problems(document) == []
    assert "aws.bedrock" in json.dumps(document)


def test_the_headers_come_from_the_parameter_store(world: World, collector: Collector) -> None:
    chat = world.ask("Hello.")
    name = "/dualtrack-spans/otlp"
    boto3.client("ssm").put_parameter(Name=name, Type="SecureString", Value="api-key=k%3D1, x-team=blue")
    sent(world, chat, collector, otlp_secret=name)
    (headers,) = collector.headers
    assert (headers["api-key"], headers["x-team"]) == ("k=1", "blue")


def test_a_collector_that_refuses_fails_nothing(
    world: World, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    """Asked once each time: no retry, and no redirect is followed."""
    chat, statuses = world.ask("Hello."), (307, 308, 400, 429, 503)
    for collector.status in statuses:
        assert sent(world, chat, collector) == []
    assert collector.requests == len(statuses)
    reasons = [record.__dict__["reason"] for record in caplog.records if record.name == "spans"]
    assert reasons == [f"The collector answered {status}." for status in statuses]


def test_a_silent_or_unreachable_collector_fails_nothing(
    world: World, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    chat = world.ask("Hello.")
    monkeypatch.setattr(otlp, "SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        send_spans(world.stores, ref_of(chat), Settings(otel_exporter_otlp_endpoint=url), LOG)
    send_spans(world.stores, ref_of(chat), Settings(otel_exporter_otlp_endpoint=url), LOG)
    reasons = [record.__dict__["reason"] for record in caplog.records if record.name == "spans"]
    assert [reason.rsplit(" ", 1)[1] for reason in reasons] == ["TimeoutError", "ConnectionRefusedError"]


def test_sending_waits_no_longer_than_its_limit() -> None:
    """Also where no socket timeout applies, as in a name lookup."""
    read, write = os.pipe()
    with pytest.raises(NotSent, match=r"longer than 0\.05 s"):
        within_time(lambda: print(os.read(read, 1)), 0.05)
    os.write(write, b"x")


def test_an_invalid_header_is_not_shown(
    world: World, collector: Collector, caplog: pytest.LogCaptureFixture
) -> None:
    chat = world.ask("Hello.")
    name = "/dualtrack-spans/broken"
    boto3.client("ssm").put_parameter(Name=name, Type="SecureString", Value="api-key=hush%0Ahush")
    assert sent(world, chat, collector, otlp_secret=name) == []
    assert "hush" not in str([record.__dict__ for record in caplog.records])
    with pytest.raises(NotSent) as raised:
        headers_of("hush")
    assert "hush" not in str(raised.value)


PROGRAM: Final = """
import json, os, sys
from runpy import run_path
from types import SimpleNamespace
import boto3
from moto import mock_aws
with mock_aws():
    from tests.drivers.world import make_tables
    make_tables(boto3.client("dynamodb"))
    key = {"Name": os.environ["ANTHROPIC_SECRET"], "Type": "SecureString", "Value": "k"}
    boto3.client("ssm").put_parameter(**key)
    context = SimpleNamespace(
        function_name="f", memory_limit_in_mb=1, invoked_function_arn="a", aws_request_id="r", log_group_name="l"
    )
    event = {"user": "ann", "chat_id": "ch_1", "conversation_id": "cv_1", "execution": "ch_1.1"}
    for function in ("abort", "summarise"):
        run_path(f"functions/{function}/handler.py")["handler"](event, context)
        print(json.dumps([function, sys.modules.pop("dualtrack.chat.send_spans", None) is not None]))
"""


@pytest.mark.parametrize("endpoint", ["", "http://127.0.0.1:9"])
def test_the_sender_is_loaded_only_if_a_collector_is_set(endpoint: str) -> None:
    tables = {f"{name.upper()}_TABLE": name for name in ("history", "chats", "credits", "cache")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={
            **os.environ,
            **tables,
            "BODIES_BUCKET": "bodies",
            "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
            "ANTHROPIC_SECRET": "/dualtrack-spans/anthropic",
            "OTEL_EXPORTER_OTLP_ENDPOINT": endpoint,
            "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "layers" / "core" / "python"))),
        },
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert told == [["abort", bool(endpoint)], ["summarise", bool(endpoint)]]
