"""``dualtrack credits show | spending | grant | plan | audit``: the operator's view of one user's credits."""

from __future__ import annotations

import sys
import uuid
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import click
from dualtrack.credits.plans import PLANS

from dualtrack_stack.cli.client import ApiClient, ClientError
from dualtrack_stack.cli.command import (
    Exit,
    exit_codes,
    json_option,
    moment,
    print_json,
    report,
    stack_options,
    state_dir_option,
)
from dualtrack_stack.cli.id_types import wrong_id
from dualtrack_stack.cli.target import (
    OPERATOR,
    Missing,
    TargetOptions,
    claims_of,
    dev_token,
    need,
    open_target,
)
from dualtrack_stack.cli.transcript import one_line

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from dualtrack import answers

    from dualtrack_stack.cli.credit_audit import Proof
    from dualtrack_stack.cli.target import ChosenStack, DevUser

_MOVEMENTS: Final = 10
_CREDITS: Final = click.IntRange(min=1)


@click.group("credits")
def credit_commands() -> None:
    """Your own credits, or, as an operator, those of a user.

    On a local stack USER is a name (a new name creates a user) or a user id, and no token is needed. On a
    deployed one USER is the id of a user (the sub claim of their tokens), and the token must be that of a
    member of the group admin.
    """


@credit_commands.command()
@click.option("--user", metavar="USER", help="The user; by default yourself.")
@stack_options
@json_option
def show(stack: TargetOptions, user: str | None, as_json: bool) -> None:
    """Show what is available and used, and the last movements. Movements are shown if the token may read
    them: your own, and every user's on a local stack.
    """
    with exit_codes(), open_target(stack, report) as target:
        if user is None:
            with target.client() as client:
                balance, movements = client.call("GET", "/v1/credits"), _movements(client)
        else:
            with as_admin(target, user) as account:
                balance, movements = account.balance(), _movements_of(target, account.own_token)
        if as_json:
            print_json(balance)
        else:
            _print(balance, user or target.user, movements)
            if target.grants and user is None:
                click.echo(f"\nMore: {target.grants}")


@credit_commands.command()
@click.argument("user", required=False)
@click.option(
    "--days",
    type=click.IntRange(1, 92),
    default=30,
    show_default=True,
    help="Number of days, up to and including today.",
)
@stack_options
@json_option
def spending(user: str | None, *, days: int, stack: TargetOptions, as_json: bool) -> None:
    """Show what your chats, or USER's, cost: by day (UTC), of it by API key and by agent: chats ended, credits,
    dollars of their turns and tools. A failed chat is charged no credits but still costs dollars. Summaries and
    digests, made after a chat is settled, are not included; see `dualtrack explain`.
    """
    with exit_codes(), open_target(stack, report) as target:
        if user is None:
            with target.client() as client:
                answer = client.call("GET", f"/v1/credits/spending?days={days}")
                names = _key_names(client) if answer["keys"] and not as_json else {}
        else:
            with as_admin(target, user) as account:
                answer, names = account.client.call("GET", f"{account.path}/spending?days={days}"), {}
        if as_json:
            print_json(answer)
        else:
            _print_spending(answer, names)


@credit_commands.command()
@click.argument("whom_and_amount", metavar="[USER] CREDITS", nargs=-1, required=True)
@click.option(
    "--reason",
    default="granted by command",
    show_default=True,
    help="Reason shown in the ledger.",
)
@click.option("--grant-id", help="Repeating a grant with the same id has no effect; a new id by default.")
@stack_options
@json_option
def grant(
    stack: TargetOptions,
    whom_and_amount: tuple[str, ...],
    *,
    reason: str,
    grant_id: str | None,
    as_json: bool,
) -> None:
    """Add CREDITS to the pack of USER, or to your own."""
    user, amount = _whom_and_amount(whom_and_amount)
    grant_id = grant_id or f"cli-{uuid.uuid4()}"
    with exit_codes(), open_target(stack, report) as target, as_admin(target, user) as account:
        # Said first: if the answer gets lost, the same id can be sent again without granting twice.
        click.echo(f"Grant {grant_id}: {amount:,} credits for {user or target.user or 'you'}.", err=True)
        body = {"credits": amount, "reason": reason, "grant_id": grant_id}
        account.client.call("POST", f"{account.path}/grants", body=body)
        _print_result(account, user or target.user, as_json=as_json)


