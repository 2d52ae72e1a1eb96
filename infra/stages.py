"""Stages: the same stacks with different settings (DESIGN 2.12, 8)."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - what checks a settings file reads the fields' types
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, ClassVar, Final, Literal, get_args
from urllib.parse import urlsplit

from dualtrack.memory.summaries import characters_from
from dualtrack.models.cost_cap import cap_from
from dualtrack.models.providers import ANTHROPIC, PROVIDERS
from dualtrack.models.thinking import DEFAULT_ROOM, EFFORTS
from dualtrack.tools.courses.settings import DEFAULT, RANKINGS
from dualtrack.tools.graph.settings import BOLT, DEFAULT_USER, address_from, engine_from
from dualtrack.tools.mcp.config import dump_servers, github_server, parse_servers, together

Releasing = Literal["in_place", "at_once", "canary", "linear"]
CourseIndex = Literal["embedded", "s3vectors"]
COURSE_INDEXES: Final[tuple[CourseIndex, ...]] = get_args(CourseIndex)
DEFAULT_MODEL: Final = "claude-haiku-5-5"
MAX_THINKING_TOKENS: Final = 64_000
"""Together with the largest ``max_tokens`` of a profile, the most that a model of generation 5 may write."""
MAX_LEDGER_RETENTION_DAYS: Final = 36_500
DEFAULT_EMBEDDING_MODEL: Final = "voyage-3-large"
SECRET_NAMES: Final = ("anthropic", "voyage", "context7", "github", "otlp", "graph")
"""The keys of services that a stage's functions look for in the Parameter Store."""
SECRET_NOT_SET: Final = "none"  # noqa: S105 - the word that says that there is none
"""The placeholder of a missing key (`dualtrack.runtime.secrets.NOT_SET`)."""


@dataclass(frozen=True, slots=True)
class Services:
    """Addresses and models of the outbound services: plain values, never secrets.

    ``None`` (stage ``local`` alone) leaves a value to a CloudFormation parameter, so the local stack
    changes it without a new synthesis. On AWS the values are written into the template, because a
    published function version keeps the environment it was published with and a changed parameter
    alone would publish no new one.
    """

    provider: str | None
    anthropic_base_url: str | None
    bedrock_base_url: str | None
    voyage_base_url: str | None
    context7_base_url: str | None
    model: str | None
    summary_model: str | None
    summary_characters: str | None
    effort: str | None
    thinking_tokens: str | None
    max_cost: str | None
    embedding_model: str | None
    course_ranking: str | None
    graph_engine: str | None
    graph_url: str | None
    graph_user: str | None
    mcp_servers: str | None
    allowed_origins: str | None
    otlp_endpoint: str | None
    provider_before: str | None = ""
    """The previous provider, whose chats may still run: it keeps its permission, but is in no function's
    environment."""

    @property
    def providers(self) -> frozenset[str]:
        """The providers that may be called; all of them if a parameter decides."""
        named = PROVIDERS if self.provider is None else (self.provider, self.provider_before)
        return frozenset(name for name in named if name)

    @property
    def may_ask_graph_server(self) -> bool:
        """Whether the graph may be on a server; yes if a parameter decides."""
        return self.graph_engine in (None, BOLT)


PARAMETER_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "provider": "Provider",
        "anthropic_base_url": "AnthropicBaseUrl",
        "bedrock_base_url": "BedrockBaseUrl",
        "voyage_base_url": "VoyageBaseUrl",
        "context7_base_url": "Context7BaseUrl",
        "model": "Model",
        "summary_model": "SummaryModel",
        "summary_characters": "SummaryCharacters",
        "effort": "Effort",
        "thinking_tokens": "ThinkingTokens",
        "max_cost": "MaxCost",
        "embedding_model": "EmbeddingModel",
        "course_ranking": "CourseRanking",
        "graph_engine": "GraphEngine",
        "graph_url": "GraphUrl",
        "graph_user": "GraphUser",
        "mcp_servers": "McpServers",
        "allowed_origins": "AllowedOrigins",
        "otlp_endpoint": "OtlpEndpoint",
    }
)
"""The local template's parameters, by their field of `Services`."""

