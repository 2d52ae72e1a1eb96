"""A recorded conversation once more, within the process: up to a step as it was recorded, from there on with today's
tools, prompt and model. Nothing of it is charged or stored, and no tool that changes something runs unasked.

    before the step   the recorded answers of the model, the recorded results of its tools
    from the step on  the model answers, tools run; those that change something only if `Ask` says yes
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dualtrack.chat_times import LEAST_CALL_SECONDS
from dualtrack.ids import parse_record_id
from dualtrack.models.protocol import ignore
from dualtrack.tool_values import ToolResult

from dualtrack_stack.evals.checks import shown
from dualtrack_stack.evals.make_case import turn_calls
from dualtrack_stack.evals.run import CREDITS, made_calls, tools_elsewhere, with_model
from dualtrack_stack.evals.tape import Played
from dualtrack_stack.local.testing.local_chat import conversation

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dualtrack.models.protocol import Model
    from dualtrack.models.turn import FirstByte, ModelReply
    from dualtrack.tools.running import Execute, Running

    from dualtrack_stack.evals.checks import MadeCall
    from dualtrack_stack.evals.past_chat import PastCall, PastConversation, PastQuery
    from dualtrack_stack.local.testing.local_chat import Answer, LocalChat, Served

Ask: TypeAlias = Callable[[str, "Mapping[str, Any]"], bool]
"""Whether a call of this tool with this input, which changes something, may run."""

_DECISIONS: Final = 100
_NOT_RUN: Final = "This call was not run: the chat is replayed, and it would change something."


class BadStep(ValueError):
    """There is no such step in the conversation."""


@dataclass(frozen=True, slots=True)
class Step:
    """Where the new part begins: with the call ``call`` (from 0) of the model's turn ``turn`` (from 0) of a query, or,
    with ``call`` None, with that turn itself. `NEVER` is behind every step."""

    query: int
    turn: int = 0
    call: int | None = None


NEVER: Final = Step(10**9)


@dataclass(frozen=True, slots=True)
class Replayed:
    """A query: as it ``was``, and its ``calls``, answer ``text`` and ``status`` now."""

    was: PastQuery
    calls: tuple[MadeCall, ...]
    text: str
    status: str
    error: str = ""

    @property
    def differs(self) -> bool:
        """In a call, a result or the answer."""
        return bool(list(differences(self)))


def step_of(past: PastConversation, name: str) -> Step:
    """The step of a record's id: a query (``q2``) is the model's first turn on it, a call (``q1-t2``) that call, and an
    answer (``q1-r``) the turn that gave it. Raises `BadStep`."""
    parsed = parse_record_id(name)
    query = next((one for one in past.queries if parsed and one.number == parsed.query), None)
    if parsed is None or query is None or parsed.summary:
        raise BadStep(
            f"There is no step {name}: it has {', '.join(f'q{one.number}' for one in past.queries)}."
        )
    if parsed.kind == "query":
        return Step(query.number)
    if parsed.kind == "response":
        return Step(query.number, len(query.turns))
    for place, turn in enumerate(query.turns):
        for number, call in enumerate(turn.calls):
            if call.id == name:
                return Step(query.number, place, number)
    raise BadStep(
        f"There is no step {name}: {', '.join(call.id for call in query.calls) or f'q{query.number}-r'}."
    )


@dataclass(eq=False)
class Continued(Played):
    """A tape, and behind its end ``rest``, which also answers what a tape has not: summaries."""

    rest: Model | None = None

    def stream(
        self,
        request: Mapping[str, Any],
        on_text: Callable[[str], None],
        seconds: float = LEAST_CALL_SECONDS,
        on_first: Callable[[FirstByte], None] = ignore,
        on_thought: Callable[[str], None] = ignore,
    ) -> ModelReply:
        """The tape's next turn, or the model's."""
        if self.calls or self.rest is None:
            return super().stream(request, on_text, seconds, on_first, on_thought)
        self.sent.append(dict(request))
        return self.rest.stream(request, on_text, seconds, on_first, on_thought)

    def complete(self, request: Mapping[str, Any], seconds: float) -> Any:
        """The model's."""
        return self.rest.complete(request, seconds) if self.rest else super().complete(request, seconds)


@dataclass
class _Results:
    """The recorded results of the query that runs: of its calls before the step. ``ask`` decides on those behind it."""

    ask: Ask
    left: list[PastCall] = field(default_factory=list)
    allowed: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    """Calls behind the step that somebody has just approved."""

    def begin(self, query: PastQuery, step: Step) -> None:
        """The calls of this query that are not run again."""
        self.left = list(recorded_calls(query, step))

    def take(self, tool: str, given: Mapping[str, Any]) -> PastCall | None:
        """The recorded result of such a call, once."""
        found = self.find(tool, given)
        if found:
            self.left.remove(found)
        return found

    def find(self, tool: str, given: Mapping[str, Any]) -> PastCall | None:
        """The same, which stays."""
        wanted = (tool, dict(given))
        return next((call for call in self.left if (call.tool, dict(call.input)) == wanted), None)

    def around(self, run: Execute) -> Execute:
        """Runs what is not recorded."""

        def execute(running: Running) -> ToolResult:
            call = running.call
            if past := self.take(call.tool, call.input):
                return ToolResult(past.result, is_error=past.is_error)
            is_allowed = call.does == "reads" or (call.tool, dict(call.input)) in self.allowed
            if not is_allowed and not self.ask(call.tool, call.input):
                return ToolResult(_NOT_RUN, is_error=True)
            return run(running)

        return execute


