"""A run and a comparison as lines for a terminal, and as JSON. Pure."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

from dualtrack.text import one_line

from dualtrack_stack.evals.checks import Finding, MadeCall, Outcome, shown
from dualtrack_stack.evals.compare import Run, sums_of
from dualtrack_stack.evals.judge import Agreement
from dualtrack_stack.evals.run import CaseResult, Exchange

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack_stack.evals.compare import Comparison, Sums

_WIDTH: Final = 1_000


def run_lines(run: Run) -> Iterator[str]:
    """A line for each case, what has not passed below it, and the sums."""
    for result in run.results:
        yield f"{'passed' if result.passed else 'FAILED'}  {result.id}  {dim(result)}"
        yield from details(result)
    yield ""
    yield f"{sums_line(sums_of(run.results))}"
    yield from agreement_lines(run.agreement)


def dim(result: CaseResult) -> str:
    """Its figures."""
    got = result.outcome
    money = f"${got.dollars:.4f}{' (fictional)' if result.by == 'offline' else ''}"
    return f"({result.by}, {got.turns} turns, {got.credits} credits, {got.tokens:,} tokens, {money}, {got.seconds:.1f} s)"


def details(result: CaseResult) -> Iterator[str]:
    """What has not passed, with the place in the file, and what was not checked."""
    for finding in result.findings:
        if not finding.passed:
            yield f"    {result.file}:{result.line}: {one_line(finding.check)}: {one_line(finding.instead)}"[
                :_WIDTH
            ]
    for check in result.left_out:
        yield f"    not checked: {one_line(check)}"[:_WIDTH]
    if result.drifted:
        yield f"    {result.drifted} of its model calls were recorded for another prompt or another result: record it again"


def rate(sums: Sums) -> str:
    """``4 of 5 (80 %, 38 to 96)``."""
    return f"{sums.passed} of {sums.cases} ({sums.rate:.0%}, {100 * sums.low:.0f} to {100 * sums.high:.0f})"


def sums_line(sums: Sums) -> str:
    """All sums of a run."""
    return (
        f"{sums.passed} of {sums.cases} passed: {sums.rate:.0%} (95 % interval {100 * sums.low:.0f} to "
        f"{100 * sums.high:.0f} %), {sums.credits:,} credits, ${sums.dollars:.4f}, {sums.tokens:,} tokens, "
        f"{sums.seconds:.1f} s"
    )


def agreement_lines(agreed: Agreement | None) -> Iterator[str]:
    """How far the judge agrees with the labels."""
    if agreed is None:
        return
    word = "" if agreed.kappa is None else f", kappa {agreed.kappa:.2f}"
    yield f"the judge agrees with {agreed.agreed} of {agreed.of} labelled answers{word}, ${agreed.dollars:.4f}"
    for one in agreed.wrong:
        yield f"    {one_line(one)}"[:_WIDTH]


def comparison_lines(both: Comparison) -> Iterator[str]:
    """The sums side by side, and each case that differs."""
    now, other = (sums_of(run.results) for run in (both.now, both.other))
    rows = (
        ("", both.now.name, both.other.name),
        ("passed", rate(now), rate(other)),
        ("credits", f"{now.credits:,}", f"{other.credits:,}"),
        ("dollars", f"${now.dollars:.4f}", f"${other.dollars:.4f}"),
        ("tokens", f"{now.tokens:,}", f"{other.tokens:,}"),
        ("seconds", f"{now.seconds:.1f}", f"{other.seconds:.1f}"),
    )
    first, second = (max(len(row[column]) for row in rows) for column in (0, 1))
    for what, mine, theirs in rows:
        yield f"{what:<{first}}  {mine:<{second}}  {theirs}".rstrip()
    yield (
        f"{both.only_now} pass with {both.now.name} alone, {both.only_other} with {both.other.name} alone "
        f"(sign test: p = {both.p:.2f})"
    )
    for pair in both.pairs:
        if pair.differs:
            yield ""
            yield pair.now.id
            for run, result in ((both.now, pair.now), (both.other, pair.other)):
                yield f"  {run.name}: {'passed' if result.passed else 'FAILED'} {dim(result)}"
                yield from (
                    f"    calls {call.tool} {shown(str(dict(call.input)))}" for call in result.outcome.calls
                )
                yield f"    answers {shown(result.outcome.text or result.outcome.error)}"
                yield from details(result)


def run_json(run: Run) -> dict[str, Any]:
    """A run as ``--json`` prints it; `run_from` reads it."""
    return {
        "name": run.name,
        "sums": asdict(sums_of(run.results)),
        "agreement": asdict(run.agreement) if run.agreement else None,
        "results": [{**asdict(result), "passed": result.passed} for result in run.results],
    }


def run_from(written: Mapping[str, Any]) -> Run:
    """The run that was written."""
    agreed: dict[str, Any] | None = written["agreement"]
    if agreed:
        agreed = {**agreed, "wrong": tuple(agreed["wrong"])}
    return Run(
        written["name"], tuple(map(_result, written["results"])), Agreement(**agreed) if agreed else None
    )


def _result(one: Mapping[str, Any]) -> CaseResult:
    fields: dict[str, Any] = {name: value for name, value in one.items() if name != "passed"}
    fields["outcome"] = _outcome(one["outcome"])
    fields["findings"] = tuple(Finding(**each) for each in one["findings"])
    fields["exchanges"] = tuple(Exchange(each["ask"], _outcome(each["outcome"])) for each in one["exchanges"])
    return CaseResult(**fields)


def _outcome(one: Mapping[str, Any]) -> Outcome:
    fields: dict[str, Any] = {**one, "calls": tuple(MadeCall(**call) for call in one["calls"])}
    return Outcome(**fields)
