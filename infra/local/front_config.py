"""What the front port has to know; apart from it, because the local stack writes it without serving."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class FrontConfig:
    """Addresses and ids of the deployed stack.

    ``status`` is what ``GET /dev/status`` answers; ``stream_environment`` is the environment that the
    function ``stream`` has on AWS.
    """

    endpoint_url: str
    rest_api_id: str
    gateway_stage: str
    user_pool_id: str
    client_id: str
    stream_role_arn: str
    stream_environment: Mapping[str, str]
    status: Mapping[str, Any]
