"""The model of a stack under test: a fake of Anthropic's Messages API, or of Bedrock's endpoint with
``DUALTRACK_TEST_PROVIDER=bedrock`` (docs/aws/bedrock.md).
"""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from dualtrack_stack.local.offline_model.server import serve_offline_model

from tests.servers.bedrock import Bedrock, serve_bedrock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.local.offline_model.server import OfflineModel

ON_BEDROCK: Final = os.environ.get("DUALTRACK_TEST_PROVIDER") == "bedrock"


@contextmanager
def serve_model() -> Iterator[OfflineModel]:
    """Run it in a thread. Fails at the end of the block if Bedrock's endpoint has refused a request."""
    if not ON_BEDROCK:
        with serve_offline_model() as model:
            yield model
        return
    with serve_bedrock() as bedrock:
        yield bedrock
        assert bedrock.gate.refusals == []


def model_settings(model: OfflineModel) -> dict[str, str]:
    """Settings of a stack that uses it; Anthropic's include an API key."""
    if isinstance(model, Bedrock):
        return model.settings
    return {
        "ANTHROPIC_API_KEY": "test-anthropic-key",
        "ANTHROPIC_BASE_URL": model.url,
        "DUALTRACK_CACHE_WORD": "on",
    }