def _whom_and_amount(arguments: tuple[str, ...]) -> tuple[str | None, int]:
    """From ``CREDITS`` alone, or from ``USER CREDITS``."""
    if len(arguments) > 2:
        raise click.UsageError(f"Got unexpected extra arguments ({' '.join(arguments[2:])}).")
    try:
        amount = int(_CREDITS(arguments[-1]))
    except click.BadParameter:
        raise click.UsageError(
            f"CREDITS must be a whole number of at least 1, not {arguments[-1]!r}."
        ) from None
    return (arguments[0] if len(arguments) == 2 else None), amount


@credit_commands.command()
@click.argument("user")
@click.argument("plan", metavar="PLAN", type=click.Choice(sorted(PLANS)))
@stack_options
@json_option
def plan(stack: TargetOptions, user: str, plan: str, as_json: bool) -> None:
    """Put USER on PLAN (free or pro), at once."""
    with exit_codes(), open_target(stack, report) as target, as_admin(target, user) as account:
        account.client.call("PUT", f"{account.path}/plan", body={"plan": plan})
        _print_result(account, user, as_json=as_json)


@credit_commands.command()
@click.argument("user")
@click.option(
    "--stage", metavar="NAME", help="A deployed stage, with your AWS credentials; else the local stack."
)
@state_dir_option
@json_option
def audit(user: str, stage: str | None, state_dir: Path, *, as_json: bool) -> None:
    """Check the account of USER against its ledger. An erased user's account is named erased-… Adds up every
    ledger line, read directly from the table, and shows how the account differs. Changes nothing.

    \b
    Exit codes: 0 they agree, 2 there is no such account, 4 they differ,
    5 cannot read the table.
    """
    with exit_codes():
        proof = _prove_deployed(user, stage) if stage else _prove_local(user, state_dir)
    if as_json:
        print_json(proof.body())
    else:
        _print_proof(proof)
    sys.exit(Exit.FAILED if proof.differences else Exit.ANSWERED)


def _prove_deployed(user: str, stage: str) -> Proof:
    need("deploy", "`dualtrack credits audit --stage`")
    from dualtrack_stack.cli.credit_audit import prove  # noqa: PLC0415 - boto3 loads for this command alone

    if problem := wrong_id("user_id", user):
        raise Missing(problem)
    return prove(user, stage)


def _prove_local(user: str, state_dir: Path) -> Proof:
    with open_target(TargetOptions(None, None, None, state_dir), report) as target:
        from dualtrack_stack.cli.credit_audit import ALIAS, prove  # noqa: PLC0415 - boto3 loads for this command alone
        from dualtrack_stack.local.shared import account_of  # noqa: PLC0415 - an installed wheel has none

        is_account = _is_id(user) or user.startswith(ALIAS)
        user_id = user if is_account else _named(target.url, user).user_id
        return prove(user_id, "local", account_of(state_dir).client)


def _print_proof(proof: Proof) -> None:
    for difference in proof.differences:
        click.echo(difference)
    verdict = "The account is not what they" if proof.differences else "The account is what they"
    click.echo(f"User {proof.user_id}, lines of the ledger: {proof.lines:,}. {verdict} add up to.")


@dataclass(frozen=True, slots=True)
class AccountPath:
    """A user's account, as an administrator addresses it. ``own_token`` is the user's own, known on local stacks
    only."""

    client: ApiClient
    path: str
    own_token: str = ""

    def balance(self) -> answers.Credits:
        """The balance (CONTRACT 4, GET /v1/credits)."""
        balance: answers.Credits = self.client.call("GET", f"{self.path}/credits")
        return balance


@contextmanager
def as_admin(target: ChosenStack, user: str | None) -> Iterator[AccountPath]:
    """The user (by default the caller), as an administrator of the stack addresses them."""
    token, user_id, own_token = target.token, user, ""
    if user is None:
        user_id = str(claims_of(target.token).get("sub") or "")
        if not user_id:
            raise Missing("Whose credits? The token does not say who you are: name the USER.")
    elif target.dev and not _is_id(user):
        named = _named(target.url, user)
        own_token, user_id = named.token, named.user_id
    if problem := wrong_id("user_id", str(user_id)):
        raise Missing(problem)
    if target.dev:
        token = dev_token(target.url, OPERATOR, admin=True).token
    with ApiClient(target.url, token) as client:
        yield AccountPath(client, f"/v1/admin/users/{quote(str(user_id), safe='')}", own_token)


