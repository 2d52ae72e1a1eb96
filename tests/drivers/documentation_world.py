"""The documentation search, wired by its own builder, with all its services on loopback."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cache
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import boto3
from dualtrack.knowledge.voyage_embedder import voyage_embedder
from dualtrack.models.providers.anthropic.client import connect
from dualtrack.runtime.background_loop import BackgroundLoop
from dualtrack.settings import settings_from
from dualtrack.storage.cache import CacheStore
from dualtrack.tools.documentation.dependencies import Dependencies, build_dependencies
from dualtrack.tools.documentation.pipeline import documentation_for
from dualtrack.tools.documentation.settings import RetrievalSettings, SearchLimits
from dualtrack.tools.search_needs import SearchNeeds

from tests.drivers.aws import aws_in_process
from tests.drivers.tables import make_table
from tests.servers.context7 import FakeContext7, library, serve_context7, snippet
from tests.servers.structured_claude import FakeClaude, serve_structured_claude
from tests.servers.voyage import FakeVoyage, serve_voyage

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack.models.protocol import Model
    from dualtrack.runtime.log import Log
    from dualtrack.settings import Settings
    from dualtrack.tool_values import ToolResult

QUESTION = "How do I set up OAuth for Twitter ads?"
LIBRARY = "/websites/developer_x_ads"
NOW = 1_795_000_000.0
PATIENT = RetrievalSettings(
    limits=SearchLimits(100, cache=20, understand=20, search=20, choose=20, context=20, embed=20, rerank=20)
)
"""The product's settings with timeouts long enough for a slow machine."""


class RecordingLogger:
    """Keeps structured log lines."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Mapping[str, Any]]] = []

    def info(self, msg: str, *, extra: Mapping[str, Any]) -> None:
        self.lines.append((msg, extra))


@dataclass
class World:
    """Everything a test may read or change; ``now`` is the clock."""

    context7: FakeContext7
    voyage: FakeVoyage
    claude: FakeClaude
    deps: Dependencies
    dynamodb: Any
    logger: RecordingLogger
    now: list[float] = field(default_factory=lambda: [NOW])

    def ask(self, question: str = QUESTION, *, rerank: bool = True) -> ToolResult:
        return documentation_for(question, self.deps, rerank=rerank)

    def outcomes(self) -> dict[str, str]:
        """How each stage of the last search ended."""
        lines = [extra for message, extra in self.logger.lines if message == "documentation search"]
        return {stage["stage"]: stage["outcome"] for stage in lines[-1]["stages"]}

    def items(self) -> list[dict[str, Any]]:
        """Everything in the cache table."""
        items: list[dict[str, Any]] = self.dynamodb.scan(TableName="cache")["Items"]
        return items


def ads_sections(query: str) -> list[dict[str, Any]]:
    """Forty sections about an ads API, twenty per phrasing; three of them are about OAuth."""
    subjects = [
        "campaign budgets",
        "line items",
        "targeting criteria",
        "conversion tracking",
        "analytics jobs",
    ]
    filler = [
        snippet(
            f"{subjects[n % 5].title()} part {n}",
            f"Configure {subjects[n % 5]} number {n} here.",
            f"call_{n}()",
        )
        for n in range(37)
    ]
    oauth = [
        snippet(
            "Set up OAuth 1.0a", "How to set up OAuth for an ads account: create an app.", "oauth.setup()"
        ),
        snippet(
            "OAuth token exchange", "Exchange the OAuth request token for an access token.", "oauth.token()"
        ),
        snippet("OAuth signature", "Each request carries an OAuth signature.", "oauth.sign()"),
    ]
    shift = sum(query.encode()) % 20
    return [*oauth, *filler[shift : shift + 17]]


def world_of_ads() -> FakeContext7:
    """Context7 with one clear winner and two others."""
    return FakeContext7(
        libraries=[
            library(LIBRARY, "Twitter Ads API", trustScore=9, benchmarkScore=90),
            library("/someone/ads-widgets", "Ad Widgets", trustScore=3, benchmarkScore=20),
            library("/other/bird", "Bird Watching", trustScore=5, benchmarkScore=30),
        ],
        sections={LIBRARY: ads_sections, "/someone/ads-widgets": ads_sections},
    )


@cache
def _dynamodb() -> Any:
    """One shared client: creating one reads megabytes of service descriptions."""
    return boto3.client("dynamodb", "us-east-1", aws_access_key_id="test", aws_secret_access_key="test")


def needs_of(
    settings: Settings, cache: CacheStore, logger: Log, model: Model | None, voyage_key: str
) -> SearchNeeds:
    """What the function `search` gives its tools, as far as this one uses it."""
    of: Any = SimpleNamespace(cache=cache)
    return SearchNeeds(
        settings, of, of, BackgroundLoop(), logger, model=model, voyage=voyage_embedder(settings, voyage_key)
    )


@contextmanager
def documentation_world(
    context7: FakeContext7 | None = None,
    settings: RetrievalSettings | None = None,
    voyage_key: str = "pa-test",
    claude: bool = True,
) -> Iterator[World]:
    """The search over loopback servers and a cache table. ``claude=False``: no model is called."""
    with ExitStack() as stack:
        servers = (
            stack.enter_context(serve_context7(context7 or world_of_ads())),
            stack.enter_context(serve_voyage(FakeVoyage())),
            stack.enter_context(serve_structured_claude(FakeClaude())),
        )
        stack.enter_context(aws_in_process())
        dynamodb = _dynamodb()
        make_table(dynamodb, "cache")
        now = [NOW]
        logger = RecordingLogger()
        stage_settings = settings_from(
            {"CONTEXT7_BASE_URL": servers[0].url, "VOYAGE_BASE_URL": servers[1].url}
        )
        model = connect(servers[2].url, "sk-test") if claude else None
        needs = needs_of(
            stage_settings, CacheStore(dynamodb, "cache", lambda: now[0]), logger, model, voyage_key
        )
        deps = build_dependencies(needs, servers[0].api_key, settings or PATIENT)
        stack.callback(deps.close)
        yield World(*servers, deps, dynamodb, logger, now)
