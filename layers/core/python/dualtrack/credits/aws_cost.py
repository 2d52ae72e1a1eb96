"""What a chat costs on AWS, line by line: one formula for receipts and for `dualtrack aws cost`. Pure.

Prices (dollars) and the functions' memory (MB) are data of the deployment: infra/dualtrack_stack/prices.toml,
infra/dualtrack_stack/stacks/function_specs.py.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

STEP_SECONDS: Final = 0.15
"""Time of a function in addition to what it waits for."""

STREAM_READ_UNITS: Final = 4.5
"""Per second of an open stream while text arrives (docs/measurements.md, "Readers of the event stream")."""

REQUESTS: Final = 2
"""Of a client that follows its chat: its question and one stream, each through CloudFront and the gateway."""

TITLE_WRITES: Final = 4
TITLE_READS: Final = 1
"""DynamoDB units of a conversation's title by the model, counted as those of `bench.chat_cost`."""

LOG_KILOBYTES: Final = 1.0
"""Log volume of an invocation: Lambda's start, end and report as JSON, and a line of ours; of a request: the gateway's
and the function's."""

TRACED: Final = 0.05
TRACES: Final = 2
"""Traces of a chat: those of the gateway and the workflow. X-Ray's default rule samples one request a second and
5 % of the rest."""

PRICES: Final = (
    "lambda_gb_second",
    "lambda_request",
    "dynamodb_write",
    "dynamodb_read",
    "state_transition",
    "api_request",
    "cloudfront_request",
    "log_gb",
    "trace",
)
"""The names of the prices that a chat needs."""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a bill: ``amount`` units at ``price`` dollars each."""

    item: str
    amount: float
    price: float

    @property
    def dollars(self) -> float:
        """The cost of this line."""
        return self.amount * self.price

    def as_data(self) -> dict[str, str | float]:
        """As commands print it with ``--json``."""
        return {"item": self.item, "amount": self.amount, "price": self.price, "dollars": self.dollars}


@dataclass(frozen=True, slots=True)
class AwsUse:
    """A chat's use of AWS. ``functions``: by name, the number of invocations and their total seconds; ``stream``:
    seconds of one open event stream; ``writes``, ``reads``: DynamoDB units, without those of the stream."""

    functions: Mapping[str, tuple[int, float]]
    stream: float
    states: int
    writes: float
    reads: float


def states_of(model_calls: int, tools: int, tool_rounds: int) -> int:
    """State transitions of a workflow without errors (DESIGN 2.2)."""
    return 2 * model_calls + tools + tool_rounds + 1


def work_lines(work: AwsUse, megabytes: Mapping[str, int], price: Mapping[str, float]) -> list[Line]:
    """The cost of a chat that is followed over one stream. ``megabytes``: each function's memory by its name."""
    functions = {**work.functions, "stream": (1, work.stream)}
    invocations = sum(times for times, _ in functions.values())
    return [
        *(
            Line(
                f"Lambda {name}: {times} × {seconds / max(times, 1):.2f} s, {megabytes[name]} MB, GB-s",
                seconds * megabytes[name] / 1024,
                price["lambda_gb_second"],
            )
            for name, (times, seconds) in functions.items()
        ),
        Line("Lambda, invocations", invocations, price["lambda_request"]),
        Line("Step Functions, states", work.states, price["state_transition"]),
        Line("DynamoDB, write units", work.writes, price["dynamodb_write"]),
        Line("DynamoDB, read units", work.reads, price["dynamodb_read"]),
        Line("DynamoDB, read units of the stream", work.stream * STREAM_READ_UNITS, price["dynamodb_read"]),
        Line("API Gateway, requests", REQUESTS, price["api_request"]),
        Line("CloudFront, requests", REQUESTS, price["cloudfront_request"]),
        Line("Logs, GB", (invocations + REQUESTS) * LOG_KILOBYTES / 1e6, price["log_gb"]),
        Line("X-Ray, traces", TRACES * TRACED, price["trace"]),
    ]
