"""Dashboard and alarms use metrics that functions write, with exactly their dimensions.

For CloudWatch the same name with other dimensions is another metric, without data (Amazon CloudWatch User Guide,
"Dimensions"): an alarm on it never fires.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import time
from contextlib import contextmanager, redirect_stdout
from io import StringIO
from typing import TYPE_CHECKING, Any, Final

import boto3
import pytest
from aws_lambda_powertools.utilities.parameters import clear_caches
from dualtrack.api.identity import ApiCaller
from dualtrack.api.key_alarm import KeyAlarm
from dualtrack.chat.credit_reset import ResetReport
from dualtrack.chat.sweep import sweep
from dualtrack.errors import ApiError
from dualtrack.frozen import freeze
from dualtrack.models.cache_word import NOT_FOUND, CacheWord
from dualtrack.models.receipt_data import SideCalls, ToolSideCalls, TurnCall
from dualtrack.models.turn import Usage
from dualtrack.runtime.metrics import CACHE_REASONS, ENDS, PARTS
from dualtrack.runtime.plain_log import NAMESPACE, count_broken_stream
from dualtrack.storage.chats import RecordedTurn
from dualtrack.tool_values import ToolResult
from dualtrack.tools.mcp.catalogue import LeftOut, store_listing
from dualtrack.tools.mcp.config import McpServer
from dualtrack.tools.mcp.refresh import RefreshOutcome
from dualtrack.tools.mcp.specs import ListedTool, specs_of
from dualtrack_stack.costs import CHAT_METRICS, EVENT_METRICS
from dualtrack_stack.roots import function_folders

from tests.drivers.plugin_parts import parts
from tests.drivers.synthesised import synthesised
from tests.drivers.templates import STACKS, Stage, readable
from tests.drivers.world import SETTINGS, World, make_world
from tests.infra.rules.registry import ALL_SET

if TYPE_CHECKING:
    from collections.abc import Iterator

Metric = tuple[str, frozenset[tuple[str, str]]]
"""The name and the dimensions."""

READ: Final = {"type": "tool_use", "name": "retrieve_full_context", "input": {"id": "q1"}}


class Context:
    """Lambda's context."""

    function_name = memory_limit_in_mb = invoked_function_arn = aws_request_id = "test"

    def get_remaining_time_in_millis(self) -> int:
        return 100_000


