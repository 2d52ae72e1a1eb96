"""The function mcp: its two events, and what it loads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[4]

RUN = """
import json, sys
import boto3
from moto import mock_aws

sys.path.insert(0, "functions/mcp")
keys = [("pk", "HASH"), ("sk", "RANGE")]


class Context:
    function_name = memory_limit_in_mb = invoked_function_arn = aws_request_id = "test"

    def get_remaining_time_in_millis(self):
        return 58_000


with mock_aws():
    dynamodb = boto3.client("dynamodb")
    for table in ("cache", "chats", "history"):
        dynamodb.create_table(
            TableName=table,
            BillingMode="PAY_PER_REQUEST",
            KeySchema=[{"AttributeName": name, "KeyType": kind} for name, kind in keys],
            AttributeDefinitions=[{"AttributeName": name, "AttributeType": "S"} for name, _ in keys],
        )
    import handler

    outcome = {
        "refresh": handler.handler(json.load(open("events/mcp_refresh.json")), Context()),
        "call": handler.handler(json.load(open("events/mcp.json")), Context()),
        "heavy": sorted({"anthropic", "numpy", "voyageai"} & set(sys.modules)),
    }
print("OUTCOME", json.dumps(outcome))
"""


def run(**settings: str) -> subprocess.CompletedProcess[str]:
    """The handler in a process of its own, as a function starts."""
    tables = {"CACHE_TABLE": "cache", "CHATS_TABLE": "chats", "HISTORY_TABLE": "history"}
    environment = {**os.environ, **tables, "CONNECTIONS_KEY": "key", **settings}
    return subprocess.run(
        [sys.executable, "-c", RUN], cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )


def test_it_answers_its_sample_events_and_loads_nothing_else() -> None:
    finished = run(MCP_SERVERS="[]", GITHUB_SECRET="none-set")
    assert finished.returncode == 0, finished.stderr
    outcome = json.loads(finished.stdout.split("OUTCOME ")[1])
    assert outcome == {"refresh": {"servers": {}}, "call": {}, "heavy": []}


def test_it_does_not_start_with_a_wrong_list_of_servers() -> None:
    finished = run(MCP_SERVERS='[{"name": "docs"}]')
    assert finished.returncode != 0
    assert "MCP_SERVERS[0]: url must be" in finished.stderr
