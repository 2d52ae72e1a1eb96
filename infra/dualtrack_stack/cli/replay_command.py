"""``dualtrack replay``: a recorded chat once more, with today's tools and prompt from a step on."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any, Literal

import click
from dualtrack.errors import ApiError

from dualtrack_stack.cli.command import exit_codes, stack_options
from dualtrack_stack.cli.eval_commands import past_chat
from dualtrack_stack.cli.target import Missing, need
from dualtrack_stack.cli.transcript import clean
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dualtrack_stack.cli.target import TargetOptions
    from dualtrack_stack.evals.replay import Replayed, Step


@click.command()
@click.argument("what", metavar="CHAT|FILE")
@click.option(
    "--from",
    "step",
    metavar="STEP",
    help="Where it begins to be new: a query (q2), a tool call (q1-t2) or an answer (q1-r). Without it all is as it was"
    " recorded, and what differs is what the project does otherwise.",
)
@click.option(
    "--answers",
    type=click.Choice(["offline", "live"]),
    default="offline",
    show_default=True,
    help="Who answers from there on; live needs a key, and costs.",
)
@click.option("--profile", metavar="NAME", help="The agent, in place of the chat's own.")
@click.option("--model", metavar="NAME", help="The model, in place of the agent's own.")
@stack_options
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def replay(
    stack: TargetOptions,
    what: str,
    step: str | None,
    answers: Literal["offline", "live"],
    profile: str | None,
    model: str | None,
    as_json: bool,
) -> None:
    """Run a recorded chat (ch_…), a conversation (cv_…) or a file by `dualtrack show ID --json` once more.

    It runs within this process, with the project's agents and tools, and without credits: recorded answers and results
    up to STEP, then the model and the tools of today; what differs is shown. A tool that changes something
    runs only if you say yes.
    """
    with exit_codes():
        need("local", "`dualtrack replay`")
        from dualtrack_stack.evals import replay as again  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.services import Services  # noqa: PLC0415 - extra `local`

        past, queries = past_chat(stack, what)
        root = project_root()
        shown: list[Mapping[str, Any]] = []
        try:
            begins = again.step_of(past, step) if step else again.NEVER
            served = Services(root, answers, model or "").of("").served
            for one in again.replay(
                past, queries, begins, served, _may_run, root, profile=profile or "", model=model or ""
            ):
                differing = list(again.differences(one))
                shown.append(
                    {
                        "query": f"q{one.was.number}",
                        "status": one.status,
                        "answer": one.text,
                        "differences": differing,
                    }
                )
                if not as_json:
                    for line in _lines(one, differing, begins):
                        click.echo(line)
        except ApiError as refused:
            raise Missing(f"It cannot be asked again: {refused}") from None
        except ValueError as wrong:
            raise Missing(str(wrong)) from None
        if as_json:
            click.echo(json.dumps({"conversation_id": past.id, "queries": shown}, indent=2))


def _lines(one: Replayed, differing: list[str], begins: Step) -> Iterator[str]:
    part = (
        "new"
        if one.was.number > begins.query
        else "new from here"
        if one.was.number == begins.query
        else "as recorded"
    )
    yield click.style(f"q{one.was.number}  {clean(one.was.ask)[:100]}  ({part})", bold=True)
    if one.was.files:
        yield f"  came with files, which are not sent again: {clean(', '.join(one.was.files))}"
    yield from (f"  {clean(line)}" for line in differing or ["nothing differs"])


def _may_run(tool: str, given: Mapping[str, Any]) -> bool:
    """Asked on a terminal; no where nobody can be asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    return click.confirm(
        f"{tool} {clean(json.dumps(dict(given), ensure_ascii=False))} changes something. Run it?", err=True
    )
