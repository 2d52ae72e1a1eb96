"""Claude on Amazon Bedrock through the SDK's own client: an implementation of `dualtrack.models.protocol.Model`.

It is the same API (`dualtrack.models.messages_api`) with three differences from Anthropic's own service: requests are
signed with the function's role (SigV4, service ``bedrock-mantle``), models have other ids, and there is no structured
output: the endpoint refuses ``output_config.format`` and ``strict`` tools with "Extra inputs are not permitted". An
answer in a form is therefore the input of a tool that the model has to call.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Final

import boto3

from dualtrack.chat_times import LEAST_CALL_SECONDS
from dualtrack.errors import ModelUnavailable
from dualtrack.models.anthropic_sdk import anthropic
from dualtrack.models.messages_api import Claude, errors_of_the_service, usage_of
from dualtrack.models.protocol import ignore
from dualtrack.models.providers.bedrock.provider import SIGNING, bedrock_model
from dualtrack.models.thinking import thinks
from dualtrack.runtime.on_demand import on_demand
from dualtrack.runtime.secrets import MissingKey, secret

with on_demand("anthropic.lib.bedrock", "anthropic.resources.beta"):
    from anthropic.lib.bedrock import AnthropicBedrockMantle

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from dualtrack.models.protocol import Form
    from dualtrack.models.turn import FirstByte, ModelReply, Usage
    from dualtrack.settings import Settings

_ANSWER: Final = "answer"
_CALL_IT: Final = "Give your answer by calling the tool `answer`, once, and write nothing else."


@dataclass(frozen=True, slots=True)
class BedrockClaude:
    """A client of the Messages API on Bedrock."""

    claude: Claude

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """A turn, as `Claude.stream`."""
        return self.claude.stream(_named(request), on_text, seconds, on_first, on_thought)

    def complete(self, request: Mapping[str, Any], seconds: float) -> tuple[str, Usage]:
        """A short answer, as `Claude.complete`."""
        return self.claude.complete(_named(request), seconds)

    def parse(self, request: Mapping[str, Any], form: type[Form], seconds: float) -> tuple[Form, Usage]:
        """An answer in the form, which is the input of the only tool, and its tokens."""
        with errors_of_the_service():
            answer = self.claude.message(_by_tool(_named(request), form), seconds)
            inputs = [block.input for block in answer.content if block.type == "tool_use"]
            if answer.stop_reason != "tool_use" or len(inputs) != 1:
                raise ModelUnavailable(
                    f"The model stopped with {answer.stop_reason} and {len(inputs)} answers."
                )
            return form.model_validate(inputs[0]), usage_of(answer)


def client_for(settings: Settings) -> BedrockClaude:
    """With the function's role, on the local stack with the user's credentials. Raises `MissingKey`."""
    return connect(settings.bedrock_base_url, secret(settings.bedrock_secret))


@cache
def connect(base_url: str, credentials: str = "") -> BedrockClaude:
    """A client for the base URL; it sends no request yet. It follows no redirect: a signature is for one address.

    ``credentials``: JSON with ``aws_access_key``, ``aws_secret_key`` and ``aws_session_token``; the default is those of
    the environment, on AWS the function's role. Raises `MissingKey` if there are none.
    """
    keys = json.loads(credentials) if credentials else {}
    if not keys and boto3.Session().get_credentials() is None:
        raise MissingKey(
            "There are no AWS credentials to sign requests to Amazon Bedrock with: neither a role nor"
            " AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY."
        )
    http_client = anthropic.DefaultHttpxClient(base_url=base_url, follow_redirects=False)
    client = AnthropicBedrockMantle(
        base_url=base_url,
        aws_region=SIGNING.region_of(base_url) or None,
        max_retries=0,
        http_client=http_client,
        **keys,
    )
    return BedrockClaude(Claude(client))


def _named(request: Mapping[str, Any]) -> dict[str, Any]:
    return {**request, "model": bedrock_model(request["model"])}


def _by_tool(request: Mapping[str, Any], form: type[Form]) -> dict[str, Any]:
    """The request with the form as its only tool. A model that thinks in this call is only asked to use it,
    because it cannot be forced to ("Thinking may not be enabled when tool_choice forces tool use")."""
    is_off = request.get("thinking", {}).get("type") == "disabled"
    is_forced = is_off or not thinks(request["model"])
    choice = {"type": "tool", "name": _ANSWER} if is_forced else {"type": "auto"}
    tool = {"name": _ANSWER, "description": form.__doc__ or "", "input_schema": form.model_json_schema()}
    with_tool = {**request, "tools": [tool], "tool_choice": {**choice, "disable_parallel_tool_use": True}}
    return (
        with_tool
        if is_forced
        else {**with_tool, "system": f"{request.get('system', '')}\n{_CALL_IT}".strip()}
    )
