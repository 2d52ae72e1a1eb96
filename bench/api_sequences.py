"""Random API requests to a fresh stack: ``uv run --group test python -m bench.api_sequences [SECONDS] [SEED]``.

600 seconds, seed 1, unless told otherwise. Exit code 1 if a rule was broken: the rule, the seed and the last
requests of the user who saw it are printed (docs/faults.md).
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
from pathlib import Path

from dualtrack_stack.local.offline_model.server import serve_offline_model
from dualtrack_stack.local.sample_docs.server import serve_sample_docs
from dualtrack_stack.local.stack import LocalStack

import tests.conftest  # noqa: F401 - credentials that lead nowhere
from tests.clients.stack_client import Root
from tests.drivers.api_sequences import Sequences
from tests.servers.tool_server import NAME, serve_tools


def main(seconds: float, seed: int) -> int:
    """Run the sequences and print the report."""
    logging.disable(logging.ERROR)  # warnings about clients that disconnect and tools that crash are expected
    with (
        tempfile.TemporaryDirectory() as folder,
        serve_offline_model() as model,
        serve_tools() as tools,
        serve_sample_docs() as documents,
    ):
        environment = {
            "ANTHROPIC_API_KEY": "test",
            "ANTHROPIC_BASE_URL": model.url,
            "CONTEXT7_BASE_URL": documents,
            "MCP_SERVERS": json.dumps([{"name": NAME, "url": tools.url, "price_class": "other"}]),
        }
        state_dir = Path(folder) / "stack"
        with LocalStack(state_dir, environment=environment) as stack:
            root = Root(stack, state_dir)
            root.invoke("Mcp", {"action": "refresh"})
            sequences = Sequences(root, model, tools, seed, seconds)
            wrong = sequences.run()
    print(sequences.report())
    print(*wrong, sep="\n\n")
    print(f"seed {seed}, {seconds:.0f} seconds: {'nothing' if not wrong else len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    asked = sys.argv[1:]
    sys.exit(main(float(asked[0]) if asked else 600.0, int(asked[1]) if len(asked) > 1 else 1))
