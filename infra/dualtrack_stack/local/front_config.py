"""The front port's configuration; a separate module, because the local stack writes it without serving."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class FrontConfig:
    """Addresses and ids of the deployed stack, and the root's key of its account.

    ``user`` is this machine's user, who gets the token if a request names no user.
    ``origins`` are the pages of other origins that may call the API (the setting ALLOWED_ORIGINS).
    ``profiles`` are the project's own, as their files have them.
    ``used`` is a file that each request touches.
    ``status`` is what ``GET /dev/status`` answers; ``stream_environment`` is the environment that the
    function ``stream`` has on AWS.
    """

    endpoint_url: str
    access_key: str
    secret_key: str = field(repr=False)
    rest_api_id: str
    gateway_stage: str
    user_pool_id: str
    client_id: str
    stream_role_arn: str
    stream_environment: Mapping[str, str]
    user: str
    status: Mapping[str, Any]
    origins: Sequence[str] = ()
    profiles: Sequence[dict[str, Any]] = ()
    used: str = ""
