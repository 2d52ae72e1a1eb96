"""Takes a case through its chat: the library's own turns, the project's tools, the ledger's credits; in memory."""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Final

from dualtrack.errors import ApiError
from dualtrack.tool_values import ToolResult

from dualtrack_stack.evals.checks import Finding, MadeCall, Outcome, findings, fits
from dualtrack_stack.evals.judge import judge
from dualtrack_stack.evals.tape import BadTape
from dualtrack_stack.local.testing.agents import project_at
from dualtrack_stack.local.testing.local_chat import conversation
from dualtrack_stack.local.testing.tools import specs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from dualtrack.answers import TokenKind
    from dualtrack.profiles import Profile
    from dualtrack.tools.running import Execute, Running

    from dualtrack_stack.evals.case import Checks, GivenResult, Turn
    from dualtrack_stack.evals.files import FoundCase
    from dualtrack_stack.evals.services import Service, Services
    from dualtrack_stack.local.testing.local_chat import Answer, LocalChat

CREDITS: Final = 1_000_000
"""What the user of a case has: a case fails by its own limits, not by a plan's."""
_MOST_DECISIONS: Final = 50
_KINDS: Final[tuple[TokenKind, ...]] = ("fresh", "cache_write", "cache_read", "output")


@dataclass(frozen=True, slots=True)
class Exchange:
    """A message and what came of it."""

    ask: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class CaseResult:
    """``by``: who answered; ``left_out``: checks that could not be made; ``drifted``: requests of a recorded case that
    are not as they were recorded; ``judge_dollars``: what judging cost, beside the outcome's own."""

    id: str
    file: str
    line: int
    by: str
    outcome: Outcome
    findings: Sequence[Finding]
    exchanges: Sequence[Exchange] = ()
    left_out: Sequence[str] = ()
    drifted: int = 0
    judge_dollars: float = 0.0

    @property
    def passed(self) -> bool:
        """Whether every check that was made has passed."""
        return all(finding.passed for finding in self.findings)


def run_case(found: FoundCase, services: Services, *, profile: str = "") -> CaseResult:
    """What comes of a case; ``profile``: in place of its own. Raises `dualtrack_stack.evals.services.NoKey`."""
    try:
        service = services.of(found.id)
    except FileNotFoundError as missing:
        return _broken(
            found, "recorded", f"there is no recording {missing}: make it with --answers live --record"
        )
    except BadTape as wrong:
        return _broken(found, "recorded", str(wrong))
    logging.getLogger("dualtrack_stack.local.testing.workflow").setLevel(logging.CRITICAL)
    made: list[Finding] = []
    left_out: list[str] = []
    exchanges: list[Exchange] = []
    judged_dollars = 0.0
    name = services.model or service.served.model
    elsewhere = tools_elsewhere(services.root, [given.tool for given in found.case.results])
    try:
        with conversation(
            profile or found.profile,
            service.served,
            user="eval",
            given_credits=CREDITS,
            change=with_model(services.model),
            around=standing_in(found.case.results),
        ) as chat:
            for turn in found.case.turns:
                outcome = _asked(chat, turn, found.case.results, elsewhere)
                exchanges.append(Exchange(turn.ask, outcome))
                if found.case.turn:
                    place = f"message {len(exchanges)}: "
                    made += [replace(one, check=place + one.check) for one in findings(turn, outcome)]
                    judged_dollars += _judged(turn, service, name, exchanges, made, left_out)
                if outcome.status == "failed":
                    break
    except ApiError as refused:
        return _broken(found, service.kind, f"refused: {refused}")
    total = exchanges[0].outcome
    for exchange in exchanges[1:]:
        total = total.then(exchange.outcome)
    made += findings(found.case, total)
    if len(exchanges) < len(found.case.turns):
        made.append(
            Finding("every message is asked", passed=False, instead=f"it ended with message {len(exchanges)}")
        )
    judged_dollars += _judged(found.case, service, name, exchanges, made, left_out)
    services.keep(found.id, service)
    return CaseResult(
        found.id,
        found.file,
        found.line,
        service.kind,
        total,
        tuple(made),
        tuple(exchanges),
        tuple(left_out),
        service.drifted,
        judged_dollars,
    )