AS_PARAMETERS: Final = Services(**dict.fromkeys(PARAMETER_NAMES))


def services_from(environment: Mapping[str, str]) -> Services:
    """The services in the settings of CONTRACT 2, by default the public ones.

    Raises ValueError for an invalid setting.
    """
    model = environment.get("DUALTRACK_MODEL") or DEFAULT_MODEL
    return Services(
        provider=_provider(environment, "DUALTRACK_PROVIDER") or ANTHROPIC,
        provider_before=_provider(environment, "DUALTRACK_PROVIDER_BEFORE"),
        bedrock_base_url=environment.get("BEDROCK_BASE_URL", ""),
        anthropic_base_url=environment.get("ANTHROPIC_BASE_URL") or "https://api.anthropic.com",
        voyage_base_url=environment.get("VOYAGE_BASE_URL") or "https://api.voyageai.com/v1",
        context7_base_url=environment.get("CONTEXT7_BASE_URL") or "https://context7.com",
        model=model,
        summary_model=environment.get("DUALTRACK_SUMMARY_MODEL") or model,
        summary_characters=_summary_characters(environment),
        effort=_effort(environment),
        thinking_tokens=_thinking_tokens(environment),
        max_cost=_max_cost(environment),
        embedding_model=environment.get("DUALTRACK_EMBEDDING_MODEL") or DEFAULT_EMBEDDING_MODEL,
        course_ranking=_course_ranking(environment),
        graph_engine=_graph_engine(environment),
        graph_url=_graph_url(environment),
        graph_user=environment.get("DUALTRACK_GRAPH_USER") or DEFAULT_USER,
        mcp_servers=_mcp_servers(environment),
        allowed_origins=environment.get("ALLOWED_ORIGINS") or origin_of(environment.get("PAGE_URL") or ""),
        otlp_endpoint=_otlp_endpoint(environment),
    )


def _provider(environment: Mapping[str, str], name: str) -> str:
    provider = environment.get(name, "")
    if provider and provider not in PROVIDERS:
        raise ValueError(f"{name}: {provider} is none of {', '.join(PROVIDERS)}")
    return provider


def _summary_characters(environment: Mapping[str, str]) -> str:
    try:
        return str(characters_from(environment.get("DUALTRACK_SUMMARY_CHARACTERS", "")))
    except ValueError as error:
        raise ValueError(f"DUALTRACK_SUMMARY_CHARACTERS: {error}") from None


def _effort(environment: Mapping[str, str]) -> str:
    """Empty for the service's default."""
    effort = environment.get("DUALTRACK_EFFORT", "")
    if effort and effort not in EFFORTS:
        raise ValueError(f"DUALTRACK_EFFORT: {effort} is none of {', '.join(EFFORTS)}")
    return effort


def _course_ranking(environment: Mapping[str, str]) -> str:
    """How the search in course materials ranks."""
    ranking = environment.get("DUALTRACK_COURSE_RANKING") or DEFAULT.ranking
    if ranking not in RANKINGS:
        raise ValueError(f"DUALTRACK_COURSE_RANKING: {ranking} is none of {', '.join(RANKINGS)}")
    return ranking


def _graph_engine(environment: Mapping[str, str]) -> str:
    try:
        return engine_from(environment.get("DUALTRACK_GRAPH_ENGINE", ""))
    except ValueError as error:
        raise ValueError(f"DUALTRACK_GRAPH_ENGINE: {error}") from None


def _graph_url(environment: Mapping[str, str]) -> str:
    """Empty for the embedded engine."""
    try:
        return address_from(_graph_engine(environment), environment.get("DUALTRACK_GRAPH_URL", ""))
    except ValueError as error:
        raise ValueError(f"DUALTRACK_GRAPH_URL: {error}") from None


