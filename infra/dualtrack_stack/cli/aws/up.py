"""``dualtrack aws up``: from an account to the first chat, in numbered steps.

Each step reads the account, does what is missing, and leaves the rest unchanged. Nothing is stored on this
machine, so after an interruption simply run `up` again, from here or elsewhere.
"""

from __future__ import annotations

import os
import secrets
import string
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from dualtrack.settings import declared, keys_of

from dualtrack_stack.cli.aws import decide
from dualtrack_stack.cli.aws.account import AwsAccount, AwsRefusal
from dualtrack_stack.cli.aws.cdk import Cdk, own_app
from dualtrack_stack.cli.aws.facts import KEYS, STACKS, prefix
from dualtrack_stack.cli.aws.options import region_option, stage_option
from dualtrack_stack.cli.aws.questions import Person, Steps
from dualtrack_stack.cli.aws.rolled_back import clear_rolled_back
from dualtrack_stack.cli.aws.waiting import wait_until_settled
from dualtrack_stack.cli.command import exit_codes
from dualtrack_stack.cli.target import Missing
from dualtrack_stack.project.function import how_to_put, secret_parameter
from dualtrack_stack.project.model import BadProject
from dualtrack_stack.roots import project_root

if TYPE_CHECKING:
    from collections.abc import Mapping

    from dualtrack_stack.cli.aws.facts import Stack
    from dualtrack_stack.settings import Configuration


@dataclass(frozen=True, slots=True)
class Wishes:
    """The command's options; None means that `up` decides or asks."""

    stage: str
    email: str | None = None
    user: str | None = None
    page: bool | None = None
    show_password: bool = False
    renew_keys: bool = False
    settings_folder: Path | None = None
    assembly: Path | None = None


