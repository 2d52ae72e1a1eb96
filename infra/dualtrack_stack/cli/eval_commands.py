"""``dualtrack eval``: the project's cases, run and compared."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

import click

from dualtrack_stack.cli.command import Exit, exit_codes, report, stack_options
from dualtrack_stack.cli.conversation_commands import whole_conversation
from dualtrack_stack.cli.id_types import wrong_id
from dualtrack_stack.cli.target import Missing, need, open_target
from dualtrack_stack.roots import own_python, project_root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from dualtrack_stack.cli.target import TargetOptions
    from dualtrack_stack.evals.compare import Run
    from dualtrack_stack.evals.files import Found
    from dualtrack_stack.evals.past_chat import PastConversation, PastQuery
    from dualtrack_stack.evals.services import Services

_COMPARED: Final = ("profile", "model", "commit")


class _WithDefault(click.Group):
    """A group whose first word may be a path: what is no command of it is one of ``run``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not (args and (args[0] in self.commands or args[0] in ("-h", "--help"))):
            args = ["run", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_WithDefault, name="eval", subcommand_metavar="[PATH] | COMMAND …")
def eval_commands(**_: object) -> None:
    """Run the cases of PATH, a file or a folder, by default the project's evals/, and say which pass.

    Each case is a chat with the project's agent, within this process. Tools of the project run really, unless a case
    gives their results. Nothing is sent anywhere but, with --answers live, to the model's service.

    \b
    Exit codes: 0 every case has passed, 2 a file is wrong, 4 a case has failed.
    """


@eval_commands.command("run", hidden=True)
@click.argument("path", required=False, type=click.Path(path_type=Path))
@click.option(
    "--answers",
    type=click.Choice(["offline", "recorded", "live"]),
    help="Who answers: the built-in model, recordings, or the model's service. By default a recording where there is"
    " one, else the built-in model; only live needs a key, and costs.",
)
@click.option("--record", is_flag=True, help="With --answers live: keep the answers in evals/recorded.")
@click.option("--profile", metavar="NAME", help="The agent, in place of each case's own.")
@click.option("--model", metavar="NAME", help="The model, in place of each agent's own.")
@click.option(
    "--compare",
    metavar="WHAT=NAME",
    help="The same cases also with another profile, model or commit (profile=brief, model=…, commit=HEAD~1), side by"
    " side.",
)
@click.option("--case", "named", metavar="TEXT", help="Only cases with TEXT in their name.")
@click.option(
    "--html", type=click.Path(path_type=Path), metavar="FILE", help="Write a page with every answer."
)
@click.option("--junit", type=click.Path(path_type=Path), metavar="FILE", help="Write JUnit's XML, for CI.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object on stdout, nothing else.")
def run_cases(
    path: Path | None,
    answers: Literal["offline", "recorded", "live"] | None,
    record: bool,
    profile: str | None,
    model: str | None,
    compare: str | None,
    named: str | None,
    html: Path | None,
    junit: Path | None,
    as_json: bool,
) -> None:
    """What `dualtrack eval` does without a command."""
    if record and answers != "live":
        raise click.UsageError("--record needs --answers live.")
    what, _, other = (compare or "").partition("=")
    if compare and (what not in _COMPARED or not other):
        raise click.UsageError(f"--compare takes WHAT=NAME; WHAT is one of {', '.join(_COMPARED)}.")
    with exit_codes():
        need("local", "`dualtrack eval`")
        from dualtrack_stack.evals.compare import compared  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.html import html_of  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.junit import junit_of  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.report import comparison_lines, run_json, run_lines  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.services import Services  # noqa: PLC0415 - extra `local`

        root = project_root()
        found = _found(root, path, named)
        services = Services(root, answers, model or "", record)
        told = _progress if sys.stderr.isatty() else lambda _: None
        now = _run("now", found, services, profile or "", told)
        both = None
        if what == "commit":
            arguments = [*_options(answers, profile, model), *(["--case", named] if named else [])]
            both = compared(now, _of_commit(root, other, path, arguments))
        elif compare:
            beside = Services(root, answers, other if what == "model" else model or "")
            chosen = other if what == "profile" else profile or ""
            both = compared(now, _run(compare, found, beside, chosen, told))
        for file, page in ((html, lambda: html_of(now, both).encode()), (junit, lambda: junit_of(now))):
            if file:
                _write(file, page())
        if as_json:
            click.echo(
                json.dumps({**run_json(now), "compared": run_json(both.other) if both else None}, indent=2)
            )
        else:
            for line in [*run_lines(now), *(["", *comparison_lines(both)] if both else [])]:
                click.echo(line)
        if not all(result.passed for result in now.results):
            sys.exit(Exit.FAILED)


