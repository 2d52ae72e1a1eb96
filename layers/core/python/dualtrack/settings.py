"""Every setting, declared once: a field of `Settings`. Infrastructure, local stack, commands and documents read it.

A setting's name in the environment and in a stage's file is its field's in capitals. From its entry come the settings
file, the local templates' parameters, the functions' environments, the stored keys and the tables of the documents
(``python -m dualtrack_stack.setting_tables``). A new one is an entry here and the code that reads
``settings.its_name``; what an operator has set is checked by `dualtrack.checked_settings`.

This module is loaded by every function: plain data, and no import that costs time.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field, fields
from functools import cache
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

SettingValue = str | int | float | bool | tuple[str, ...]
_Value = TypeVar("_Value", str, int, float, bool, tuple[str, ...])

Table = Literal["settings", "in the account", "way in", "alarms", "commands"]
"""The table in which the documents list a setting."""

_ADDRESS: Final = r"[^@\s]+@[^@\s]+\.[^@\s]+"
_HTTPS: Final = r"https://[^\s/?#]+(/[^\s?#]*)?(\?[^\s#]*)?"
_PROVIDER_NAME: Final = r"(?!Cognito$)[A-Za-z][A-Za-z0-9-]{0,31}"
_HOST: Final = r"(?=.{4,253}$)([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}"
_CERTIFICATE: Final = r"arn:aws[a-z-]*:acm:[a-z0-9-]+:\d{12}:certificate/[0-9a-f-]{36}"
_TOPIC: Final = r"arn:aws[a-z-]*:sns:[a-z0-9-]+:\d{12}:[A-Za-z0-9_-]{1,256}"


@dataclass(frozen=True, slots=True)
class SettingDeclaration:
    """What an entry says beside its name, type and default.

    ``about``: one line of Markdown. ``used_by``: the functions that get it, `ADMISSION` or `TELLING`; none if the
    deployment or a command uses it. ``table``: where it is documented; ``unset``: the words for its default there.

    What a value must be: ``least`` and ``most`` of a number; ``form``, a pattern of the whole text, in the words
    ``expects``; ``check``, the ``module:name`` of a tuple with the values that there are, or of a function of value and
    settings that returns the value to use or raises ValueError with what is expected. ``or_else``: the setting whose
    value counts if this one is not set. ``example``: a value that is not the default, where none can be guessed.

    ``in_file``: whether it may stand in a stage's file; ``is_local``: in that of the local stack alone. A key
    (``variable`` is its own name in the environment) stands in the Parameter Store; its field is the parameter's name,
    and the functions that use it may read it. ``service``: the setting with the address of the service that the key is
    for. ``used_if``: whether a stage with these settings uses that service; none if it always may. A
    provider of the model is used where it is chosen.
    """

    about: str
    used_by: tuple[str, ...] = ()
    table: Table = "settings"
    unset: str = ""
    least: float | None = None
    most: float | None = None
    form: str = ""
    expects: str = ""
    check: str = ""
    or_else: str = ""
    example: str = ""
    in_file: bool = True
    is_local: bool = False
    variable: str = ""
    service: str = ""
    used_if: Callable[[Settings], bool] | None = None


@dataclass(frozen=True, slots=True)
class Setting:
    """A declared setting. ``name``: in the environment; ``field``: in `Settings`."""

    name: str
    field: str
    type: str
    default: SettingValue
    declared: SettingDeclaration

    @property
    def is_key(self) -> bool:
        """Whether its value is a secret, whose place is the Parameter Store."""
        return bool(self.declared.variable)

    @property
    def parameter(self) -> str:
        """Its parameter in the local template: ``AnthropicBaseUrl``."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    @property
    def stored(self) -> str:
        """The last part of the name of a key's parameter: ``anthropic``."""
        return self.field.removesuffix("_secret")


def setting(default: _Value, about: str, **declared: Any) -> _Value:
    """An entry of `Settings`: see `SettingDeclaration`."""
    value: _Value = field(default=default, metadata={"declared": SettingDeclaration(about, **declared)})
    return value


def key(variable: str, about: str, **declared: Any) -> str:
    """The entry of a key, which functions read by its parameter's name and operators know as ``variable``."""
    return setting("", about, variable=variable, in_file=False, **declared)