@dataclass
class Up:
    """One run of `up`."""

    wishes: Wishes
    account: AwsAccount
    person: Person
    steps: Steps
    settings: dict[str, str] = field(default_factory=dict)
    """The deployed settings: from file, environment and the previous deployment."""
    extra: dict[str, str] = field(default_factory=dict)
    """Those that are neither in a file nor in this process's environment."""

    def run(self) -> None:
        """All steps."""
        account_id = self._account()
        self._limits()
        self._bootstrap(account_id)
        self._keys()
        stacks = self._deploy()
        stacks = self._address(stacks)
        self._first_user(stacks)
        self._next(stacks)

    # 1
    def _account(self) -> str:
        self.steps.begin("Account, region and settings")
        caller = self.account.caller()
        if not self.account.region:
            raise Missing("There is no AWS region: give --region or set AWS_REGION.")
        self.steps.say(f"{caller.arn}, region {self.account.region}, stage {self.wishes.stage}")
        settings = read_stage(self.wishes)
        is_new = self.account.stack(f"{prefix(self.wishes.stage)}-chat") is None
        if is_new and not self.person.agrees(
            f"Deploy {prefix(self.wishes.stage)} to the account {caller.account} in {self.account.region}?"
        ):
            raise Missing("Nothing was changed.")
        self.extra = decide.carried(self.account.recorded(self.wishes.stage), settings.given)
        if is_new and settings.stage.alarms and not settings.given.get("ALARM_EMAIL"):
            self._ask_for_alarms()
        self.settings = {**self.extra, **settings.given}
        if self.extra:
            self.steps.say(f"Kept from an earlier deployment or set now: {', '.join(sorted(self.extra))}")
        self.steps.say(f"Cost cap: {decide.cost_cap_means(decide.chosen(self.settings).dualtrack_max_cost)}")
        self._page = settings.stage.page
        return caller.account

    def _ask_for_alarms(self) -> None:
        address = self.person.says(
            "Where should alarms be sent? (one e-mail address, empty for none)",
            "ALARM_EMAIL",
            _address,
            optional=True,
        )
        self.extra |= {"ALARM_EMAIL": address} if address else {}

    # 2
    def _limits(self) -> None:
        self.steps.begin("Limits of the account")
        limit = self.account.concurrency()
        self.steps.say(f"{decide.concurrency_means(limit)}.")
        bound = decide.of_concurrency(limit, self.extra, self.settings)
        self.extra |= bound
        if "DUALTRACK_OPEN_STREAMS" in bound:
            self.steps.say(f"Streams, of which each is an execution, may take {limit // 2} of them.")
        if limit < 100:
            self.steps.say(
                f"AWS usually raises it within a day: {decide.raise_concurrency(self.account.region)}"
            )
        if self._page and self._choose_page():
            self.steps.say(
                "CloudFront serves page and API. New accounts are refused until AWS has verified them."
            )

    def _choose_page(self) -> bool:
        """Whether to deploy the page: as before, as the option says, or as the user answers."""
        deployed = self.account.stack(f"{prefix(self.wishes.stage)}-page")
        if self.wishes.page is not None:
            self._page = self.wishes.page
        elif deployed is None or decide.before_deploy(deployed) == "delete":
            self._page = self.person.agrees(
                "Deploy the web page with CloudFront? (`page = false` in the settings file skips this question)"
            )
        return self._page

    # 3
    def _bootstrap(self, account_id: str) -> None:
        self.steps.begin("CDK bootstrap")
        version = self.account.bootstrap()
        if not decide.needs_bootstrap(version):
            self.steps.say(f"Version {version} is installed.")
            return
        self._wait_for("CDKToolkit")
        self._cdk().bootstrap(account_id)
        self.steps.say(f"Version {self.account.bootstrap()} was installed.")

    # 4
    def _keys(self) -> None:
        self.steps.begin("Keys")
        present = self.account.keys(self.wishes.stage)
        secrets_ = read_secrets(self.wishes.stage)
        given = {key: os.environ[name] for key, name in secrets_.items() if os.environ.get(name)}
        provided = {**self._provided_keys(present), **given}
        for name, value in decide.keys_to_put(present, provided, renew=self.wishes.renew_keys).items():
            self.account.put_key(self.wishes.stage, name, value)
            self.steps.say(f"Put /{prefix(self.wishes.stage)}/{name}")
        kept = [
            name
            for name in (*KEYS, *secrets_)
            if name in present and not (self.wishes.renew_keys and name in provided)
        ]
        if kept:
            self.steps.say(f"Already stored: {', '.join(kept)} (--renew-keys replaces them)")
        stored = self.account.keys(self.wishes.stage)
        for name in stored & {*KEYS, *secrets_}:
            self.account.tag_key(self.wishes.stage, name)  # also one that was stored by hand
        for name in (name for key, name in secrets_.items() if key not in stored):
            self.steps.say(
                f"The tools' secret {name} is missing: set {name} and run `up` again, or\n"
                f"{how_to_put(secret_parameter(name, self.wishes.stage), self.account.region)}"
            )
        provider = decide.provider_in(self.settings)
        if not provider.key:
            self.steps.say(f"{provider.title} uses the functions' roles: no key needed.")

    def _provided_keys(self, present: frozenset[str]) -> dict[str, str]:
        provided = keys_of()
        for name, value in provided.items():
            if problem := self._key_problem(name, value):
                raise Missing(f"{problem}. It comes from the environment; nothing was stored.")
        provider = decide.provider_in(self.settings)
        if not provider.key:
            return provided
        name = declared()[provider.key].stored
        if name not in provided and (name not in present or self.wishes.renew_keys):
            provided[name] = self.person.keeps_secret(
                provider.question,
                provider.key,
                lambda value: self._key_problem(name, value),
                optional=False,
            )
        return provided

    def _key_problem(self, name: str, value: str) -> str:
        own = bool(self.settings.get(KEYS[name].declared.service.upper()))
        return decide.key_problem(name, value, own_service=own)

    # 5
    def _deploy(self) -> dict[str, Stack]:
        self.steps.begin("Deployment (10 minutes and more at first, with CloudFront up to 25)")
        self._ready_to_deploy()
        before = self.account.stacks(self.wishes.stage)
        for name in self._switched_off(before):
            self.steps.say(
                f"{prefix(self.wishes.stage)}-{name} is switched off: first the rest goes without it"
            )
        if url := decide.page_to_allow(self.settings, before.get("page")):
            self.extra["PAGE_URL"] = url
        try:
            self._cdk_deploy()
        except AwsRefusal:
            stacks = dict(self.account.stacks(self.wishes.stage))
            if not decide.is_not_verified(stacks.get("page")):
                raise
            self._without_page()
        return self._remove_switched_off(dict(self.account.stacks(self.wishes.stage)))

    def _switched_off(self, stacks: Mapping[str, Stack]) -> list[str]:
        return decide.switched_off(stacks, {**self.settings, **self.extra}, page=self._page)

    def _remove_switched_off(self, stacks: dict[str, Stack]) -> dict[str, Stack]:
        """Delete the stacks of what is switched off, if the user agrees; the remaining stacks."""
        from dualtrack_stack.costs import month_of  # noqa: PLC0415 - an installed wheel has none

        for name in self._switched_off(stacks):
            full = stacks[name].name
            dollars = month_of(self.account.template(full), self.account.region)
            self.steps.say(
                f"{full} is switched off, and costs about ${dollars:.2f} a month while it stays, storage apart."
            )
            if reason := decide.why_it_stays(name, self._in_network(name, stacks)):
                self.steps.say(reason)
            elif self.person.is_there and self.person.agrees(f"Delete {full}?", default=False):
                self._delete(full)
            else:
                region = self.account.region
                self.steps.say(f"aws cloudformation delete-stack --stack-name {full} --region {region}")
        return dict(self.account.stacks(self.wishes.stage))

    def _delete(self, full: str) -> None:
        self.account.delete_stack(full)
        if after := self._wait_for(full):
            self.steps.say(f"{full} is {after.status}: {after.reason}\nThe next `up` tries again.")
        else:
            self.steps.say(f"{full} is deleted.")

    def _in_network(self, name: str, stacks: Mapping[str, Stack]) -> frozenset[int]:
        if name != "mcp":
            return frozenset()
        return self.account.versions_in_network(stacks["chat"].outputs["McpFunction"])

    def _cdk_deploy(self) -> None:
        context = {"stage": self.wishes.stage}
        if self.wishes.settings_folder:
            context["settings"] = str(self.wishes.settings_folder.resolve())
        # the chat stack deploys everything it needs; no other stack needs the page
        stacks = ["--all"] if self._page else ["Chat"]
        self._cdk().deploy(stacks, context, self.extra)

    def _without_page(self) -> None:
        """CloudFront refused the account: the rest is deployed; continue without the page."""
        self._page = False
        self.steps.say(
            "CloudFront refuses this account until AWS has verified it: ask AWS Support (a case of the kind\n"
            '"Account and billing", "CloudFront: verify my account"), then `up --page` adds the page.\n'
            "The API works without it."
        )

    def _ready_to_deploy(self) -> None:
        """Wait for changes in progress, and remove what a failed creation or a rolled-back update has left."""
        for name in STACKS:
            full = f"{prefix(self.wishes.stage)}-{name}"
            stack = self._wait_for(full)
            action = decide.before_deploy(stack)
            if action == "stop" and stack:
                raise AwsRefusal(
                    f"{full} is {stack.status}: {stack.reason}\nFix the cause, then:"
                    f" aws cloudformation continue-update-rollback --stack-name {full} --region {self.account.region}"
                )
            if action == "delete" and stack:
                self.steps.say(f"{full} is {stack.status} ({stack.reason}): deleting it first")
                self.account.delete_stack(full)
                self._wait_for(full)
        clear_rolled_back(self.account, self.wishes.stage, self.steps.progress)

    def _wait_for(self, name: str) -> Stack | None:
        return wait_until_settled(self.account, name, self.steps)

    # 6
    def _address(self, stacks: dict[str, Stack]) -> dict[str, Stack]:
        self.steps.begin("Address of the page for the sign-in")
        url = decide.page_to_allow({**self.settings, **self.extra}, stacks.get("page"))
        if not url:
            self.steps.say("Nothing to do.")
        elif self.wishes.assembly:
            self.steps.say(
                f"Synthesise with PAGE_URL={url} and run `up` again: the sign-in then redirects there."
            )
        else:
            self.steps.say(f"Allowing the sign-in to redirect to {url}: a second deployment of some stacks")
            self.extra["PAGE_URL"] = url
            self._cdk_deploy()
        return dict(self.account.stacks(self.wishes.stage))

    # 7
    def _first_user(self, stacks: dict[str, Stack]) -> None:
        self.steps.begin("First user")
        pool = stacks["identity"].outputs["UserPoolId"]
        admins = self.account.admins(pool)
        wanted = self.wishes.user or (decide.name_of(self.wishes.email) if self.wishes.email else "")
        if not wanted and not admins:
            wanted = self._ask_for_user()
        user = self.account.user(pool, wanted) if wanted else None
        todo = decide.first_user(admins, user, shown=self.wishes.show_password)
        if todo == "none":
            self.steps.say(f"Administrators: {', '.join(admin.name for admin in admins[:5])}")
            return
        password = new_password() if self.wishes.show_password else ""
        if todo == "create":
            self.account.create_user(pool, wanted, self._email, password)
        elif password:
            self.account.set_password(pool, wanted, password)
        self.account.make_admin(pool, wanted)
        self.steps.say(f"{wanted} is an administrator.")
        if password:
            self.steps.say(f"Temporary password, shown this once: {password}")
        elif todo == "create":
            self.steps.say(f"A temporary password was mailed to {self._email} (check the junk folder too).")

    @property
    def _email(self) -> str:
        return self.wishes.email or self._answered_email

    _answered_email: str = ""

    def _ask_for_user(self) -> str:
        self._answered_email = self.person.says(
            "E-mail address of the first user, who becomes an administrator",
            "--email",
            _address,
        )
        return decide.name_of(self._answered_email)

    # 8
    def _next(self, stacks: dict[str, Stack]) -> None:
        self.steps.begin("What next")
        page = stacks["page"].outputs["PageUrl"] if self._page and "page" in stacks else ""
        api = stacks["chat"].outputs["ApiUrl"].rstrip("/")
        stage = self.wishes.stage
        self.steps.say(
            f"Open {page} and sign in" if page else f"The API: {api}/v1/chats (docs: {api}/openapi.json)"
        )
        self.steps.say(f"Check everything:  uv run dualtrack aws smoke --stage {stage}")
        self.steps.say(f"Find what is wrong: uv run dualtrack aws doctor --stage {stage}")
        self.steps.say(f"Questions asked: {self.person.asked}")

    def _cdk(self) -> Cdk:
        app = str(self.wishes.assembly.resolve()) if self.wishes.assembly else own_app()
        log = Path(".dualtrack") / f"aws-{self.wishes.stage}.log"
        return Cdk(self.account.region, app, log.resolve(), self.steps.progress)


