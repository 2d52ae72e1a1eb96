"""A pytest plugin that runs tests with an expensive shared fixture on the same worker.

xdist's own ``loadgroup`` writes a test's group into its id, and pytest 9.2 keeps the id elsewhere, so it groups
nothing. Here a test's group depends only on its file, and so on its id.
"""

from __future__ import annotations

from collections import OrderedDict
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

APART: Final = frozenset(
    {
        "test_aws_commands",
        "test_aws_down",
        "test_bedrock",
        "test_crash_workers",
        "test_documents",
        "test_example_desk",
        "test_faults",
        "test_github_chat",
        "test_github_mcp",
        "test_installs",
        "test_local_stack",
        "test_mcp_peers",
        "test_offline_answers",
        "test_own_layers",
        "test_own_project",
        "test_own_tools",
        "test_recorded_calls",
        "test_reload",
        "test_restart",
        "test_restore",
        "test_stdio_servers",
    }
)
"""The end-to-end files that do not use the shared stack."""

TOGETHER: Final = frozenset(
    {
        "tests/property/test_forks.py",
        "tests/unit/cli/test_login.py",
        "tests/unit/test_code_style.py",
        "tests/unit/test_extend.py",
        "tests/unit/tools/graph/test_bolt.py",
    }
)
"""Other files that run as one: their tests share a server or the ports of a sign-in, or one takes a minute and may not
be the last to begin."""


def group_of(nodeid: str) -> str:
    """``stack`` (the deployed stack), ``page`` (it and a browser), ``synthesis``, a file that runs as one; every other
    test is its own group, named by its id.
    """
    path = PurePosixPath(nodeid.split("::", 1)[0])
    folder = path.parent.as_posix().removeprefix("tests/")
    is_plugins = folder.startswith("plugins/")
    if folder == "infra":
        return "synthesis"
    if folder == "e2e/page" or (is_plugins and path.stem == "test_page"):
        return "page"
    if is_plugins and path.stem == "test_stack":
        return "stack"
    if folder == "e2e":
        return path.stem if path.stem in APART else "stack"
    return path.as_posix() if path.as_posix() in TOGETHER else nodeid


def rank(group: str) -> int:
    """Groups begin first, single tests fill the remaining time: the long ones, of properties, before the rest."""
    return 0 if "::" not in group else 1 if group.startswith("tests/property/") else 2


class Groups(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """A group runs on one worker; within a rank, xdist begins with the group of most tests."""

    _ranked = False

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """xdist sorts by the number of tests alone, which would run a group of one long test (a storm) last."""
        if not self._ranked:
            self.workqueue = OrderedDict(sorted(self.workqueue.items(), key=lambda unit: rank(unit[0])))
            self._ranked = True
        super()._assign_work_unit(node)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups | None:
    """Replaces ``--dist loadgroup``, the default; other modes of the command line stay xdist's."""
    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None
