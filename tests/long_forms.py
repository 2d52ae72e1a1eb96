"""How much of the tests a run takes: three sizes, each with the rules of the smaller ones.

- ``uv run --group test pytest``, without a path: all but `IN_CI`, in short forms. A newcomer's run.
- ``bash .ci/run`` sets ``DUALTRACK_NO_SKIPS``: everything in short forms, with the outside tools. A pull request's.
- ``DUALTRACK_LONG=1 bash .ci/run``: everything in long forms, which draw more cases. Every night, before a deployment.

A test that is named by a path runs in any of them.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.grouping import APART

if TYPE_CHECKING:
    from collections.abc import Sequence

LONG: Final = bool(os.environ.get("DUALTRACK_LONG"))
"""Whether tests draw many cases."""

IS_CI: Final = bool(os.environ.get("DUALTRACK_NO_SKIPS"))
"""Whether every test has to run."""

TESTS: Final = Path(__file__).parent

IN_CI: Final = frozenset(
    {
        # their stacks, projects and stages are their own
        *(f"tests/e2e/{name}.py" for name in APART),
        # they ask the shared stack for a long time
        "tests/e2e/test_api_samples.py",
        "tests/e2e/test_api_schemathesis.py",
        "tests/e2e/test_api_sequences.py",
        "tests/e2e/test_busy_model.py",
        "tests/e2e/test_corpora.py",
        "tests/e2e/test_erasure.py",
        "tests/e2e/test_examples.py",
        "tests/e2e/test_hostile_results.py",
        "tests/e2e/test_long_answers.py",
        "tests/e2e/test_long_memory.py",
        "tests/e2e/test_tour.py",
        "tests/e2e/page/test_every_view.py",
        "tests/e2e/page/test_lossy_connection.py",
        *(path.relative_to(TESTS.parent).as_posix() for path in TESTS.glob("plugins/*/test_stack.py")),
        # they use much of a processor
        "tests/infra/test_checkers.py",
        "tests/infra/test_layers.py",
        "tests/infra/test_without_plugins.py",
        "tests/property/test_credit_simulation.py",
        "tests/property/test_linear_text.py",
        "tests/unit/test_extend.py",
        "tests/unit/test_grouping.py",
        "tests/unit/tools/graph/test_bolt.py",
        "tests/unit/tools/mcp/test_hostile_servers.py",
    }
)
"""Files that take half of the time: for CI, and for whoever changes what they test."""

_TOOL: Final = re.compile(
    r"Skipped: (?:no |the )?(.+?) (?:is|are) (?:not installed|missing)|Skipped: no (.+?) here"
)


def not_run(skips: Sequence[str], files: int) -> str:
    """One line about the tests that a run has skipped, by their reasons, and about ``files`` that it left out, with the
    command that runs them; empty if there are none. Long forms alone are not meant: they are a choice.
    """
    reasons = [reason for reason in skips if "DUALTRACK_LONG" not in reason]
    tools = Counter(match[1] or match[2] for reason in reasons if (match := _TOOL.search(reason)))
    named = ", ".join(f"{tool} {count}" for tool, count in tools.most_common())
    parts = [f"{len(reasons)} tests that were skipped" + (f" (for want of {named})" if named else "")] * bool(
        reasons
    )
    parts += [f"{files} files of tests that take long"] * bool(files)
    return (
        f"Not run: {', '.join(parts)}. This installs what is missing and runs them: bash .ci/run"
        if parts
        else ""
    )
