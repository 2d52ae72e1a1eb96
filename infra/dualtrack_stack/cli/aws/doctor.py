"""``dualtrack aws doctor``: what is wrong with a stage, and the command that fixes it."""

from __future__ import annotations

import sys
import time
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import click
import httpx
from dualtrack.chat_times import LONGEST
from dualtrack.clock import epoch_of
from dualtrack.ids import chat_of_execution
from dualtrack.models.prices import at_contract, price_list
from dualtrack.models.provider import provider_of
from dualtrack.settings import DEFAULTS, declared

from dualtrack_stack.cli.aws import decide
from dualtrack_stack.cli.aws.account import AwsAccount, AwsRefusal
from dualtrack_stack.cli.aws.facts import KEYS, prefix
from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.aws.rolled_back import find_left
from dualtrack_stack.cli.aws.up import Wishes, read_secrets, read_stage
from dualtrack_stack.cli.command import Exit, colour, exit_codes, json_option, print_json
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.cli.transcript import one_line
from dualtrack_stack.project.function import how_to_put, secret_parameter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from dualtrack.settings import Settings

    from dualtrack_stack.cli.aws.facts import PoolUser, Stack
    from dualtrack_stack.cli.aws.rolled_back import OldVersions
    from dualtrack_stack.settings import Configuration