@contextmanager
def function(name: str, patch: pytest.MonkeyPatch, **environment: str) -> Iterator[Any]:
    """A handler's module as Lambda loads it, in the stage `prod`."""
    settings = {"POWERTOOLS_SERVICE_NAME": name, "STAGE": "prod", **environment}
    tables = ("history_table", "chats_table", "credits_table", "cache_table", "bodies_bucket")
    settings |= {table.upper(): getattr(SETTINGS, table) for table in tables}
    for key, value in settings.items():
        patch.setenv(key, value)
    clear_caches()  # type: ignore[no-untyped-call]
    spec = importlib.util.spec_from_file_location(
        f"{name}_of_metrics", function_folders()[name] / "handler.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    patch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    yield module
    clear_caches()  # type: ignore[no-untyped-call]


def written(text: str) -> set[Metric]:
    """The metrics that CloudWatch extracts from log lines (CloudWatch User Guide, "Embedded metric format
    specification").
    """
    metrics = set()
    for line in text.splitlines():
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        for directive in (
            entry.get("_aws", {}).get("CloudWatchMetrics", []) if isinstance(entry, dict) else []
        ):
            assert directive["Namespace"] == NAMESPACE
            for names in directive["Dimensions"]:
                dimensions = frozenset((name, entry[name]) for name in names)
                metrics |= {(metric["Name"], dimensions) for metric in directive["Metrics"]}
    return metrics


def turns(world: World, patch: pytest.MonkeyPatch) -> None:
    """A chat with a tool, a busy model, and chats that end otherwise."""
    boto3.client("ssm").put_parameter(Name="/key", Value="sk", Type="SecureString")
    environment = {
        "ANTHROPIC_BASE_URL": world.model.url,
        "ANTHROPIC_SECRET": "/key",
        "DUALTRACK_MODEL": world.model_name,
    }
    scripts: tuple[tuple[dict[str, Any], ...], ...] = (
        ({"match": "turn", "content": [READ]}, {"match": "turn", "text": "Found."}),
        ({"match": "turn", "status": 529},),
        ({"match": "turn", "status": 400},),
        ({"match": "turn", "text": "Cut", "stop_reason": "max_tokens"},),
    )
    with function("turn", patch, **environment) as module:
        for script in scripts:
            world.model.reset()
            world.model.script.add(*script)
            chat = world.start("Read it.", user=f"user-{len(script)}-{script[0].get('status', 0)}")
            payload = {"user": chat.user, "chat_id": chat.chat_id, "conversation_id": chat.conversation_id}
            outcome = module.handler({**payload, "turn": 0}, Context())
            if outcome["next"] == "tools":
                module.handler({**payload, "turn": 1}, Context())
        refuse_a_tool(world, module)
        for reason in ("", NOT_FOUND, *CACHE_REASONS[:2], "a_new_reason"):
            made = TurnCall("2026-11-22T00:00:00Z", 0.1, cache=CacheWord(reason))
            module._count_turn(RecordedTurn(1, (), (), "turn", Usage(10), made))


def refuse_a_tool(world: World, module: Any) -> None:
    """A chat whose first request is refused for a tool of an MCP server."""
    schema = freeze({"type": "object"})
    content = specs_of(
        McpServer("docs", "http://x/"), [ListedTool("odd", "", schema, hints={"readOnlyHint": True})]
    )
    store_listing(world.stores.cache, "docs", content, world.clock())
    world.model.reset()
    ask(world, module, "odd-1")
    names = [tool["name"] for tool in world.model.requests[-1].body["tools"]]
    said = f"tools.{names.index('docs_odd')}.custom.input_schema: no"
    world.model.script.add({"match": "turn", "status": 400, "error_message": said})
    ask(world, module, "odd-2")


def ask(world: World, module: Any, user: str) -> None:
    """The first turn of a chat."""
    chat = world.start("Find it.", user=user)
    payload = {"user": chat.user, "chat_id": chat.chat_id, "conversation_id": chat.conversation_id}
    module.handler({**payload, "turn": 0}, Context())


@pytest.fixture(scope="module")
def emitted() -> set[Metric]:
    """The metrics that the functions write in the stage `prod`, each run once in a way that makes it write."""
    capture, lines = pytest.MonkeyPatch(), StringIO()
    with make_world() as world, redirect_stdout(lines):
        world.clock.now = time.time()
        turns(world, capture)
        with function("credit_reset", capture) as module:
            module._tell(ResetReport(reset=1, failed=1))
        servers = [{"name": "docs", "url": "http://127.0.0.1:9/mcp", "price_class": "other"}]
        with function(
            "mcp", capture, MCP_SERVERS=json.dumps(servers), GITHUB_SECRET="", CONNECTIONS_KEY="key"
        ) as module:
            module.refresh()
            listed = RefreshOutcome("docs", "listed 1", (LeftOut("docs", "odd", "why"),), is_new=True)
            module._tell(listed)
        with function("search", capture) as module:
            side = SideCalls("2026-11-22T00:00:00Z", "voyage-3-large", 0.1, 1, 1, Usage(10))
            module._count(ToolResult("", left_out=PARTS), [ToolSideCalls("embedding", side)])
        with function("summarise", capture) as module:
            module._count_calls(SideCalls("2026-11-22T00:00:00Z", "claude-haiku-5-5", 0.1, 1, 1, missing=2))
        capture.setenv("POWERTOOLS_SERVICE_NAME", "api")
        KeyAlarm(80, ApiCaller("ann", "ann"), world.clock()).refused(ApiError("key_cap_reached", "No."))
        for part in parts("metrics"):
            part.write(function, capture)
        capture.setenv("POWERTOOLS_SERVICE_NAME", "stream")
        count_broken_stream()
        with function("sweep", capture) as module:
            chat = world.start("It is never answered.", user="late")
            world.clock.now = chat.deadline + 1
            executions: Any = world.executions
            sweep(world.stores, executions, 60, ended=module.count_end)
            world.abort(chat)
            module._tell(OpenChats=1, SweptChats=1, Deletions=1)
        assert world.load(chat).error == {
            "code": "timeout",
            "message": "The chat took too long. Nothing was charged.",
        }
    capture.undo()
    return written(lines.getvalue())


def asked(stage: Stage) -> set[Metric]:
    """Our own metrics that alarms and the dashboard use."""
    metrics = set()
    for stack in STACKS:
        for resource in stage.template(stack)["Resources"].values():
            properties = resource.get("Properties", {})
            if resource["Type"] == "AWS::CloudWatch::Alarm":
                stats = [
                    query["MetricStat"]["Metric"]
                    for query in properties.get("Metrics", [])
                    if "MetricStat" in query
                ]
                for metric in stats or [properties]:
                    dimensions = frozenset(
                        (dimension["Name"], readable(dimension["Value"]))
                        for dimension in metric.get("Dimensions", [])
                    )
                    metrics |= (
                        {(metric["MetricName"], dimensions)} if metric["Namespace"] == NAMESPACE else set()
                    )
            elif resource["Type"] == "AWS::CloudWatch::Dashboard":
                metrics |= drawn(json.loads(readable(properties["DashboardBody"])))
    return metrics


def drawn(body: dict[str, Any]) -> set[Metric]:
    """The metrics of a dashboard; a line of a graph is ``[namespace, name, dimension, value, …, {options}]``."""
    metrics = set()
    for widget in body["widgets"]:
        for line in widget["properties"].get("metrics", []):
            plain = [part for part in line if isinstance(part, str)]
            if plain and plain[0] == NAMESPACE:
                metrics.add((plain[1], frozenset(zip(plain[2::2], plain[3::2], strict=True))))
    return metrics


def closed(metric: Metric) -> Metric:
    """The metric with the values of a closed set replaced by the dimension's name."""
    name, dimensions = metric
    sets = {"end": ENDS, "part": PARTS, "reason": CACHE_REASONS}
    return name, frozenset((key, key if value in sets.get(key, ()) else value) for key, value in dimensions)


def test_metrics_of_alarms_and_dashboard_are_written(emitted: set[Metric]) -> None:
    """With every optional alarm."""
    wanted = asked(Stage("prod", synthesised("prod", ALL_SET)))
    assert len(wanted) > 25
    assert {closed(metric) for metric in wanted} - {closed(metric) for metric in emitted} == set()


def test_every_metric_has_its_stage(emitted: set[Metric]) -> None:
    assert emitted
    for name, dimensions in emitted:
        assert {"service", "stage"} <= {key for key, _ in dimensions}, name
        assert ("stage", "prod") in dimensions, name


def test_the_bill_counts_the_written_metrics(emitted: set[Metric]) -> None:
    """Each value of a closed set is a metric; the API's count of chats is written by its own function."""
    many = {"end": len(ENDS), "part": len(PARTS), "reason": len(CACHE_REASONS)}
    names = {closed(metric) for metric in emitted}
    each = [next((many[key] for key, value in sets if key == value), 1) for _, sets in names]
    assert sum(each) + 1 == CHAT_METRICS + EVENT_METRICS, sorted(name for name, _ in names)


def test_how_chats_end_is_counted_once_each(emitted: set[Metric]) -> None:
    ends = {dict(dimensions)["end"] for name, dimensions in emitted if name == "ChatEnds"}
    assert ends == {"failed_internal", "max_tokens", "failed_timeout"}


def test_a_cache_that_was_missed_is_counted_by_reason(emitted: set[Metric]) -> None:
    """Not what the service has forgotten, as its cache has; a reason that is new as another one."""
    reasons = {dict(dimensions)["reason"] for name, dimensions in emitted if name == "CacheMisses"}
    assert reasons == {"model_changed", "system_changed", "other"}
