"""For every test: invalid credentials, and no network outside this machine."""

from __future__ import annotations

import tests.right_packages  # noqa: F401 - first: it refuses a pytest from elsewhere

# isort: split
import functools
import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import botocore.session
import botocore.useragent
import hypothesis
import pytest
from httpx2._transports import default as transports

from tests.grouping import pytest_xdist_make_scheduler
from tests.long_forms import IN_CI, IS_CI, LONG, not_run

if TYPE_CHECKING:
    from collections.abc import Generator

    from xdist.workermanage import WorkerController

__all__ = ["pytest_xdist_make_scheduler"]

pytest_plugins = ["tests.stack_fixtures", "tests.page_fixtures"]

_FOR_CI = frozenset(Path(__file__).parents[1] / path for path in IN_CI)

# No test fails because the machine is slow.
hypothesis.settings.register_profile("dualtrack", deadline=None, max_examples=100 if LONG else 20)
hypothesis.settings.load_profile("dualtrack")

# moto forgets the default session with every mock, and every session would parse megabytes of service descriptions.
botocore.session.create_loader = functools.cache(botocore.session.create_loader)
# Every request would read its twenty words about this machine letter by letter.
botocore.useragent.sanitize_user_agent_string_component = functools.cache(
    botocore.useragent.sanitize_user_agent_string_component
)
# Every client of Claude would parse the system's certificates.
transports.create_ssl_context = functools.cache(transports.create_ssl_context)  # type: ignore[attr-defined]

# Every worker, command and function of a run would compile the same thousand modules again.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

# A shell lets what runs in its background ignore Ctrl-C, and so would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

os.environ.update(
    AWS_ACCESS_KEY_ID="test",
    AWS_SECRET_ACCESS_KEY="test",
    AWS_DEFAULT_REGION="us-east-1",
    AWS_EC2_METADATA_DISABLED="true",
    POWERTOOLS_TRACE_DISABLED="1",
    POWERTOOLS_METRICS_NAMESPACE="dualtrack",
    POWERTOOLS_SERVICE_NAME="tests",
    STAGE="tests",
    DUALTRACK_IDLE_SECONDS="0",  # no test leaves a stack behind
)
for name in (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_BASE_URL",
    "VOYAGE_API_KEY",
    "CONTEXT7_API_KEY",
    "GITHUB_TOKEN",
    "OTEL_EXPORTER_OTLP_ENDPOINT",
    "AWS_PROFILE",
):
    os.environ.pop(name, None)


@pytest.fixture(scope="session", autouse=True)
def _quiet_colours() -> None:
    """Commands under test print plain text."""
    os.environ["NO_COLOR"] = "1"


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Ten thousand tests live as long as the process: looking through them again and again is a third of the time that
    finding them takes, and a part of every test's."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _leaves_out(config: pytest.Config) -> bool:
    """Whether this is a run without a path outside of CI. A worker is given its paths by the run's own process, which
    alone knows whether somebody has named them."""
    if hasattr(config, "workerinput"):
        return bool(config.workerinput["leaves_out"])
    return not IS_CI and config.args_source is pytest.Config.ArgsSource.TESTPATHS


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: WorkerController) -> None:
    """Tell a worker."""
    node.workerinput["leaves_out"] = _leaves_out(node.config)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Such a run leaves out what is for CI."""
    return True if collection_path in _FOR_CI and _leaves_out(config) else None


def pytest_report_header(config: pytest.Config) -> str | None:
    """Say so."""
    told = f"left out: {len(IN_CI)} files that .ci/run adds (tests/long_forms.py); a path runs any"
    return told if _leaves_out(config) else None


def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores, because the tests of the stack often wait; at most `--maxprocesses` of them. With two
    more, some wait so long for a processor that their own time is over."""
    return (os.cpu_count() or 1) + 1


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """A run's last line, behind pytest's own: what was not run. A worker has no terminal."""
    if reporter := config.pluginmanager.get_plugin("terminalreporter"):
        reasons = [str(report.longrepr) for report in reporter.stats.get("skipped", [])]
        if line := not_run(reasons, len(IN_CI) if _leaves_out(config) else 0):
            reporter.write_line(line)


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """CI installs every outside tool, so there a skipped test is a failure (DUALTRACK_NO_SKIPS), unless its reason says
    that it has a long form alone."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    reports = reporter.stats.get("skipped", []) if reporter else []
    skipped = [report for report in reports if "DUALTRACK_LONG" not in str(report.longrepr)]
    if reporter and os.environ.get("DUALTRACK_NO_SKIPS") and skipped and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
        reporter.write_line(f"{len(skipped)} tests were skipped, and DUALTRACK_NO_SKIPS is set.")
