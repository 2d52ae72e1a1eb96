"""Claude at Anthropic through the SDK: the client that takes a key, and what only Anthropic's own address is asked."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from dualtrack.models.anthropic_sdk import Anthropic, anthropic
from dualtrack.models.messages_api import Claude
from dualtrack.runtime.secrets import needed
from dualtrack.settings import NOT_SET

if TYPE_CHECKING:
    from dualtrack.settings import Settings

_OWN_HOST: Final = "api.anthropic.com"


def client_for(settings: Settings) -> Claude:
    """With the current key. Raises `MissingKey`."""
    asks = is_asked(settings.anthropic_base_url, settings.dualtrack_cache_word)
    return connect(settings.anthropic_base_url, needed(settings.anthropic_secret), asks_about_cache=asks)


@cache
def connect(base_url: str, api_key: str, *, asks_about_cache: bool = False) -> Claude:
    """A client for the base URL, one per key; it sends no request yet. It follows no redirect: the key is only for
    this address. A self-hosted server may need no key, but the SDK does not accept an empty one.
    """
    http_client = anthropic.DefaultHttpxClient(base_url=base_url, follow_redirects=False)
    client = Anthropic(base_url=base_url, api_key=api_key or NOT_SET, max_retries=0, http_client=http_client)
    return Claude(client, asks_about_cache)


def is_asked(base_url: str, setting: str) -> bool:
    """Whether the service at this address is asked about its cache (`dualtrack.models.cache_word`): only Anthropic's
    own is known to take the field. ``setting``: ``own``, ``on`` or ``off``."""
    return setting == "on" or (setting == "own" and urlsplit(base_url).hostname == _OWN_HOST)