def read_stage(wishes: Wishes) -> Configuration:
    """The stage's settings. Raises `Missing` with what is wrong in them."""
    from dualtrack_stack.settings import BadSettings, read_settings  # noqa: PLC0415 - extra `deploy`

    try:
        return read_settings(wishes.stage, os.environ, wishes.settings_folder)
    except BadSettings as problem:
        raise Missing(str(problem)) from problem


def read_secrets(stage: str) -> dict[str, str]:
    """The names of the secrets of the project's tools, by what follows the stage's prefix in their parameters' names.
    Raises `Missing` with what is wrong in the project."""
    from dualtrack_stack.project.read import read_project  # noqa: PLC0415 - loads pydantic

    try:
        names = read_project(project_root(), stage).own(stage).secrets
    except BadProject as problem:
        raise Missing(str(problem)) from problem
    return {secret_parameter(name, stage).removeprefix(f"/{prefix(stage)}/"): name for name in names}


def _address(text: str) -> str:
    return "" if decide.is_address(text) else "that is not an e-mail address"


def new_password() -> str:
    """A password that meets the pool's policy: 16 characters of four kinds."""
    kinds = (string.ascii_lowercase, string.ascii_uppercase, string.digits, "-_.!")
    picked = [secrets.choice(kind) for kind in kinds]
    picked += [secrets.choice("".join(kinds[:3])) for _ in range(12)]
    secrets.SystemRandom().shuffle(picked)
    return "".join(picked)