ADMISSION: Final = "admission"
"""In place of the functions that admit chats: `api`, `stream` and those of plug-ins."""

INDEXING: Final = "indexing"
"""Functions of plug-ins that make vectors of texts."""
TELLING: Final = "telling"
"""In place of those that tell what is in the outbox, which plug-ins have."""

MODEL: Final = ("turn", "search", "summarise")
"""The functions that ask the model."""

PRICED: Final = (*MODEL, ADMISSION, "abort", "sweep")
"""The functions that count what its calls cost."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings. A function has those that name it, and the others' defaults."""

    # Claude
    anthropic_secret: str = key(
        "ANTHROPIC_API_KEY",
        "Claude",
        used_by=MODEL,
        unset="the offline model",
        form=r"sk-ant-[\w-]{20,}",
        expects="begins with sk-ant-",
        service="anthropic_base_url",
    )
    anthropic_base_url: str = setting(
        "https://api.anthropic.com",
        "a gateway in front of Claude, or a server of your own",
        used_by=MODEL,
        example="https://claude.example",
    )
    dualtrack_provider: str = setting(
        "anthropic",
        "`bedrock`: Claude on [Amazon Bedrock](aws/bedrock.md), with IAM and no key",
        used_by=PRICED,
        check="dualtrack.models.provider:PROVIDERS",
    )
    dualtrack_provider_before: str = setting(
        "",
        "the provider of chats that still run [while it is changed](aws/bedrock.md)",
        check="dualtrack.models.provider:PROVIDERS",
    )
    dualtrack_cache_word: str = setting(
        "own",
        "[who is asked](explain.md#the-services-word-on-its-cache) why a prompt could not be read from the model's cache:"
        " `own`, Anthropic's own address; `on`, also a gateway that passes the field `diagnostics` on; `off`",
        used_by=("turn",),
        form="own|on|off",
        expects="own, on or off",
        example="on",
    )
    bedrock_base_url: str = setting(
        "",
        "a server of your own in place of Bedrock",
        used_by=MODEL,
        unset="Bedrock in the stage's region",
        example="https://bedrock-mantle.eu-west-1.api.aws/anthropic",
    )
    dualtrack_model: str = setting("claude-haiku-5-5", "of turns", used_by=(*MODEL, ADMISSION))
    dualtrack_summary_model: str = setting(
        "",
        "of digests, titles and [summaries that are called for](architecture.md#what-a-summary-costs)",
        used_by=("turn", "summarise", ADMISSION),
        unset="`claude-haiku-5-5` where Anthropic's API serves a `DUALTRACK_MODEL` of ten times its price, else"
        " `DUALTRACK_MODEL`",
        check="dualtrack.models.summary_model:summary_model",
    )
    dualtrack_titles: str = setting(
        "query",
        "a new conversation's title: `query`, the beginning of its first query; `model`,"
        " [a call after its answer](contract.md#conversations) by `DUALTRACK_SUMMARY_MODEL`",
        used_by=("summarise", ADMISSION),
        form="query|model",
        expects="query or model",
        example="model",
    )
    dualtrack_summary_characters: int = setting(
        350,
        "the characters that a summary may have",
        used_by=("turn", "summarise", ADMISSION),
        least=100,
        most=2_000,
    )
    dualtrack_effort: str = setting(
        "",
        "`low`, `medium`, `high`, `xhigh` or `max`: of turns, for models that take it",
        used_by=("turn", "summarise", ADMISSION),
        unset="the service's own",
        check="dualtrack.models.thinking:EFFORTS",
    )
    dualtrack_thinking_tokens: int = setting(
        8_000,
        "room for thinking on top of an agent's `max_tokens`",
        used_by=(*MODEL, ADMISSION),
        least=0,
        # with the largest `max_tokens` of a profile, the most that a model of generation 5 may write
        most=64_000,
    )
    dualtrack_max_cost: float = setting(
        0.0,
        "[US dollars that a chat may cost](credits.md#what-a-chat-may-cost); 0: no cap",
        used_by=("turn", ADMISSION),
        least=0,
        most=1_000,
    )

    dualtrack_model_prices: str = setting(
        "",
        "prices by contract, as JSON: what [`[models]`](project.md#prices-of-models) of the file says",
        used_by=PRICED,
        unset="the list's",
        check="dualtrack.models.contract_prices:checked_prices",
        example='{"claude-opus-5-5":{"input":3.6,"output":18,"cache_read":0.18,"cache_write":4.5}}',
    )

    # Search
    voyage_secret: str = key(
        "VOYAGE_API_KEY",
        "embeddings for documentation search",
        used_by=("search", "ingest", "summarise", INDEXING),
        unset="keywords alone",
        form=r"(pa|al)-[\w-]{10,}",
        expects="begins with pa-",
        service="voyage_base_url",
    )
    voyage_base_url: str = setting(
        "https://api.voyageai.com/v1",
        "where they come from",
        used_by=("search", "ingest", INDEXING),
        example="https://voyage.example",
    )
    dualtrack_embedding_model: str = setting(
        "voyage-3-large", "the model that makes them", used_by=("search", "ingest", INDEXING)
    )
    context7_secret: str = key(
        "CONTEXT7_API_KEY",
        "documentation",
        used_by=("search",),
        unset="fewer requests",
        form=r"ctx7sk-[\w-]{10,}",
        expects="begins with ctx7sk-",
        service="context7_base_url",
    )
    context7_base_url: str = setting(
        "https://context7.com",
        "where it comes from; offline, sample documents",
        used_by=("search",),
        example="https://context7.example",
    )
    dualtrack_course_ranking: str = setting(
        "hybrid",
        "how [course materials](courses.md) are ranked: `hybrid`, `keywords`, `meaning`",
        used_by=("search",),
        check="dualtrack.tools.courses.settings:RANKINGS",
    )
    dualtrack_course_index: str = setting(
        "embedded",
        "where their vectors are searched on AWS: `embedded`,"
        " [`s3vectors`](courses.md#vectors-in-s3-vectors)",
        form="embedded|s3vectors",
        expects="embedded or s3vectors",
        example="s3vectors",
    )

    # Tools
    dualtrack_graph_engine: str = setting(
        "ladybug",
        "`bolt`: the graph of [a server](graph.md#a-server-instead) such as Neo4j",
        used_by=("graph",),
        check="dualtrack.tools.graph.settings:ENGINES",
    )
    dualtrack_graph_url: str = setting(
        "",
        "the server's address",
        used_by=("graph",),
        check="dualtrack.tools.graph.settings:checked_address",
        example="bolt+s://graph.example:7687",
    )
    dualtrack_graph_user: str = setting("neo4j", "its user", used_by=("graph",))
    graph_secret: str = key(
        "DUALTRACK_GRAPH_PASSWORD",
        "its password",
        used_by=("graph",),
        service="dualtrack_graph_url",
        used_if=lambda of: of.dualtrack_graph_engine == "bolt",
    )
    github_mcp_url: str = setting(
        "", "GitHub's [MCP server](mcp.md)", unset="no GitHub tools", example="https://mcp.example"
    )
    github_secret: str = key(
        "GITHUB_TOKEN",
        "the deployment's own token for it",
        used_by=("mcp",),
        form=r"(gh[opsu]_|github_pat_)\w{20,}",
        expects="begins with github_pat_ or ghp_",
        service="github_mcp_url",
    )
    mcp_servers: str = setting(
        "",
        "other [MCP servers](mcp.md#servers-are-settings), as JSON; they add to GitHub's",
        used_by=("mcp",),
        check="dualtrack.tools.mcp.config:checked_servers",
        example='[{"name": "docs", "url": "https://docs.example/mcp"}]',
    )
    dualtrack_profiles: str = setting(
        "",
        "the folder of your own [agents](profiles.md)",
        unset="`profiles/` of the project, if it is there",
        example="profiles",
    )
    otel_exporter_otlp_endpoint: str = setting(
        "",
        "the collector of [chats as OpenTelemetry spans](explain.md#opentelemetry)",
        used_by=("summarise", "abort"),
        check="dualtrack.runtime.otlp:checked_endpoint",
        example="https://collector.example",
    )
    otlp_secret: str = key(
        "OTEL_EXPORTER_OTLP_HEADERS",
        "its headers",
        used_by=("summarise", "abort"),
        service="otel_exporter_otlp_endpoint",
        used_if=lambda of: bool(of.otel_exporter_otlp_endpoint),
    )
    allowed_origins: tuple[str, ...] = setting(
        (),
        "[pages of other origins](architecture.md#who-may-talk-to-the-local-stack) that may call the API",
        used_by=("api", "stream"),
        unset="the stack's own page alone",
        or_else="page_url",
        check="dualtrack.checked_settings:origins",
        example="https://page.example",
    )

    # API keys
    dualtrack_user_headers: tuple[str, ...] = setting(
        (),
        "headers, beside `X-Dualtrack-User`, that may name a service's [end user](keys.md#end-users)",
        used_by=("api", "stream"),
        check="dualtrack.checked_settings:header_names",
        example="X-OpenWebUI-User-Id",
    )
    dualtrack_task_headers: tuple[str, ...] = setting(
        (),
        "headers, beside `X-Dualtrack-Task`, that name a [small task](clients.md#small-tasks)",
        used_by=("stream",),
        check="dualtrack.checked_settings:header_names",
        example="X-OpenWebUI-Task",
    )
    dualtrack_key_requests: int = setting(
        6_000,
        "requests a minute of a [key that acts for end users](keys.md#end-users), together",
        used_by=("api", "stream"),
        least=1,
        most=1_000_000,
    )

    # Streams, and clients of other APIs
    dualtrack_open_streams: int = setting(
        0,
        "[streams that all users together may have open](clients.md#time-and-errors)",
        used_by=("stream",),
        least=0,
        most=1_000_000,
        unset="not limited; `aws up` sets half of the account's concurrency",
    )
    dualtrack_embed_calls: int = setting(
        8,
        "calls of our own embeddings that one search or job makes at a time, each an [execution of the"
        " account's](architecture.md#what-one-user-may-hold-open); `aws up` sets a tenth of the concurrency, 1 to 8",
        used_by=("search", "ingest", INDEXING),
        least=1,
        most=64,
    )
    dualtrack_conversation_headers: tuple[str, ...] = setting(
        (),
        "headers in which [clients of OpenAI's API](clients.md#open-webui-and-librechat) name a conversation",
        used_by=("stream",),
        check="dualtrack.checked_settings:header_names",
        example="X-Chat-Id",
    )

    # Webhooks
    dualtrack_webhook_loopback: bool = setting(
        False,
        "`on`: [webhooks](webhooks.md) may lead to this machine; local stack alone",
        used_by=("api", TELLING),
        is_local=True,
    )
    dualtrack_event_bus: str = setting(
        "",
        "the EventBridge bus that gets a [copy of each event](webhooks.md#copies-on-eventbridge), such as `default`",
        used_by=(ADMISSION, TELLING),
        unset="no copies",
        form=r"[A-Za-z0-9._-]{1,256}",
        expects="the name of an event bus",
        example="default",
    )

    # A stage on AWS
    github_mcp_image: str = setting(
        "",
        "`registry/github/github-mcp-server:v2.1.0@sha256:…`, the official image in GitHub's container registry, or"
        " your mirror of it",
        table="in the account",
        example=f"ghcr.io/github/github-mcp-server:v2.1.0@sha256:{'0' * 64}",
    )
    github_mcp_probe_image: str = setting(
        "",
        "`registry/busybox:1.37@sha256:…`, or any arm64 image with `sh` and `wget`",
        table="in the account",
        example=f"public.ecr.aws/docker/library/busybox:1.37@sha256:{'0' * 64}",
    )
    domain: str = setting(
        "",
        "the stage's own host name. Lead it to the output `DomainTarget` (CNAME or alias)",
        table="way in",
        form=_HOST,
        expects="a host name such as chat.example.org",
        example="chat.example.org",
    )
    certificate_arn: str = setting(
        "",
        "its certificate: with a page in us-east-1, else in the stage's region",
        table="way in",
        form=_CERTIFICATE,
        expects="the ARN of an ACM certificate",
        example="arn:aws:acm:us-east-1:123456789012:certificate/11111111-1111-1111-1111-111111111111",
    )
    page_url: str = setting(
        "",
        "without a domain: the output `PageUrl`, with a second deployment",
        table="way in",
        example="https://d111111abcdef8.cloudfront.net/",
    )
    waf: str = setting(
        "off",
        "`on`: AWS WAF on the API, about $9 a month and $0.60 a million requests. Rate and reputation block; rules"
        " over bodies only count, because they take code for attacks. Its console samples the last three hours. `log`:"
        " what was blocked or counted is also in the log group `aws-waf-logs-dualtrack-<stage>` for a month, without"
        " the token",
        table="way in",
        form="on|log|off",
        expects="on, log or off",
        example="log",
    )
    oidc_issuer: str = setting(
        "",
        "an OpenID Connect provider; it redirects to `https://SIGN_IN_DOMAIN/oauth2/idpresponse`",
        table="way in",
        form=_HTTPS,
        expects="an https address",
        example="https://login.example.org",
    )
    oidc_client_id: str = setting("", "its client", table="way in")
    oidc_secret_name: str = setting(
        "", "the secret in Secrets Manager with the client secret", table="way in"
    )
    oidc_name: str = setting(
        "Oidc",
        "its name on the sign-in page",
        table="way in",
        form=_PROVIDER_NAME,
        expects="letters, digits and hyphens, at most 32, and not Cognito",
        example="Login",
    )
    saml_metadata_url: str = setting(
        "",
        "a SAML provider; assertions go to `https://SIGN_IN_DOMAIN/saml2/idpresponse`, audience"
        " `urn:amazon:cognito:sp:USER_POOL_ID`",
        table="way in",
        form=_HTTPS,
        expects="an https address",
        example="https://directory.example.org/metadata.xml",
    )
    saml_name: str = setting(
        "Saml",
        "its name on the sign-in page",
        table="way in",
        form=_PROVIDER_NAME,
        expects="letters, digits and hyphens, at most 32, and not Cognito",
        example="Directory",
    )
    ses_from: str = setting(
        "",
        "Cognito's mail comes from this address over SES; without it Cognito sends 50 a day",
        table="way in",
        form=_ADDRESS,
        expects="one e-mail address",
        example="dualtrack@example.org",
    )
    ses_identity: str = setting(
        "",
        "the identity that is verified in the stage's region",
        table="way in",
        or_else="ses_from",
        example="example.org",
    )
    alarm_email: str = setting(
        "",
        "one address, subscribed to the stage's own topic",
        table="alarms",
        form=_ADDRESS,
        expects="one e-mail address",
        example="operators@example.org",
    )
    alarm_topic_arn: str = setting(
        "",
        "an SNS topic of the region that every alarm notifies too; its policy must let `cloudwatch.amazonaws.com`"
        " publish",
        table="alarms",
        form=_TOPIC,
        expects="the ARN of a standard SNS topic",
        example="arn:aws:sns:us-east-1:123456789012:on-call",
    )
    alarm_daily_dollars: float = setting(
        0.0,
        "an alarm once models have cost so many dollars within a day: turns, searches and summaries",
        table="alarms",
        unset="no alarm",
        least=0,
        most=1_000_000,
    )
    alarm_key_percent: int = setting(
        0,
        "an alarm while an [API key](../keys.md#when-a-cap-is-near) has used or holds so many percent of a cap, or a"
        " chat does not fit one",
        used_by=("api",),
        table="alarms",
        unset="no alarm",
        least=0,
        most=100,
    )

    # Commands
    dualtrack_token: str = setting(
        "",
        "the ID token for a stack at `--url`; `--token` goes before it",
        table="commands",
        unset="a local stack needs none",
        in_file=False,
    )
    dualtrack_api_key: str = setting(
        "",
        "an [API key](keys.md) for a stack at `--url`, for programs; `--token` and `DUALTRACK_TOKEN` go before it",
        table="commands",
        in_file=False,
    )
    dualtrack_idle_seconds: int = setting(
        600,
        "how long an unused [stack that a command has started](terminal.md#the-stack-behind-it) stays; 0: it ends with"
        " the last command",
        table="commands",
        in_file=False,
        least=0,
        most=86_400,
    )
    dualtrack_drop: tuple[str, ...] = setting(
        (),
        "settings of the last deployment that [this one may drop](aws/settings.md); `all` skips the check",
        table="commands",
        in_file=False,
    )
    dualtrack_cdk: str = setting(
        "",
        "the command of an installed CDK, if npm cannot be reached",
        table="commands",
        unset="`npx aws-cdk@2`",
        in_file=False,
    )

    # What a stack gives its functions (infra/dualtrack_stack/stacks): no operator sets it
    history_table: str = ""
    chats_table: str = ""
    credits_table: str = ""
    cache_table: str = ""
    bodies_bucket: str = ""
    state_machine_arn: str = ""
    corpus_machine_arn: str = ""
    course_vectors: str = ""
    connections_key: str = ""
    embed_function: str = ""
    bedrock_secret: str = ""
    jwks_url: str = ""
    token_issuer: str = ""
    token_audience: str = ""
    user_pool_id: str = ""
    aws_prices: str = ""
    """Prices in dollars by name, as JSON (infra/dualtrack_stack/prices.toml)."""
    function_sizes: str = ""
    """Memory in MB by function, as JSON."""
    tool_variables: tuple[str, ...] = ()
    """The names of the variables that the project sets for its tools."""
    tool_secrets: tuple[str, ...] = ()
    """The parameters of its secrets; the last part of each is the secret's name."""
    # fields of the stage (`dualtrack_stack.stages.StageSettings`)
    token_hours: int = 1
    ledger_retention_days: int = 30
    upgrade_message: str = ""