def recorded_calls(query: PastQuery, step: Step) -> Iterator[PastCall]:
    """The calls of a query before the step. The others of the step's own turn are run with it, in their order."""
    for place, turn in enumerate(query.turns):
        for number, call in enumerate(turn.calls):
            behind = (query.number, place) > (step.query, step.turn) or (
                (query.number, place) == (step.query, step.turn)
                and (step.call is None or number >= step.call)
            )
            if not behind:
                yield call


def recorded_turns(queries: Sequence[PastQuery], step: Step) -> list[dict[str, Any]]:
    """The model's answers before the step, as on a tape. Of the turn whose call is the step the answer is recorded."""
    taken: list[dict[str, Any]] = []
    for query in queries:
        turns = list(turn_calls(query))
        if query.number > step.query:
            break
        taken += turns if query.number < step.query else turns[: step.turn + (step.call is not None)]
    return taken


def replay(
    past: PastConversation,
    queries: Sequence[PastQuery],
    step: Step,
    rest: Served,
    ask: Ask,
    root: Path,
    *,
    profile: str = "",
    model: str = "",
) -> Iterator[Replayed]:
    """Each query once more; it ends with one that cannot go on. ``rest`` answers from the step on. Raises ValueError
    for a profile that does not exist, and `dualtrack.errors.ApiError` for what the API refuses."""
    results = _Results(ask)
    client = Continued(recorded_turns(queries, step))

    def connect(clock: Any) -> Continued:
        client.rest = rest.connect(clock)
        return client

    served = replace(rest, connect=connect, heard=client)
    called = [call.tool for query in queries for call in query.calls]
    elsewhere = tools_elsewhere(root, called)
    with conversation(
        profile or past.profile,
        served,
        user="replay",
        given_credits=CREDITS,
        change=with_model(model),
        around=results.around,
    ) as chat:
        for query in queries:
            results.begin(query, step)
            answer = _taken(chat, query, results, elsewhere)
            yield Replayed(query, made_calls(answer), answer.text, answer.status, answer.error)
            if answer.status != "done":
                return


def _taken(
    chat: LocalChat, query: PastQuery, results: _Results, elsewhere: Sequence[Mapping[str, Any]]
) -> Answer:
    """The chat with the decisions that were made; new ones are asked for."""
    answer = chat.ask(query.ask, tools=elsewhere)
    for _ in range(_DECISIONS):
        if not (answer.pause and answer.pause.calls):
            break
        call = answer.pause.calls[0]
        past = results.find(call.name, call.input)
        if call.kind == "approval":
            said = past.status != "declined" if past else results.ask(call.name, call.input)
            if past and not said:
                results.take(call.name, call.input)
            if said and not past:
                results.allowed.append((call.name, call.input))
            answer = chat.decide(call.id, approve=said)
        elif call.kind == "question":
            results.take(call.name, call.input)
            answer = chat.decide(
                call.id, answer=past.result if past else "There is nobody to ask in a replay."
            )
        else:
            results.take(call.name, call.input)
            text = past.result if past else "This tool cannot run in a replay."
            answer = chat.decide(call.id, result=text, is_error=past.is_error if past else True)
    return answer


def differences(now: Replayed) -> Iterator[str]:
    """Lines: each call, result and answer that is not as it was; none if all is."""
    was = now.was.calls
    for number in range(max(len(was), len(now.calls))):
        before = was[number] if number < len(was) else None
        after = now.calls[number] if number < len(now.calls) else None
        name = before.id if before else f"q{now.was.number}-t{number + 1}"
        if after is None and before:
            yield f"- {name} {before.tool} {shown(str(dict(before.input)))} is not called"
        elif before is None and after:
            yield f"+ {name} {after.tool} {shown(str(dict(after.input)))} is called: {shown(after.result)}"
        elif before and after and (before.tool, dict(before.input)) != (after.tool, dict(after.input)):
            yield f"  {name}"
            yield f"- {before.tool} {shown(str(dict(before.input)))}"
            yield f"+ {after.tool} {shown(str(dict(after.input)))}"
        elif before and after and before.result != after.result:
            yield f"  {name} {after.tool}"
            yield from _diff(before.result, after.result)
    if now.was.answer != now.text:
        yield f"  q{now.was.number}-r"
        yield from _diff(now.was.answer, now.text)
    if now.status != "done":
        yield f"+ it is {now.status}: {now.error}".rstrip(": ")


_LINES: Final = 400
"""Of a text, in which differences are looked for line by line."""


def _diff(before: str, after: str) -> Iterator[str]:
    """The lines that differ, with one around each."""
    first, second = before.splitlines()[:_LINES], after.splitlines()[:_LINES]
    yield from list(difflib.unified_diff(first, second, lineterm="", n=1))[2:]