eval_commands.params.extend(option for option in run_cases.params if isinstance(option, click.Option))
# `eval --help` lists them; it is `run` that takes them


def _write(file: Path, content: bytes) -> None:
    try:
        file.write_bytes(content)
    except OSError as problem:
        raise Missing(f"{file} cannot be written: {problem.strerror}.") from problem


def _progress(text: str) -> None:
    click.echo(click.style(text, dim=True), err=True)


def _options(answers: str | None, profile: str | None, model: str | None) -> list[str]:
    given = (("--answers", answers), ("--profile", profile), ("--model", model))
    return [part for name, value in given if value for part in (name, value)]


def _found(root: Path, path: Path | None, named: str | None) -> Found:
    """The cases that are run. Raises `Missing`."""
    from dualtrack_stack.evals.files import Found, read_cases  # noqa: PLC0415 - extra `local`

    try:
        found = read_cases(root, path)
    except FileNotFoundError as missing:
        raise Missing(f"There is nothing at {missing}: write a case, as docs/evaluate.md says.") from None
    except ValueError as wrong:
        raise Missing(str(wrong)) from None
    kept = tuple(one for one in found.cases if not named or named.casefold() in one.id.casefold())
    if not kept:
        names = ", ".join(one.id for one in found.cases[:20]) or "none"
        raise Missing(f"No case is to be run: there are {names}.")
    return Found(kept, found.labelled)


def _run(name: str, found: Found, services: Services, profile: str, told: Callable[[str], None]) -> Run:
    """Raises `Missing`."""
    from dualtrack_stack.evals.compare import Run  # noqa: PLC0415 - extra `local`
    from dualtrack_stack.evals.judge import agreement  # noqa: PLC0415 - extra `local`
    from dualtrack_stack.evals.run import run_case  # noqa: PLC0415 - extra `local`

    results = []
    try:
        for number, one in enumerate(found.cases, 1):
            results.append(run_case(one, services, profile=profile))
            told(f"{number}/{len(found.cases)} {one.id}")
        service = services.of(LABELS) if found.labelled and services.wanted == "live" else None
        agreed = None
        if service and service.judge:
            agreed = agreement(service.judge, services.model_name(), found.labelled)
    except ValueError as wrong:  # no key, no such profile
        raise Missing(str(wrong)) from None
    return Run(name, tuple(results), agreed)


LABELS: Final = "labelled"


def _of_commit(root: Path, commit: str, path: Path | None, arguments: Sequence[str]) -> Run:
    """The cases of today with the agents and tools of a commit, in a process of their own. Raises `Missing`."""
    from dualtrack_stack.evals.files import FOLDER  # noqa: PLC0415 - extra `local`
    from dualtrack_stack.evals.report import run_from  # noqa: PLC0415 - extra `local`

    with _checked_out(root, commit) as there:
        own, beside = (root / FOLDER).resolve(), there / FOLDER
        cases = path.resolve() if path else own
        if beside.is_symlink() or beside.exists():
            beside.rename(there / f".{FOLDER}-of-{there.name}")
        beside.symlink_to(own)
        within = beside / cases.relative_to(own) if cases.is_relative_to(own) else cases
        command = own_python("dualtrack_stack.cli.main", "eval", "run", str(within), "--json", *arguments)
        done = subprocess.run(command, cwd=there, capture_output=True, text=True, check=False)
    if done.returncode not in (Exit.ANSWERED, Exit.FAILED):
        raise Missing(f"The commit {commit} cannot be evaluated: {done.stderr.strip()[-1_000:]}")
    return replace(run_from(json.loads(done.stdout)), name=f"commit={commit}")


