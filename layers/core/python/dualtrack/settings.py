"""The environment of a function as one frozen value, read once at import."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings of the functions. Each function has only those that it uses; the others are empty.

    Names are those of the environment variables, in lower case (CONTRACT 2 and ``infra/stacks/function_specs.py``).
    """

    history_table: str = ""
    chats_table: str = ""
    credits_table: str = ""
    cache_table: str = ""
    bodies_bucket: str = ""
    state_machine_arn: str = ""
    corpus_machine_arn: str = ""
    course_vectors: str = ""
    connections_key: str = ""
    allowed_origins: str = ""
    anthropic_base_url: str = ""
    anthropic_secret: str = ""
    bedrock_base_url: str = ""
    bedrock_secret: str = ""
    dualtrack_provider: str = ""
    dualtrack_model: str = ""
    dualtrack_summary_model: str = ""
    dualtrack_summary_characters: str = ""
    dualtrack_effort: str = ""
    dualtrack_thinking_tokens: str = ""
    dualtrack_max_cost: str = ""
    error_details: str = ""
    upgrade_message: str = ""
    """The number of a release (api/writes.py)."""
    otel_exporter_otlp_endpoint: str = ""
    otlp_secret: str = ""
    dualtrack_graph_engine: str = ""
    dualtrack_graph_url: str = ""
    dualtrack_graph_user: str = ""
    graph_secret: str = ""
    jwks_url: str = ""
    token_issuer: str = ""
    token_audience: str = ""
    user_pool_id: str = ""
    ledger_retention_days: str = ""
    token_hours: str = ""
    aws_prices: str = ""
    """Prices in dollars by name, as JSON (infra/prices.toml)."""
    function_sizes: str = ""
    """Memory in MB by function, as JSON."""


def split_origins(text: str) -> list[str]:
    """The origins of ``ALLOWED_ORIGINS``, comma-separated: ``https://a.example,https://b.example``."""
    return [part.strip() for part in text.split(",") if part.strip()]


def settings_from(environ: Mapping[str, str]) -> Settings:
    """The settings; variables that are not set stay empty."""
    return Settings(**{field.name: environ.get(field.name.upper(), "") for field in fields(Settings)})