def _named(url: str, user: str) -> DevUser:
    """The user with this name on the local stack."""
    named = dev_token(url, user)
    if named.created:  # the only place where a misspelt name can be noticed
        click.echo(f"{user} is a new user of the local stack, just created: {named.user_id}", err=True)
    return named


def _is_id(user: str) -> bool:
    """Whether it is a Cognito ``sub``, which is a UUID, and so no name."""
    try:
        return str(uuid.UUID(user)) == user.lower()
    except ValueError:
        return False


def _movements(client: ApiClient) -> Sequence[answers.Entry]:
    """The newest ledger entries; none if they cannot be read, since the balance is useful without them."""
    try:
        entries: Sequence[answers.Entry] = client.call("GET", "/v1/credits/ledger")["entries"]
    except ClientError:
        return ()
    return entries[:_MOVEMENTS]


def _movements_of(target: ChosenStack, token: str) -> Sequence[answers.Entry]:
    if not token:
        return ()
    with ApiClient(target.url, token) as client:
        return _movements(client)


def _print_result(account: AccountPath, user: str, *, as_json: bool) -> None:
    if as_json:
        print_json(account.balance())
    else:
        _print(account.balance(), user)


def _print(balance: answers.Credits, user: str, movements: Sequence[answers.Entry] = ()) -> None:
    daily, monthly = balance["daily"], balance["monthly"]
    today = f"{daily['used']:,} of {daily['limit']:,} used, resets {moment(daily['resets_at'])}"
    rows = [
        *([("user", user)] if user else []),
        ("plan", balance["plan"]),
        ("available", f"{balance['available']:,}"),
        ("held", f"{balance['held']:,}"),
    ]
    rows.append(("today", today))
    if monthly:
        month = f"{monthly['used']:,} of {monthly['limit']:,} used, resets {moment(monthly['resets_at'])}"
        rows.append(("this month", month))
    rows.append(("pack", f"{balance['pack']['remaining']:,}"))
    for label, value in rows:
        click.echo(f"{label:<11}{one_line(value, 200)}")
    if movements:
        click.echo(
            f"\nLast movements, newest first\n{'time':<22}{'kind':<9}{'amount':>7}{'available':>11}  for"
        )
    for entry in movements:
        what = one_line(entry.get("reason") or entry.get("chat_id") or "", 60)
        figures = f"{entry['kind']:<9}{entry['amount']:>7,}{entry['available_after']:>11,}"
        click.echo(f"{moment(entry['at']):<22}{figures}  {what}".rstrip())


def _key_names(client: ApiClient) -> Mapping[str, str]:
    """The names of one's own keys by id; none with a key, which may not list them."""
    try:
        keys: Sequence[answers.Key] = client.call("GET", "/v1/keys")["keys"]
    except ClientError:
        return {}
    return {key["key_id"]: key["name"] for key in keys}


def _print_spending(answer: answers.Spending, names: Mapping[str, str]) -> None:
    days = answer["days"]
    click.echo(f"{'day':<12}{'chats':>7}{'credits':>9}{'dollars':>12}")
    for entry in days:
        _print_day(entry)
    _print_day(
        {
            "day": "together",
            "chats": sum(entry["chats"] for entry in days),
            "credits": sum(entry["credits"] for entry in days),
            "dollars": sum(entry["dollars"] for entry in days),
        }
    )
    parts = [
        *(
            (f"under the API key {names.get(key['key_id'], key['key_id'])}", key["days"])
            for key in answer["keys"]
        ),
        *((f"with {own['profile']}", own["days"]) for own in answer["profiles"]),
    ]
    for name, own_days in parts:
        click.echo(f"\n{one_line(name, 60)}")
        for entry in own_days:
            _print_day(entry)
    if not answer["complete"]:
        click.echo("Not all movements were read: the oldest day may be incomplete. Ask for fewer days.")


def _print_day(entry: answers.SpendingDay) -> None:
    figures = f"{entry['chats']:>7,}{entry['credits']:>9,}{entry['dollars']:>12,.4f}"
    click.echo(f"{one_line(entry['day'], 12):<12}{figures}")
