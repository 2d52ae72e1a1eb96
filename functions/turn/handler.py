"""One turn of a chat: calls Claude and records the result."""

from __future__ import annotations

from dualtrack.runtime.imports import collecting_later

with collecting_later():
    from functools import partial
    from typing import TYPE_CHECKING, Any

    from aws_lambda_powertools import Logger
    from aws_lambda_powertools.metrics import MetricUnit
    from dualtrack.chat.agent import AgentDeployment
    from dualtrack.chat.run_turn import run_turn
    from dualtrack.chat.turn_attempt import TurnCallbacks, TurnSettings
    from dualtrack.models.cost_cap import turn_rates
    from dualtrack.models.open_model import open_model
    from dualtrack.models.provider import provider_of
    from dualtrack.models.thinking import Thinking
    from dualtrack.models.trouble import ErrorDetails, named
    from dualtrack.requests import chat_ref
    from dualtrack.runtime.metrics import MODEL_DOLLARS, count, count_cache_miss, count_end, stage_metrics
    from dualtrack.settings import settings_from
    from dualtrack.storage.stores import TurnStores, open_stores

if TYPE_CHECKING:
    from collections.abc import Mapping

    from aws_lambda_powertools.utilities.typing import LambdaContext
    from dualtrack.chat.run_turn import TurnOutcome
    from dualtrack.errors import ModelRefused
    from dualtrack.storage.chats import RecordedTurn
    from dualtrack.tool_values import ToolSpec

logger = Logger()
metrics = stage_metrics()
settings = settings_from()
stores = open_stores(settings, TurnStores)
thinking = Thinking(settings.dualtrack_thinking_tokens, settings.dualtrack_effort)
turns = TurnSettings(
    AgentDeployment(
        settings.dualtrack_model, thinking, settings.dualtrack_provider, settings.dualtrack_summary_model
    ),
    settings.dualtrack_max_cost,
    ErrorDetails(settings.dualtrack_provider, provider_of(settings.dualtrack_provider).key_id(settings)),
)


@logger.inject_lambda_context(correlation_id_path="chat_id")
@metrics.log_metrics
def handler(event: Mapping[str, Any], context: LambdaContext) -> TurnOutcome:  # noqa: ARG001
    """``{"user", "chat_id", "conversation_id", "turn"}`` → ``{"turn", "next", "calls", "seconds"?}``."""
    outcome = run_turn(chat_ref(event), stores, partial(open_model, settings), turns, told)
    if outcome["next"] == "wait":
        metrics.add_metric("BusyModel", MetricUnit.Count, 1)
        logger.warning("The model is busy", turn=outcome["turn"] + 1, seconds=outcome["seconds"])
        return outcome
    metrics.add_metric("Turns", MetricUnit.Count, 1)
    metrics.add_metric("ToolCalls", MetricUnit.Count, len(outcome["calls"]))
    logger.info("Turn recorded", turn=outcome["turn"], next=outcome["next"], calls=len(outcome["calls"]))
    return outcome


def _count_first_text(seconds: float) -> None:
    metrics.add_metric("FirstTextMilliseconds", MetricUnit.Milliseconds, seconds * 1000)


def _log_refusal(error: ModelRefused) -> None:
    """For the operator; what the user sees depends on the stage."""
    logger.error("The model's service refused the request", answer=named(error), said=error.said)


def _count_left_out(tool: ToolSpec, error: ModelRefused) -> None:
    """A server's tool that the service refuses: it stays out until the server lists something else."""
    count("McpToolsLeftOut")
    logger.error(
        "The model's service refused a tool",
        server=tool.server,
        tool=tool.name,
        answer=named(error),
        said=error.said,
    )


def _count_turn(turn: RecordedTurn) -> None:
    """The cost of the turn's model call, for the dashboard; the chat's receipt keeps it."""
    usage, made = turn.usage, turn.made
    if usage is None or made is None:
        return
    if made.unknown_stop:  # `ChatEnds` counts it as `other`
        logger.warning("The model stopped for a reason that is not known here", reason=made.unknown_stop)
    if made.cache:
        count_cache_miss(made.cache.reason)
    figures = {
        "FreshTokens": usage.input_tokens,
        "CacheWriteTokens": usage.cache_write_tokens,
        "CacheReadTokens": usage.cache_read_tokens,
        "OutputTokens": usage.output_tokens,
        "ModelTries": made.tries,
    }
    for name, figure in figures.items():
        metrics.add_metric(name, MetricUnit.Count, figure)
    metrics.add_metric("ModelSeconds", MetricUnit.Seconds, made.seconds)
    metrics.add_metric(MODEL_DOLLARS, MetricUnit.NoUnit, turn_rates(made, "", usage).dollars(usage))


told = TurnCallbacks(_count_first_text, _count_turn, count_end, _log_refusal, _count_left_out)
