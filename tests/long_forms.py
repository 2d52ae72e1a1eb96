"""How much of the tests a run takes: three sizes, each with the rules of the smaller ones.

- ``uv run --group test pytest``, without a path: all but `IN_CI`, in short forms. A newcomer's run.
- ``bash .ci/run`` sets ``DUALTRACK_NO_SKIPS``: everything in short forms, with the outside tools. A pull request's.
- ``DUALTRACK_LONG=1 bash .ci/run``: everything in long forms, which draw more cases. Every night, before a deployment.

A test that is named by a path runs in any of them.
"""

from __future__ import annotations

import os
from typing import Final

LONG: Final = bool(os.environ.get("DUALTRACK_LONG"))
"""Whether tests draw many cases."""

IS_CI: Final = bool(os.environ.get("DUALTRACK_NO_SKIPS"))
"""Whether every test has to run."""

IN_CI: Final = frozenset(
    {
        # their stacks, projects and stages are their own
        "e2e/test_aws_commands.py",
        "e2e/test_aws_down.py",
        "e2e/test_bedrock.py",
        "e2e/test_crash_workers.py",
        "e2e/test_documents.py",
        "e2e/test_example_desk.py",
        "e2e/test_faults.py",
        "e2e/test_installs.py",
        "e2e/test_local_stack.py",
        "e2e/test_offline_answers.py",
        "e2e/test_own_layers.py",
        "e2e/test_own_project.py",
        "e2e/test_own_tools.py",
        "e2e/test_recorded_calls.py",
        "e2e/test_reload.py",
        "e2e/test_restart.py",
        "e2e/test_restore.py",
        # they ask the shared stack for a long time
        "e2e/test_api_samples.py",
        "e2e/test_api_schemathesis.py",
        "e2e/test_api_sequences.py",
        "e2e/test_busy_model.py",
        "e2e/test_corpora.py",
        "e2e/test_erasure.py",
        "e2e/test_examples.py",
        "e2e/test_hostile_results.py",
        "e2e/test_long_memory.py",
        "e2e/page/test_every_view.py",
        "e2e/page/test_lossy_connection.py",
        # they use much of a processor
        "infra/test_checkers.py",
        "infra/test_layers.py",
        "property/test_credit_simulation.py",
        "property/test_linear_text.py",
        "unit/test_extend.py",
        "unit/test_grouping.py",
        "unit/tools/graph/test_bolt.py",
        "unit/tools/mcp/test_hostile_servers.py",
    }
)
"""Files below ``tests`` that take half of the time: for CI, and for whoever changes what they test."""
