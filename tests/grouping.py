"""Which tests stay together on one worker: those that share something dear (a pytest plugin).

xdist's own ``loadgroup`` writes a test's group into its id, and pytest 9.2 keeps the id elsewhere, so it groups
nothing. A test's group follows from its file, and so from its id alone.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Final

import pytest
from xdist.scheduler import LoadScopeScheduling

if TYPE_CHECKING:
    from xdist.remote import Producer
    from xdist.workermanage import WorkerController

APART: Final = frozenset(
    {
        "test_local_stack",
        "test_restart",
        "test_restore",
        "test_faults",
        "test_github_chat",
        "test_crash_workers",
        "test_documents",
        "test_github_mcp",
        "test_mcp_peers",
        "test_own_layers",
    }
)
"""The end-to-end files that do without the stack that the others share."""


def group_of(nodeid: str) -> str:
    """``stack`` (the deployed stack), ``page`` (it and a browser), ``synthesis``, a file that stands
    apart; every other test is a group by itself, its id."""
    path = PurePosixPath(nodeid.split("::", 1)[0])
    folder = path.parent.as_posix().removeprefix("tests/")
    if folder == "infra":
        return "synthesis"
    if folder == "e2e/page":
        return "page"
    if folder == "e2e":
        return path.stem if path.stem in APART else "stack"
    return nodeid


class Groups(LoadScopeScheduling):  # type: ignore[misc] # xdist has no types
    """A group goes to one worker as a whole; the groups come first, the rest fills up what is left of the time."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)

    def _assign_work_unit(self, node: WorkerController) -> None:
        """xdist sorts by the number of tests; a group of one, a storm, would be the tail of the run."""
        group = next((unit for unit in self.workqueue if "::" not in unit), None)
        if group:
            self.workqueue.move_to_end(group, last=False)
        super()._assign_work_unit(node)


@pytest.hookimpl
def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Groups | None:
    """In place of ``--dist loadgroup``, the default; what else is asked for on the command line is xdist's."""
    return Groups(config, log) if config.getvalue("dist") == "loadgroup" else None