def course_index_from(environment: Mapping[str, str]) -> CourseIndex:
    """``DUALTRACK_COURSE_INDEX``: where the vectors of course materials are searched. Raises ValueError for another
    value."""
    chosen = environment.get("DUALTRACK_COURSE_INDEX") or "embedded"
    for kind in COURSE_INDEXES:
        if kind == chosen:
            return kind
    raise ValueError(f"DUALTRACK_COURSE_INDEX: {chosen} is none of {', '.join(COURSE_INDEXES)}")


def _thinking_tokens(environment: Mapping[str, str]) -> str:
    tokens = environment.get("DUALTRACK_THINKING_TOKENS") or str(DEFAULT_ROOM)
    if not (tokens.isascii() and tokens.isdecimal() and int(tokens) <= MAX_THINKING_TOKENS):
        raise ValueError(f"DUALTRACK_THINKING_TOKENS: must be a number from 0 to {MAX_THINKING_TOKENS}")
    return tokens


def _max_cost(environment: Mapping[str, str]) -> str:
    """Dollars a chat; 0 for no cap."""
    try:
        return f"{cap_from(environment.get('DUALTRACK_MAX_COST', '')):g}"
    except ValueError as error:
        raise ValueError(f"DUALTRACK_MAX_COST: {error}") from None


def _otlp_endpoint(environment: Mapping[str, str]) -> str:
    """A collector's base address, to which ``/v1/traces`` is added; empty for none."""
    endpoint = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT", "")
    try:
        parts = urlsplit(endpoint)
        has_port = parts.port is None or parts.port > 0
    except ValueError:
        has_port = False
    is_address = has_port and parts.scheme in ("http", "https") and parts.hostname and endpoint.isascii()
    if endpoint and (not is_address or "@" in parts.netloc or parts.query or parts.fragment):
        raise ValueError(
            "OTEL_EXPORTER_OTLP_ENDPOINT: must be http(s)://host, without user, ? and #; /v1/traces is added"
        )
    return endpoint


def origin_of(url: str) -> str:
    """The origin of an address, ``https://page.example``; empty for none."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.netloc else ""


def _mcp_servers(environment: Mapping[str, str]) -> str:
    """The servers of ``MCP_SERVERS``, behind GitHub's if its address is given."""
    url = environment.get("GITHUB_MCP_URL")
    github = (github_server(url),) if url else ()
    return dump_servers(together((*github, *parse_servers(environment.get("MCP_SERVERS") or ""))))


def server_names(environment: Mapping[str, str]) -> tuple[str, ...]:
    """The MCP servers that a profile may name. Raises ValueError for an invalid setting."""
    own = ("github",) if environment.get("GITHUB_MCP_IMAGE") else ()
    return (*own, *(server.name for server in parse_servers(_mcp_servers(environment))))


