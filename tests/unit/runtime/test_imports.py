"""What a function loads: each handler in a fresh interpreter with a minimal environment.

A cold start imports the handler, and heavy libraries take more time than everything else (DESIGN 2.13); on AWS most of
them are not even in the function's layers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from dualtrack_stack.roots import function_folders

from tests.drivers.plugin_parts import parts

ROOT = Path(__file__).resolve().parents[3]

HEAVY = {
    "anthropic",
    "mcp",
    "numpy",
    "voyageai",
    "httpx",
    "httpx2",
    "pydantic",
    "rank_bm25",
    "jsonschema",
    "lark",
    "ladybug",
    "neo4j",
}

MAY_LOAD: dict[str, set[str]] = {
    "api": {"pydantic"},
    "turn": {"anthropic", "httpx2", "pydantic", "jsonschema"},
    "search": {"anthropic", "httpx2", "pydantic", "httpx", "voyageai", "numpy", "rank_bm25"},
    "graph_load": {"ladybug"},
    "mcp": {"mcp", "httpx2", "pydantic", "jsonschema"},
    "summarise": {"anthropic", "httpx2", "pydantic"},
    "embed": {"numpy", "pydantic"},
    "ingest": {"numpy", "pydantic", "httpx", "rank_bm25"},
    **{
        name: modules
        for part in parts("permissions")
        for name, modules in getattr(part, "MODULES", {}).items()
    },
}
"""Of the heavy ones; a function that is not named here may load none of them."""

FOLDERS = function_folders()
FUNCTIONS = sorted(FOLDERS)

ENVIRONMENT = {
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "none",
    "AWS_SECRET_ACCESS_KEY": "none",
    "AWS_ENDPOINT_URL": "http://127.0.0.1:9",  # nothing listens there: an import makes no request
    "AWS_EC2_METADATA_DISABLED": "true",
    "HISTORY_TABLE": "history",
    "CHATS_TABLE": "chats",
    "CREDITS_TABLE": "credits",
    "CACHE_TABLE": "cache",
    "BODIES_BUCKET": "bodies",
    "STATE_MACHINE_ARN": "arn:aws:states:us-east-1:000000000000:stateMachine:chat",
    "POWERTOOLS_SERVICE_NAME": "imports",
    "POWERTOOLS_METRICS_NAMESPACE": "dualtrack",
    "ANTHROPIC_BASE_URL": "http://127.0.0.1:9",
    "VOYAGE_BASE_URL": "http://127.0.0.1:9",
    "CONTEXT7_BASE_URL": "http://127.0.0.1:9",
    "MCP_SERVERS": "[]",
    "LEDGER_RETENTION_DAYS": "30",
    "TOKEN_HOURS": "1",
}

PROGRAM = """
import gc, json, sys, threading
sys.path[:0] = {paths!r}
import {module} as loaded
assert callable(getattr(loaded, {name!r}))
assert gc.isenabled()
print(json.dumps(sorted({{module.split(".")[0] for module in sys.modules}})))
print(threading.active_count())
"""

OF_BEDROCK = ["dualtrack.models.providers.bedrock.client", "anthropic.lib.bedrock"]
OPENED = """
import json, sys
from dualtrack.models import open_model
from dualtrack.models.providers.anthropic import client
from dualtrack.settings import Settings
client.needed = lambda _: "key"
settings = Settings(
    dualtrack_provider={provider!r}, bedrock_base_url="http://127.0.0.1:9", anthropic_base_url="http://127.0.0.1:9"
)
open_model.open_model(settings)
print(json.dumps([name for name in {names!r} if name in sys.modules]))
"""


def _modules_after_import(function: str) -> set[str]:
    module, name = ("app", "app") if function == "stream" else ("handler", "handler")
    paths = [str(FOLDERS[function]), str(ROOT / "layers" / "core" / "python")]
    program = PROGRAM.format(paths=paths, module=module, name=name)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env={**ENVIRONMENT, "PATH": os.environ["PATH"]},
        cwd=FOLDERS[function],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    listed, threads = done.stdout.splitlines()
    assert threads == "1"
    return set(json.loads(listed))


@pytest.mark.parametrize("function", FUNCTIONS)
def test_a_handler_loads_no_heavy_module_that_it_may_not(function: str) -> None:
    assert _modules_after_import(function) & HEAVY <= MAY_LOAD.get(function, set())


@pytest.mark.parametrize(("provider", "loaded"), [("", []), ("bedrock", OF_BEDROCK)])
def test_libraries_of_bedrock_are_loaded_only_if_it_is_chosen(provider: str, loaded: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OPENED.format(provider=provider, names=OF_BEDROCK)],
        env={
            **ENVIRONMENT,
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "layers" / "core" / "python"),
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == loaded


def test_every_named_function_exists() -> None:
    assert set(MAY_LOAD) < set(FUNCTIONS)


RESTORED = """
import random, sys, types
calls = []
sys.modules["snapshot_restore_py"] = types.SimpleNamespace(register_after_restore=calls.append)
sys.path[:0] = {paths!r}
import handler
from aws_lambda_powertools.utilities import parameters
assert not parameters.base.DEFAULT_PROVIDERS, "a key is in the snapshot"
from dualtrack.runtime import secrets
assert not secrets._keys.cache_info().currsize, "a key is in the snapshot"
random.seed(1)
first = random.random()
random.seed(1)
for call in calls:
    call()
assert random.random() != first, "two restored processes draw the same"
"""


@pytest.mark.parametrize("function", ["api", "turn", "summarise"])
def test_a_restored_snapshot_has_no_key_and_a_new_random_seed(function: str) -> None:
    """As in Lambda's runtime: a snapshot after the import, the registered hooks after each restore."""
    paths = [str(FOLDERS[function]), str(ROOT / "layers" / "core" / "python")]
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", RESTORED.format(paths=paths)],
        env={**ENVIRONMENT, "PATH": os.environ["PATH"]},
        cwd=FOLDERS[function],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
