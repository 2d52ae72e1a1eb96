"""A run or a comparison as one HTML page without scripts, which can be kept as a file of a CI run."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Final

from dualtrack_stack.evals.compare import sums_of
from dualtrack_stack.evals.report import agreement_lines, comparison_lines, details, dim, sums_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dualtrack_stack.evals.compare import Comparison, Run
    from dualtrack_stack.evals.run import CaseResult

_STYLE: Final = """
:root { color-scheme: light dark; font: 1rem/1.5 system-ui, sans-serif; }
body { max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }
summary { cursor: pointer; padding: .25rem 0; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; border-left: .2rem solid; padding-left: .75rem; margin: .5rem 0; }
.failed { font-weight: 600; }
.small { opacity: .75; font-size: .875rem; }
""".strip()


def html_of(run: Run, comparison: Comparison | None = None) -> str:
    """The page: the sums, then each case, opened where it has failed; with a comparison, that first."""
    body = [f"<h1>{escape(run.name)}</h1>", f"<p>{escape(sums_line(sums_of(run.results)))}</p>"]
    body += [f"<p>{escape(line)}</p>" for line in agreement_lines(run.agreement)]
    if comparison:
        lines = "\n".join(comparison_lines(comparison))
        body.append(f"<h2>Compared</h2><pre>{escape(lines)}</pre>")
    body += ["<h2>Cases</h2>", *(part for result in run.results for part in _case(result))]
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>dualtrack eval</title>'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{_STYLE}</style></head><body>{''.join(body)}</body></html>\n"
    )


def _case(result: CaseResult) -> Iterator[str]:
    word, state = ("passed", "") if result.passed else ("failed", " open")
    yield f'<details{state}><summary class="{word}">{word} {escape(result.id)} <span class="small">{escape(dim(result))}</span></summary>'
    if lines := "\n".join(line.strip() for line in details(result)):
        yield f"<pre>{escape(lines)}</pre>"
    for exchange in result.exchanges:
        yield f"<p><b>{escape(exchange.ask)}</b></p>"
        for call in exchange.outcome.calls:
            failed = " (error)" if call.is_error else ""
            yield f'<p class="small">{escape(f"{call.tool} {dict(call.input)}{failed}")}</p><pre>{escape(call.result[:4_000])}</pre>'
        yield f"<pre>{escape(exchange.outcome.text or exchange.outcome.error)}</pre>"
    yield "</details>"
