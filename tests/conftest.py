"""For every test: credentials that lead nowhere, and no way out of this machine."""

from __future__ import annotations

import os

import hypothesis
import pytest

# No test fails because the machine is slow.
hypothesis.settings.register_profile("dualtrack", deadline=None)
hypothesis.settings.load_profile("dualtrack")

os.environ.update(
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
    POWERTOOLS_TRACE_DISABLED="1",
    POWERTOOLS_METRICS_NAMESPACE="dualtrack",
    POWERTOOLS_SERVICE_NAME="tests",
)
for name in (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "VOYAGE_API_KEY",
    "CONTEXT7_API_KEY",
    "GITHUB_TOKEN",
    "AWS_PROFILE",
):
    os.environ.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def _quiet_colours() -> None:
    """Commands under test print plain text."""
    os.environ["NO_COLOR"] = "1"


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """CI installs every outside tool, so there a skipped test is a failure (DUALTRACK_NO_SKIPS)."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if reporter and os.environ.get("DUALTRACK_NO_SKIPS") and skipped and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(f"{len(skipped)} tests were skipped, and DUALTRACK_NO_SKIPS is set.")


OWN_STACKS = {
    "test_local_stack",
    "test_restart",
    "test_faults",
    "test_github_chat",
    "test_crash_workers",
    "test_own_layers",
}


@pytest.hookimpl(tryfirst=True)  # before xdist looks for the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What shares something dear, a file's fixtures, a deployed stack, a synthesis, stays on one worker."""
    for item in items:
        item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    folders = item.path.relative_to(item.config.rootpath / "tests").parts[:-1]
    if folders == ("infra",):
        return "synthesis"
    if folders == ("e2e",) and item.path.stem not in OWN_STACKS:
        return "stack"
    return "/".join((*folders, item.path.stem)) if folders[-1] != "page" else "page"