@contextmanager
def _checked_out(root: Path, commit: str) -> Iterator[Path]:
    """The project as that commit has it, in a folder that ends with the block. Raises `Missing`."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "commit"
        top = _git(root, "rev-parse", "--show-toplevel").strip()
        _git(root, "worktree", "add", "--detach", str(place), commit)
        try:
            yield place / root.resolve().relative_to(Path(top).resolve())
        finally:
            _git(root, "worktree", "remove", "--force", str(place))


def _git(root: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
    except OSError as problem:
        raise Missing(f"--compare commit=… needs git: {problem.strerror}.") from problem
    if done.returncode:
        raise Missing(f"git {' '.join(arguments)}: {done.stderr.strip()[-500:]}")
    return done.stdout


@eval_commands.command("add")
@click.argument("what", metavar="CHAT|FILE")
@click.option("--name", metavar="NAME", help="Of the case; by default the beginning of its first question.")
@click.option(
    "--replace",
    "given",
    multiple=True,
    metavar="TEXT=STAND-IN",
    help="A name or another text that nobody shall read, and what stands in for it; may be repeated.",
)
@stack_options
def add(stack: TargetOptions, what: str, name: str | None, given: tuple[str, ...]) -> None:
    """Make a case of your own chat (ch_…), of a conversation (cv_…), or of a file by `dualtrack show ID --json`.

    Its questions, its tools' results and its calls become a file in evals/, and its answers a recording. Addresses,
    telephone numbers, ids, keys and files are replaced; read it before you commit it.
    """
    with exit_codes():
        need("local", "`dualtrack eval`")
        from dualtrack_stack.evals.files import FOLDER, parse_cases  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.make_case import case_text, tape_of  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.scrub import Scrub  # noqa: PLC0415 - extra `local`
        from dualtrack_stack.evals.services import recording_of  # noqa: PLC0415 - extra `local`

        past, chosen = past_chat(stack, what)
        files = dict.fromkeys(file for query in chosen for file in query.files if file)
        pairs = {
            **{file: f"file{number}{Path(file).suffix}" for number, file in enumerate(files, 1)},
            **dict(_pair(text) for text in given),
        }
        scrub = Scrub(pairs)
        title = _case_name(name or scrub.text(chosen[0].ask))
        chat = chosen[-1].chat_id or past.id
        root = project_root()
        file = _free(root / FOLDER, title)
        made = datetime.now(UTC).date().isoformat()
        origin = {"chat": chat, "stack": stack.url or "local", "made": made}
        text = case_text(past, origin, title, scrub, chosen)
        try:
            parse_cases(text, file.name)
        except ValueError as wrong:
            raise Missing(f"No case can be made of it: {wrong}") from None
        tape = recording_of(root, f"{file.stem}/{title}")
        for path, content in ((file, text), (tape, tape_of(chosen, scrub))):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        replaced = ", ".join(f"{many} × {kind}" for kind, many in sorted(scrub.kinds.items()) if many)
        click.echo(f"{file.relative_to(root)} has the case, {tape.relative_to(root)} its recorded answers.")
        click.echo(
            f"Replaced: {replaced or 'nothing'}. Read both before you commit them, and write what has to be true."
        )


def past_chat(stack: TargetOptions, what: str) -> tuple[PastConversation, Sequence[PastQuery]]:
    """A recorded conversation, and its queries up to the chat that is named. Raises `Missing`."""
    from dualtrack_stack.evals.past_chat import BadExport, from_file, past_of  # noqa: PLC0415 - extra `local`

    last = ""
    try:
        if what.startswith(("ch_", "cv_")):
            if problem := wrong_id("chat_id" if what.startswith("ch_") else "conversation_id", what):
                raise click.UsageError(problem)
            with open_target(stack, report) as target, target.client() as client:
                conversation_id = what
                if what.startswith("ch_"):
                    chat = client.call("GET", f"/v1/chats/{what}")
                    conversation_id, last = str(chat["conversation_id"]), str(chat["message_id"])
                past = past_of(whole_conversation(client, conversation_id, "full"))
        elif Path(what).is_file():
            past = from_file(Path(what))
        else:
            raise Missing(f"{what} is no chat (ch_…), no conversation (cv_…) and no file.")
    except BadExport as wrong:
        raise Missing(str(wrong)) from None
    return past, [query for query in past.queries if not last or query.number <= int(last[1:])]


def _pair(text: str) -> tuple[str, str]:
    name, equals, stand_in = text.partition("=")
    if not (name and equals):
        raise click.UsageError("--replace takes TEXT=STAND-IN.")
    return name, stand_in


def _case_name(text: str) -> str:
    """What a case may be called, of a question."""
    return " ".join(re.sub(r"[^\w .,'()-]+", " ", text).split())[:60].strip() or "A chat"


def _free(folder: Path, name: str) -> Path:
    """A file that there is not yet."""
    base = re.sub(r"[^a-z0-9]+", "-", name.casefold()).strip("-")[:40] or "chat"
    names = itertools.chain([base], (f"{base}-{number}" for number in itertools.count(2)))
    return next(path for path in (folder / f"{one}.toml" for one in names) if not path.exists())