@click.command()
@stage_option
@region_option
@click.option(
    "--yes", is_flag=True, help="Ask nothing: take all answers from options, settings and environment."
)
@click.option(
    "--email", help="The first user's address, an administrator; the temporary password goes there."
)
@click.option("--user", help="The first user's name; by default the address up to its @.")
@click.option("--show-password", is_flag=True, help="Show the temporary password here instead of mailing it.")
@click.option("--page/--no-page", default=None, help="With or without CloudFront and the web page.")
@click.option("--renew-keys", is_flag=True, help="Replace stored keys with those of the environment.")
@click.option(
    "--settings",
    "settings_folder",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The project's folder, if it is not this one.",
)
@click.option(
    "--assembly",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Deploy this folder of synthesised templates (a pipeline's cdk.out) instead of synthesising.",
)
def up(
    stage: str,
    region: str | None,
    *,
    yes: bool,
    email: str | None,
    user: str | None,
    show_password: bool,
    page: bool | None,
    renew_keys: bool,
    settings_folder: Path | None,
    assembly: Path | None,
) -> None:
    """Deploy a stage, from an empty account to the first chat. Run it again after every change.

    Every step reads the account and does only what is missing, so it can be interrupted at any point and run
    again. Keys come from ANTHROPIC_API_KEY and similar variables, or are entered without being shown.

    \b
    Exit codes: 0 deployed, 2 something is missing, 4 AWS or the CDK refused.
    """
    with exit_codes():
        if email and not decide.is_address(email):
            raise Missing(f"--email: {email} is not an e-mail address.")
        wishes = Wishes(stage, email, user, page, show_password, renew_keys, settings_folder, assembly)
        Up(wishes, AwsAccount(region), Person(yes=yes), Steps(8)).run()