def standing_in(results: Sequence[GivenResult]) -> Callable[[Execute], Execute]:
    """Calls that have a given result get it; all others run."""

    def around(run: Execute) -> Execute:
        def execute(running: Running) -> ToolResult:
            given = _given(results, running.call.tool, running.call.input)
            return ToolResult(given.text, is_error=given.is_error) if given else run(running)

        return execute

    return around


def _given(results: Sequence[GivenResult], tool: str, given: Mapping[str, Any]) -> GivenResult | None:
    return next((one for one in results if fits(one, tool, given)), None)


def with_model(name: str) -> Callable[[Profile], Profile]:
    """A change of an agent: this model, if one is named."""
    return lambda agent: replace(agent, model=name) if name else agent


def tools_elsewhere(root: Path, names: Iterable[str]) -> list[dict[str, Any]]:
    """Those of the tools that are neither the project's nor the library's, a server's for instance, as a client would
    bring them: the model may call them, and their results come from outside."""
    known = specs_of(project_at(root), {})
    return [
        {"name": name, "description": "A tool whose results are given.", "input_schema": {"type": "object"}}
        for name in dict.fromkeys(names)
        if name not in known
    ]


def _asked(
    chat: LocalChat, turn: Turn, results: Sequence[GivenResult], elsewhere: Sequence[Mapping[str, Any]]
) -> Outcome:
    """The chat up to its end, or to a pause in which nothing is to be decided. Raises `ApiError`."""
    began = time.perf_counter()
    answer = chat.ask(turn.ask, output=turn.schema_, tools=elsewhere)
    for _ in range(_MOST_DECISIONS):
        waiting = answer.pause.calls if answer.pause else ()
        approvals = [call.id for call in waiting if call.kind == "approval"]
        outside = next((call for call in waiting if call.kind == "client_tool"), None)
        if outside:
            given = _given(results, outside.name, outside.input)
            said, is_error = (
                (given.text, given.is_error) if given else ("There is no result for this input.", True)
            )
            answer = chat.decide(outside.id, result=said, is_error=is_error)
        elif turn.decide and approvals:
            answer = chat.decide(*approvals, approve=turn.decide == "approve")
        else:
            break
    return _outcome(chat, answer, time.perf_counter() - began)


def made_calls(answer: Answer) -> tuple[MadeCall, ...]:
    """The calls of a chat that has been taken."""
    return tuple(MadeCall(call.name, call.input, call.result, call.is_error) for call in answer.calls)


def _outcome(chat: LocalChat, answer: Answer, seconds: float) -> Outcome:
    receipt = chat.receipt(answer)
    totals = receipt["totals"]
    return Outcome(
        text=answer.text,
        status=answer.status,
        error=answer.error,
        calls=made_calls(answer),
        credits=answer.credits,
        dollars=totals["model_dollars"],
        tokens=sum(totals["usage"][kind] for kind in _KINDS),
        turns=sum(line["calls"] for line in receipt["lines"] if line["kind"] == "model"),
        seconds=seconds,
    )


def _judged(
    checks: Checks,
    service: Service,
    name: str,
    exchanges: Sequence[Exchange],
    made: list[Finding],
    left_out: list[str],
) -> float:
    """The rubric's verdict, among the findings; what it cost."""
    if not checks.judge:
        return 0.0
    if service.judge is None:
        left_out.append(f"judge: {checks.judge} (the offline model can judge nothing)")
        return 0.0
    said = judge(service.judge, name, checks.judge, exchanges[-1].ask, exchanges[-1].outcome.text)
    made.append(said.finding(checks.judge))
    return said.dollars


def _broken(found: FoundCase, by: str, problem: str) -> CaseResult:
    nothing = Outcome("", "failed", problem)
    return CaseResult(
        found.id, found.file, found.line, by, nothing, (Finding("runs", passed=False, instead=problem),)
    )
