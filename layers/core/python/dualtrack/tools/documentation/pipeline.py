"""`retrieve_documentation`: the whole search, from a question to markdown with sources (DESIGN 4).

    understand ─► search ─► choose ─► context (phrasings in parallel) ─► keywords ∥ embeddings
    ─► fusion ─► 30 ─► rerank ─► 6 ─► markdown

The question is embedded during the first three stages. A cached question skips to the ranking.
"""

from __future__ import annotations

import asyncio
from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final

from annotated_types import MaxLen, MinLen

from dualtrack import tool
from dualtrack.tool_values import OFF, ToolResult, failed
from dualtrack.tools.documentation.dependencies import dependencies_for
from dualtrack.tools.documentation.library import find_sections
from dualtrack.tools.documentation.markdown import documentation_result
from dualtrack.tools.documentation.ranking import begin_query_vector, fused_order
from dualtrack.tools.documentation.rerank import rerank_with_claude
from dualtrack.tools.documentation.session import Session
from dualtrack.tools.documentation.stages import Stages
from dualtrack.tools.documentation.values import Context7Error, LibraryUnavailable
from dualtrack.tools.running import Running
from dualtrack.tools.search_needs import SearchNeeds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dualtrack.tools.documentation.dependencies import Dependencies
    from dualtrack.tools.documentation.library import Sections
    from dualtrack.tools.documentation.values import DocSection

MAX_QUERY_CHARACTERS: Final = 500
"""Context7 accepts queries of 1 to 500 characters."""

_PARTS: Final = MappingProxyType(
    {"understand": "understand", "choose": "choose", "embed": "meaning", "rerank": "rerank"}
)
"""The optional stages, and the names under which their failures are counted (`dualtrack.runtime.metrics.PARTS`)."""


@tool(price="documentation", effect="reads", switches=("rerank",))
def retrieve_documentation(
    query: Annotated[
        str,
        MinLen(1),
        MaxLen(MAX_QUERY_CHARACTERS),
        "The question in full, with the name of the product, for example 'How do I set up OAuth for the Twitter Ads "
        "API?'",
    ],
    *,
    running: Running,
    needs: SearchNeeds,
) -> ToolResult:
    """Searches the current public documentation of a software library, framework, service or API and returns the most
    relevant sections with their sources. Use it whenever the answer depends on how such a product works today: setup,
    configuration, API names and parameters, code examples, version differences, error messages. Prefer it to what you
    remember. Ask one complete question about one product per call and name the product (and its version, if the user
    gave one); for two products make two calls. Do not use it for general knowledge, for the user's own code or
    repositories, or for what is already in this conversation.
    """
    return documentation_for(query, dependencies_for(needs), rerank=running.call.spec.get("rerank") != OFF)


def documentation_for(query: str, deps: Dependencies, *, rerank: bool = True) -> ToolResult:
    """The best sections of documentation for the query, with their sources. ``rerank``: whether Claude chooses them.

    Takes at most ``settings.limits.total`` seconds (28, within the contract's 30) and never raises: a failure becomes
    an error result with the reason, which costs no credits.
    """
    question = " ".join(query.split())[:MAX_QUERY_CHARACTERS]
    if not question:
        return _unanswered("the query is empty")
    total = deps.settings.limits.total
    session = Session(deps, Stages(deps.settings.limits), rerank=rerank)
    return replace(_searched(question, session, total), left_out=_left_out(session))


def _searched(question: str, session: Session, total: float) -> ToolResult:
    deps = session.deps
    try:
        return deps.loop.run(_search(question, session), timeout=total)
    except Context7Error as error:
        session.has_documentation = isinstance(error, LibraryUnavailable)
        if error.look_at:
            deps.logger.info("Context7 refused the request", extra={"look_at": error.look_at})
        return _unanswered(f"documentation search: {error}")
    except TimeoutError:
        session.has_documentation = False
        return _unanswered(f"documentation search took longer than {total:g} s")
    except Exception as error:  # noqa: BLE001 - a tool's failure is a result (CONTRACT 7), never an exception
        deps.logger.info("documentation search failed", extra={"error_type": type(error).__name__})
        return _unanswered("documentation search failed with an internal error")
    finally:
        _log(session)


def _unanswered(reason: str) -> ToolResult:
    """No documentation, for this reason: nobody pays for that."""
    return replace(failed(reason), charged=False)


async def _search(question: str, session: Session) -> ToolResult:
    query_vector = begin_query_vector(question, session)
    try:
        sections = await find_sections(question, session)
        order = await fused_order(question, sections.chunks, query_vector, session)
    finally:
        if query_vector:
            query_vector.cancel()
            await asyncio.gather(query_vector, return_exceptions=True)
    remembering = asyncio.create_task(session.remember())
    try:
        best = await _best([sections.chunks[index] for index in order], question, session)
        with session.stages.timed("format"):
            return documentation_result(sections.library, best, _notes(sections, session))
    finally:
        await remembering


async def _best(chunks: Sequence[DocSection], question: str, session: Session) -> Sequence[DocSection]:
    """The final sections: Claude's choice from the first ``top_fused``, else the first ``top_final``."""
    questions, settings = session.deps.questions, session.deps.settings
    candidates = chunks[: settings.top_fused]
    if questions is None or not session.rerank or len(candidates) <= settings.top_final:
        return candidates[: settings.top_final]
    order = await session.stages.optional(
        "rerank",
        settings.limits.rerank,
        lambda share: rerank_with_claude(question, candidates, questions, share, settings),
    )
    return candidates[: settings.top_final] if order is None else [candidates[index] for index in order]


def _notes(sections: Sections, session: Session) -> tuple[str, ...]:
    """A note if there were too few sections to choose from."""
    settings, size = session.deps.settings, len(sections.chunks)
    if size <= settings.top_final:
        return (f"only {size} distinct sections were found for this question; all of them are shown.",)
    if size < settings.top_fused:
        few = f"only {size} distinct sections were found for this question, fewer than {settings.top_fused}"
        return (f"{few}, so none was dropped before the choice of these {settings.top_final}.",)
    return ()


def _left_out(session: Session) -> tuple[str, ...]:
    """The configured parts that failed, under the names of the metric."""
    failed_parts = {
        _PARTS[stage.name] for stage in session.stages.done if stage.name in _PARTS and not stage.went_well
    }
    return tuple(sorted(failed_parts | (set() if session.has_documentation else {"context7"})))


def _log(session: Session) -> None:
    """Log a line per search: milliseconds and outcome of every stage, and no text."""
    stages = session.stages
    session.deps.logger.info(
        "documentation search",
        extra={
            "milliseconds": round(1000 * (stages.monotonic() - stages.started), 1),
            "stages": [
                {"stage": stage.name, "ms": stage.milliseconds, "outcome": stage.outcome}
                for stage in list(stages.done)
            ],
            "context7_requests": session.context7_requests,
            "responses_stored": len(session.responses),
            "embeddings_stored": len(session.embeddings),
        },
    )