FindingState = Literal["ok", "note", "wrong", "unknown"]
STUCK_SECONDS: Final = LONGEST.chat + 5 * 60.0
"""No chat lasts longer (CONTRACT 7), and the sweep ends remaining ones within five minutes."""
PRICES_DAYS: Final = 90
"""Older prices of models are a finding."""
_QUEUES: Final = (
    ("Queue of undelivered events", "UndeliveredQueueUrl"),
    ("Queue of failures", "FailedQueueUrl"),
)
_SIGNS: Final = {
    "ok": ("✓", "green"),
    "note": ("·", "yellow"),
    "wrong": ("✗", "red"),
    "unknown": ("?", "yellow"),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """``seen`` is the observed state, ``mend`` the command or advice that helps; empty if nothing has to be
    done. ``unknown``: it could not be read.
    """

    check: str
    state: FindingState
    seen: str
    mend: str = ""


# What the observed state means (pure)


def of_bootstrap(version: int | None, stage: str) -> Finding:
    """The CDK's bootstrap."""
    if decide.needs_bootstrap(version):
        seen = "none" if version is None else f"version {version}, {decide.LEAST_BOOTSTRAP} is needed"
        return Finding("CDK bootstrap", "wrong", seen, f"uv run dualtrack aws up --stage {stage}")
    return Finding("CDK bootstrap", "ok", f"version {version}")


def of_concurrency(limit: int, region: str) -> Finding:
    """The limit of Lambda."""
    few = limit < 100
    return Finding(
        "Lambda concurrency",
        "note" if few else "ok",
        decide.concurrency_means(limit),
        decide.raise_concurrency(region) if few else "",
    )


def of_stacks(stage: str, stacks: Mapping[str, Stack]) -> Iterator[Finding]:
    """Every existing stack, and the required ones."""
    again = f"uv run dualtrack aws up --stage {stage}"
    for name in ("data", "identity", "chat"):
        if name not in stacks:
            yield Finding(f"Stack {prefix(stage)}-{name}", "wrong", "missing", again)
    for stack in stacks.values():
        action = decide.before_deploy(stack)
        mend, state = "", "ok"
        if action == "wait":
            state, mend = "note", "a change is in progress: wait, or run `up`, which waits"
        elif action == "stop":
            state, mend = "wrong", f"aws cloudformation continue-update-rollback --stack-name {stack.name}"
        elif action == "delete":
            state, mend = "wrong", again
        elif stack.status == "UPDATE_ROLLBACK_COMPLETE":
            state, mend = "note", f"the latest change was rolled back; fix the cause, then: {again}"
        seen = f"{stack.status} {stack.reason}".strip() if state != "ok" else stack.status
        yield Finding(f"Stack {stack.name}", state, seen, mend)  # type: ignore[arg-type]  # one of State above


def of_switched_off(stack: Stack, dollars: float, stage: str) -> Finding:
    """A stack of what the stage does not have any more; ``dollars`` a month."""
    seen = f"switched off; costs about ${dollars:.2f} a month while it stays, storage apart"
    return Finding(f"Stack {stack.name}", "note", seen, f"uv run dualtrack aws up --stage {stage}")


def of_keys(stage: str, present: frozenset[str], settings: Mapping[str, str]) -> Finding:
    """The keys in the Parameter Store."""
    key = declared().get(decide.provider_in(settings).key)
    if key and key.stored not in present:
        mend = f"{key.name}=… uv run dualtrack aws up --stage {stage}"
        return Finding("Keys", "wrong", f"no {key.stored}: every chat fails", mend)
    without = [name for name in KEYS if name not in present]
    return Finding(
        "Keys",
        "ok",
        f"present: {', '.join(sorted(present & KEYS.keys())) or 'none'}; missing: {', '.join(without) or 'none'}",
    )


def of_secrets(stage: str, region: str, missing: Sequence[str]) -> Finding:
    """The secrets of the project's tools that the Parameter Store does not have, by name."""
    if not missing:
        return Finding("Secrets of tools", "ok", "none is missing")
    mend = how_to_put(secret_parameter(missing[0], stage), region)
    return Finding("Secrets of tools", "wrong", f"missing: {', '.join(missing)}", mend)


def of_model(status: int, model: str, stage: str, key: str) -> Finding:
    """The service's answer for the model (``GET /v1/models/{id}``). ``key``: the setting with the key that it got."""
    if status in (401, 403):
        mend = f"{key}=… uv run dualtrack aws up --stage {stage} --renew-keys"
        return Finding("Model", "wrong", f"the key is refused ({status})", mend)
    if status == 404:
        return Finding(
            "Model", "wrong", f"{model} is unknown", "set DUALTRACK_MODEL in the settings file, then `up`"
        )
    if status == 200:
        return Finding("Model", "ok", f"{model} answers")
    return Finding("Model", "unknown", f"the service answers {status}")


def of_prices(settings: Settings, now: float) -> Finding:
    """The price list of this release: how old it is, and whether it has the model."""
    known, model, provider = price_list(), settings.dualtrack_model, settings.dualtrack_provider
    days = int((now - epoch_of(known.taken_on + "T00:00:00Z")) // 86_400)
    if at_contract(model, settings.dualtrack_model_prices, provider) is None:
        name = provider_of(provider).served(model)
        seen = f"none is known of {name}: caps and receipts count its maker's dearest model"
        return Finding(
            "Prices", "note", seen, "uv run dualtrack prices has the names; another release may have it"
        )
    if days > PRICES_DAYS:
        mend = "a newer release, or uv run --group test python -m tests.drivers.model_prices in a checkout"
        return Finding("Prices", "note", f"those of models are of {known.taken_on}, {days} days old", mend)
    return Finding("Prices", "ok", f"those of models are of {known.taken_on}")


def of_subscription(confirmed: int, waiting: int, email: str, stage: str) -> Finding:
    """Who is notified of alarms."""
    if confirmed:
        return Finding("Alarms", "ok", f"{confirmed} subscribed")
    if waiting:
        return Finding(
            "Alarms",
            "wrong",
            "the subscription is not confirmed",
            f"follow the link in AWS's mail to {email}",
        )
    mend = f"ALARM_EMAIL=… uv run dualtrack aws up --stage {stage}"
    return Finding("Alarms", "wrong", "no subscription", mend)


def of_queue(name: str, messages: int, url: str) -> Finding:
    """One of the two dead-letter queues."""
    if not messages:
        return Finding(name, "ok", "empty")
    mend = f"aws sqs receive-message --queue-url {url}   (what to do: docs/aws/runbooks.md)"
    return Finding(name, "wrong", f"about {messages} messages", mend)


def of_executions(running: Sequence[tuple[str, float]], now: float) -> Finding:
    """Chats that have run for longer than a chat can."""
    stuck = [chat_of_execution(name) for name, began in running if now - began > STUCK_SECONDS]
    if stuck:
        mend = f"uv run dualtrack explain {stuck[0]}"
        return Finding(
            "Chats", "wrong", f"{len(stuck)} run for more than 20 minutes: {', '.join(stuck[:3])}", mend
        )
    return Finding("Chats", "ok", f"{len(running)} running, none stuck")


def of_settings(lines: Sequence[str], stage: str) -> Finding:
    """Settings that the next deployment would drop (`dualtrack_stack.settings.dropped`)."""
    if lines:
        mend = f"write it into [stage.{stage}.settings] of dualtrack.toml"
        return Finding("Settings", "note", "; ".join(lines), mend)
    return Finding("Settings", "ok", "the next deployment drops no setting")


def of_left(left: OldVersions, stage: str) -> Finding:
    """What a rolled-back deployment has left."""
    if not left.count:
        return Finding("Versions", "ok", "none of a rolled-back deployment")
    seen = f"{left.count} of a rolled-back deployment: without their deletion the same code is not deployed again"
    if left.busy:
        seen = f"{seen}; chats still run on {len(left.busy)}"
    mend = f"uv run dualtrack aws prune --stage {stage} --rolled-back   (`up` does it first)"
    return Finding("Versions", "note", seen, mend)


def of_cost_cap(cap: float, stage: str) -> Finding:
    """The cap in dollars on what a chat may cost (docs/credits.md)."""
    mend = (
        ""
        if cap
        else f"DUALTRACK_MAX_COST = 0.50 in [stage.{stage}.settings] of dualtrack.toml sets one; a profile has its own"
    )
    return Finding("Cost cap", "ok" if cap else "note", decide.cost_cap_means(cap), mend)


def of_admins(admins: Sequence[PoolUser], stage: str) -> Finding:
    """The administrators."""
    if not admins:
        mend = f"uv run dualtrack aws up --stage {stage} --email you@example.org"
        return Finding("Administrators", "wrong", "none", mend)
    new = [admin.name for admin in admins if admin.status == "FORCE_CHANGE_PASSWORD"]
    seen = f"{len(admins)}" + (f"; never signed in: {', '.join(new[:3])}" if new else "")
    return Finding("Administrators", "ok", seen)


# Reading the account


class Doctor:
    """Inspects one stage of one account."""

    def __init__(self, account: AwsAccount, stage: str, settings: Configuration, now: float) -> None:
        self._account = account
        self._stage = stage
        self._settings = settings
        self._now = now

    def findings(self) -> Iterator[Finding]:
        """All checks; one that cannot be read is ``unknown`` and does not stop the others."""
        account, stage = self._account, self._stage
        try:
            caller = account.caller()
        except AwsRefusal as problem:
            yield Finding(
                "Credentials", "wrong", one_line(str(problem), 300), "aws configure sso; export AWS_PROFILE=…"
            )
            return
        yield Finding("Credentials", "ok", f"{caller.arn}, {account.region}")
        yield from _tried("CDK bootstrap", lambda: [of_bootstrap(account.bootstrap(), stage)])
        yield from _tried(
            "Lambda concurrency", lambda: [of_concurrency(account.concurrency(), account.region)]
        )
        try:
            stacks = account.stacks(stage)
        except AwsRefusal as problem:
            yield Finding("Stacks", "unknown", one_line(str(problem), 300))
            return
        yield from of_stacks(stage, stacks)
        yield from _tried("Stacks", lambda: self._switched_off(stacks))
        yield from _tried("Keys", lambda: [of_keys(stage, account.keys(stage), self._deployed())])
        yield from _tried("Secrets of tools", self._secrets)
        yield from _tried("Settings", self._drift)
        yield from _tried(
            "Cost cap", lambda: [of_cost_cap(decide.chosen(self._deployed()).dualtrack_max_cost, stage)]
        )
        yield from _tried("Model", self._model)
        yield from _tried("Prices", self._prices)
        if identity := stacks.get("identity"):
            pool = identity.outputs.get("UserPoolId", "")
            yield from _tried("Administrators", lambda: [of_admins(account.admins(pool), stage)])
        if chat := stacks.get("chat"):
            yield from self._of_chat(chat.outputs)

    def _of_chat(self, outputs: Mapping[str, str]) -> Iterator[Finding]:
        account = self._account
        yield from _tried("Versions", lambda: [of_left(find_left(account, self._stage), self._stage)])
        for name, output in _QUEUES:
            if url := outputs.get(output):
                yield from _tried(name, partial(self._queue, name, url))
        if machine := outputs.get("StateMachineArn"):
            yield from _tried("Chats", lambda: [of_executions(account.running_since(machine), self._now)])
        if topic := outputs.get("AlarmTopicArn"):
            email = self._deployed().get("ALARM_EMAIL", "")
            yield from _tried(
                "Alarms", lambda: [of_subscription(*account.subscriptions(topic), email, self._stage)]
            )

    def _secrets(self) -> list[Finding]:
        present = self._account.keys(self._stage)
        missing = [name for key, name in read_secrets(self._stage).items() if key not in present]
        return [of_secrets(self._stage, self._account.region, missing)]

    def _queue(self, name: str, url: str) -> list[Finding]:
        return [of_queue(name, self._account.messages(url), url)]

    def _switched_off(self, stacks: Mapping[str, Stack]) -> list[Finding]:
        from dualtrack_stack.costs import month_of  # noqa: PLC0415 - an installed wheel has none

        kept = decide.carried(self._account.recorded(self._stage), self._settings.given)
        settings = {**kept, **self._settings.given}
        off = decide.switched_off(stacks, settings, page=self._settings.stage.page)
        found = [stacks[name] for name in off]
        return [
            of_switched_off(
                stack, month_of(self._account.template(stack.name), self._account.region), self._stage
            )
            for stack in found
        ]

    def _deployed(self) -> Mapping[str, str]:
        recorded = self._account.recorded(self._stage) or {}
        # a release that did not record its settings: use those of the file
        environment: Mapping[str, str] = recorded.get("settings", self._settings.given)
        return environment

    def _drift(self) -> list[Finding]:
        from dualtrack_stack.settings import dropped  # noqa: PLC0415 - an installed wheel has none

        try:
            decide.chosen(self._deployed())
        except Missing as wrong:
            mend = f"correct it in dualtrack.toml, then: uv run dualtrack aws up --stage {self._stage}"
            return [Finding("Settings", "wrong", one_line(str(wrong), 600), mend)]
        recorded = self._account.recorded(self._stage)
        kept = set(decide.carried(recorded, self._settings.given))  # `up` passes these again
        return [of_settings(dropped(recorded or {}, self._settings, kept), self._stage)]

    def _prices(self) -> list[Finding]:
        return [of_prices(decide.chosen(self._deployed()), self._now)]

    def _model(self) -> list[Finding]:
        settings = self._deployed()
        model = decide.chosen(settings).dualtrack_model
        provider = decide.provider_in(settings)
        if not provider.key:
            seen = f"{model} on {provider.title}: access can only be tested by a call"
            return [Finding("Model", "note", seen, f"{provider.opened}; `smoke` tests it")]
        if address := settings.get(provider.address):
            return [Finding("Model", "note", f"a server of your own, {address}; `smoke` tests it")]
        key = self._account.key(self._stage, declared()[provider.key].stored)
        headers = {"Authorization": f"Bearer {key}", "x-api-key": key, "anthropic-version": "2023-06-01"}
        try:
            answer = httpx.get(
                f"{provider.address_in(DEFAULTS)}/v1/models/{model}", headers=headers, timeout=10
            )
        except httpx.TransportError as problem:
            return [Finding("Model", "unknown", f"cannot be reached from here: {problem}")]
        return [of_model(answer.status_code, model, self._stage, provider.key)]


def _tried(check: str, look: Callable[[], list[Finding]]) -> list[Finding]:
    try:
        return look()
    except (AwsRefusal, Missing) as problem:
        return [Finding(check, "unknown", one_line(str(problem), 300))]


def is_well(findings: Sequence[Finding]) -> bool:
    """Whether nothing is wrong."""
    return not any(finding.state == "wrong" for finding in findings)


def _show(findings: Sequence[Finding]) -> None:
    for finding in findings:
        sign, name = _SIGNS[finding.state]
        click.echo(f"{click.style(sign, fg=name)} {finding.check}: {finding.seen}", color=colour())
        if finding.mend:
            click.echo(f"    → {finding.mend}")


@click.command()
@stage_option
@region_option
@click.option(
    "--settings",
    "settings_folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project's folder, if it is not this one.",
)
@json_option
def doctor(stage: str, region: str | None, settings_folder: Path | None, *, as_json: bool) -> None:
    """Check a stage for every known problem, and show the command that fixes each.

    \b
    Exit codes: 0 nothing is wrong, 4 something is.
    """
    with exit_codes():
        settings = read_stage(Wishes(stage, settings_folder=settings_folder))
        findings = tuple(Doctor(AwsAccount(region), stage, settings, time.time()).findings())
        if as_json:
            listed: list[dict[str, Any]] = [asdict(finding) for finding in findings]
            print_json({"stage": stage, "well": is_well(findings), "findings": listed})
        else:
            _show(findings)
        sys.exit(Exit.ANSWERED if is_well(findings) else Exit.FAILED)