@dataclass(frozen=True, slots=True)
class StageSettings:
    """Settings that differ between stages: the table ``[stage]`` of a stage's settings file (`infra.settings`).

    ``keep_data``: tables, bucket, keys and user pool survive the deletion of their stack, tables and pool are protected
    against deletion, and tables have point-in-time recovery.
    ``built_layers``: dependency layers are built by uv for Lambda; otherwise only the library itself is a layer and the
    dependencies are those of the machine (local).
    ``encrypted_transport``: storage refuses plain HTTP, which is all that the emulator speaks (local).
    ``request_rate``, ``request_burst``: the gateway's limits, requests a second for all users together.
    ``reserved_concurrency``: executions that Lambda reserves for a function, which are its limit too:
    ``{"abort": 5, "sweep": 2, "api": 50}`` keeps chats and event streams from using up what ends and answers them.
    Empty by default: Lambda refuses a reservation that leaves an account less than 100 unreserved, and a new account
    often has 10 in all.
    ``ledger_retention_days``: how long the ledger of an erased user is kept, without the person (docs/privacy.md).
    ``alarms``: raise alarms to the stack's topic.
    ``page``: CloudFront in front of the page and the API, which then share one origin (locally the front port does
    that); without it the API has its own address, and the stage does not need CloudFront, which refuses accounts that
    AWS has not verified yet.
    ``empties_buckets``: a bucket is emptied when its stack is deleted, else the deletion fails.
    ``password_sign_in``: a client may send a user's password to Cognito itself, as scripts and tests do; otherwise
    sign-in is by the sign-in page or SRP.
    ``mfa_required``: every user of the pool's own needs a second factor.
    ``course_index``: where the vectors of course materials are searched (docs/courses.md); with ``s3vectors`` the
    stage has a vector bucket.
    ``error_details``: if the model's service refuses a request, the failed chat shows its user the service's message
    and the setting to check; otherwise they are only in the log.
    ``upgrade_message``: what a user without credits is told about getting more (``upgrade.message`` of a 402), with
    ``{user}`` for the user's id; empty for the prices of plan and pack.
    ``release``: how new chats move to a new release (docs/releases.md). With ``in_place`` the machines have no versions
    and executions call the functions' aliases (local: the emulator's CloudFormation supports nothing else); otherwise
    the machines have versions and an alias. With ``at_once`` the alias moves at once; with ``canary`` the new version
    gets ``release_percent`` of the chats for ``release_minutes`` and then all, with ``linear`` as much more every
    ``release_minutes``; both go back on an alarm.
    ``snap_start``: the functions that Lambda restores from a snapshot instead of a cold start; each of their versions
    is billed as long as it exists (docs/releases.md).
    """

    __pydantic_config__: ClassVar[Mapping[str, Any]] = {"extra": "forbid", "strict": True}

    name: Literal["local", "staging", "prod"]
    keep_data: bool
    built_layers: bool
    log_retention_days: int
    encrypted_transport: bool
    request_rate: int
    request_burst: int
    token_hours: int
    ledger_retention_days: int
    alarms: bool
    log_level: str
    error_details: bool
    page: bool
    empties_buckets: bool
    password_sign_in: bool
    mfa_required: bool
    callback_urls: tuple[str, ...]
    course_index: CourseIndex = "embedded"
    reserved_concurrency: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    release: Releasing = "in_place"
    release_percent: int = 20
    release_minutes: int = 10
    snap_start: tuple[str, ...] = ()
    upgrade_message: str = ""

    def __post_init__(self) -> None:
        """Raises ValueError for an invalid retention or release."""
        self._check_release()
        if not 1 <= self.ledger_retention_days <= MAX_LEDGER_RETENTION_DAYS:
            raise ValueError(
                f"ledger_retention_days of stage {self.name}: must be from 1 to {MAX_LEDGER_RETENTION_DAYS} days,"
                f" not {self.ledger_retention_days}"
            )

    def _check_release(self) -> None:
        """The steps' limits are those of CloudFormation's AWS::StepFunctions::StateMachineAlias."""
        if not (1 <= self.release_percent <= 99 and 1 <= self.release_minutes <= 2_100):
            raise ValueError(
                f"release_percent and release_minutes of stage {self.name}: must be from 1 to 99 and from 1 to 2100,"
                f" not {self.release_percent} and {self.release_minutes}"
            )
        if self.moves_by_steps and not self.alarms:
            raise ValueError(
                f"release of stage {self.name}: {self.release} goes back on alarms, so it needs alarms = true"
            )

    @property
    def has_versions(self) -> bool:
        """Whether each release publishes versions of the machines, and an execution stays on one."""
        return self.release != "in_place"

    @property
    def moves_by_steps(self) -> bool:
        return self.release in ("canary", "linear")

    def asset_name(self, name: str) -> str | None:
        """A fixed name for an asset, or None to name it by its content.

        Local templates have fixed names, so they do not change with the code; the local stack replaces them by the
        content's hash when it deploys.
        """
        return None if self.built_layers else name

    @property
    def prefix(self) -> str:
        """The beginning of every physical name, ``dualtrack-staging``."""
        return f"dualtrack-{self.name}"