def _whole(text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise ValueError(text)
    return int(text)


def _number(text: str) -> float:
    if not text.isascii():
        raise ValueError(text)
    return float(text)


def _listed(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


DEFAULTS: Final = Settings()
NOT_SET: Final = "none"
"""The stored value of a key that is not needed: Parameter Store and Secrets Manager do not accept an empty one."""

PARSERS: Final[Mapping[str, Callable[[str], SettingValue]]] = {
    "str": str,
    "int": _whole,
    "float": _number,
    "bool": {"on": True, "off": False}.__getitem__,
    "tuple[str, ...]": _listed,
}
_NAMES: Final = tuple((item.name, item.name.upper(), PARSERS[str(item.type)]) for item in fields(Settings))


def settings_from(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings in the environment; what is not set, or empty, has its default. Raises ValueError for a text that
    is not of the entry's type."""
    values: dict[str, Any] = {}
    for attribute, name, parse in _NAMES:
        if text := environ.get(name):
            try:
                values[attribute] = parse(text)
            except (ValueError, KeyError):
                raise ValueError(f"{name}: {text}") from None
    return Settings(**values)


def what_prices_depend_on() -> tuple[str, str]:
    """The prices by contract and the provider, as this process has them."""
    environ = os.environ
    return environ.get("DUALTRACK_MODEL_PRICES", ""), environ.get("DUALTRACK_PROVIDER", "")


def text_of(value: SettingValue) -> str:
    """A value as `settings_from` reads it."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


@cache
def declared() -> Mapping[str, Setting]:
    """What operators can set, by its name in the environment (a key's is its ``variable``), in the order above."""
    entries = {}
    for item in fields(Settings):
        if said := item.metadata.get("declared"):
            name, default = said.variable or item.name.upper(), cast("SettingValue", item.default)
            entries[name] = Setting(name, item.name, str(item.type), default, said)
    return entries


def variables_of(names: Collection[str]) -> tuple[str, ...]:
    """The variables of a function's environment that settings say it uses. ``names``: its own, and
    `ADMISSION` or `TELLING` if it does that."""
    return tuple(entry.field.upper() for entry in declared().values() if _uses(names, entry))


def keys() -> Mapping[str, Setting]:
    """The entries of keys, by the last part of their parameters' names."""
    return {entry.stored: entry for entry in declared().values() if entry.is_key}


def keys_of_function(names: Collection[str], settings: Settings | None) -> tuple[str, ...]:
    """The keys that a function of these names (`variables_of`) uses in a stage with these settings, by the last part of
    their parameters' names; all that it may use, if the settings are not known yet."""
    return tuple(
        name
        for name, entry in keys().items()
        if _uses(names, entry)
        and (settings is None or entry.declared.used_if is None or entry.declared.used_if(settings))
    )


def _uses(names: Collection[str], entry: Setting) -> bool:
    return any(name in entry.declared.used_by for name in names)


def of_commands(environ: Mapping[str, str] = os.environ) -> Settings:
    """The settings of commands alone, so that no other one of this environment can stop a command."""
    names = [name for name, entry in declared().items() if entry.declared.table == "commands"]
    return settings_from({name: environ.get(name, "") for name in names})


def keys_of(environ: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The keys that are set, by the last part of their parameters' names."""
    given = {entry.stored: environ.get(name, "") for name, entry in declared().items() if entry.is_key}
    return {name: value for name, value in given.items() if value}
