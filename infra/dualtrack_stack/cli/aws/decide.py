"""What `up` does next, decided from the state of the account. Pure: no calls, no questions."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, Literal

from dualtrack.checked_settings import WrongSettings, checked
from dualtrack.models.provider import provider_of
from dualtrack.settings import DEFAULTS, NOT_SET

from dualtrack_stack.cli.aws.facts import KEYS
from dualtrack_stack.cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from dualtrack.models.provider import Provider
    from dualtrack.settings import Settings

    from dualtrack_stack.cli.aws.facts import PoolUser, Stack

LEAST_BOOTSTRAP: Final = 6
"""The version that the CDK's default synthesizer requires (template rule CheckBootstrapVersion)."""
EXECUTIONS_OF_A_CHAT: Final = 3
"""Function executions that one chat keeps busy at the same time: its turn or tools, and its event stream."""

DeployAction = Literal["go", "wait", "delete", "stop"]


def before_deploy(stack: Stack | None) -> DeployAction:
    """The action that a stack needs before it can be deployed.

    ``wait``: a change is in progress, perhaps from a killed `up`. ``delete``: its creation failed, and
    CloudFormation cannot update such a stack. ``stop``: a person must decide.
    (CloudFormation User Guide, "Stack status codes")
    """
    if stack is None or stack.status == "REVIEW_IN_PROGRESS":  # a change set that was never executed
        return "go"
    if stack.status.endswith("_IN_PROGRESS"):
        return "wait"
    if stack.status in ("ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "CREATE_FAILED", "DELETE_FAILED"):
        return "delete"
    return "stop" if stack.status == "UPDATE_ROLLBACK_FAILED" else "go"


def needs_bootstrap(version: int | None) -> bool:
    """Whether the region needs the CDK's bootstrap."""
    return version is None or version < LEAST_BOOTSTRAP


def concurrency_means(limit: int) -> str:
    """The meaning of Lambda's concurrency limit for users."""
    chats = limit // EXECUTIONS_OF_A_CHAT
    text = f"Lambda allows {limit} concurrent executions here: about {chats} chats at a time"
    return text if limit >= 100 else f"{text}; further ones wait or get 503"


def of_concurrency(limit: int, kept: Mapping[str, str], settings: Mapping[str, str]) -> Mapping[str, str]:
    """The settings that follow from the account's concurrency. Streams may take half of it: the other half answers and
    works; the embeddings of one search or job a tenth. Without what the operator has set; what an earlier `up` has
    ``kept`` follows the account's limit."""
    derived = {
        "DUALTRACK_OPEN_STREAMS": str(limit // 2),
        "DUALTRACK_EMBED_CALLS": str(min(max(limit // 10, 1), DEFAULTS.dualtrack_embed_calls)),
    }
    return {name: text for name, text in derived.items() if not settings.get(name) or name in kept}


def chosen(settings: Mapping[str, str]) -> Settings:
    """All settings with their values. Raises `Missing`, a line for each that is wrong."""
    try:
        return checked(settings)
    except WrongSettings as wrong:
        raise Missing(str(wrong)) from None


def cost_cap_means(cap: float) -> str:
    """The cap for a stage's operator."""
    return f"at most ${cap:g} a chat" if cap else "no cap: DUALTRACK_MAX_COST is not set"


def raise_concurrency(region: str) -> str:
    """The command that requests a higher limit from AWS."""
    return (
        "aws service-quotas request-service-quota-increase --service-code lambda --quota-code L-B99A9384"
        f" --desired-value 1000 --region {region}"
    )


def key_problem(name: str, value: str, *, own_service: bool = False) -> str:
    """Why a value cannot be a key of that service (without the value); empty if it may be one.
    ``own_service``: the service's base address is set, so its keys may have any form.
    """
    key = KEYS[name]
    form = key.declared.form  # without one, a password or a list of headers
    if not value or not value.isprintable() or (form and (not value.isascii() or " " in value)):
        return f"{key.name}: empty, or contains a blank or a control character"
    if value == NOT_SET or own_service or not form or re.fullmatch(form, value, re.ASCII):
        return ""
    return f"{key.name}: a key of {name} {key.declared.expects}"


def keys_to_put(
    present: Collection[str], provided: Mapping[str, str], *, renew: bool = False
) -> Mapping[str, str]:
    """The keys to store: those provided but missing from the account, or all that were provided."""
    return {name: value for name, value in provided.items() if renew or name not in present}


def provider_in(settings: Mapping[str, str]) -> Provider:
    """Who serves the model."""
    return provider_of(settings.get("DUALTRACK_PROVIDER", ""))


def carried(recorded: Mapping[str, Any] | None, settings: Mapping[str, str]) -> dict[str, str]:
    """Settings that the last deployment had from its environment and that are in no file: answers to an
    earlier `up` are kept."""
    if recorded is None:
        return {}
    values = recorded.get("settings", {})
    return {
        name: str(values[name])
        for name in recorded.get("overriding", ())
        if values.get(name) and not settings.get(name)
    }


def page_to_allow(settings: Mapping[str, str], page: Stack | None) -> str:
    """The page's address if the sign-in does not redirect to it yet; empty if there is nothing to do."""
    if page is None or settings.get("DOMAIN"):
        return ""
    url = page.outputs.get("PageUrl", "")
    return "" if settings.get("PAGE_URL") == url else url


def switched_off(stacks: Mapping[str, Stack], settings: Mapping[str, str], *, page: bool) -> list[str]:
    """The deployed stacks, by their names in `STACKS`, of what the stage does not have any more."""
    wanted = {
        "page": page,
        "mcp": bool(settings.get("GITHUB_MCP_IMAGE")),
        "vectors": settings.get("DUALTRACK_COURSE_INDEX") == "s3vectors",
    }
    return [
        name
        for name, stack in stacks.items()
        if not wanted.get(name, True) and before_deploy(stack) in ("go", "stop")
    ]


def why_it_stays(name: str, in_network: Collection[int]) -> str:
    """Why a stack that is switched off cannot be deleted yet; empty if it can. ``in_network``: the published versions
    of the function ``mcp`` in the network of the MCP servers.
    """
    if name == "vectors":
        return (
            "It holds the courses' vectors, which are used again when it is switched on. To delete it, delete the"
            " indexes of its bucket first (`aws s3vectors list-indexes`, `delete-index`)."
        )
    if name == "mcp" and in_network:
        numbers = ", ".join(map(str, sorted(in_network)))
        return (
            f"Versions {numbers} of the function mcp, of earlier releases, are in its network:"
            " `dualtrack aws prune --keep 2` deletes them once there are two newer ones, then `up` asks again."
        )
    return ""


def is_not_verified(page: Stack | None) -> bool:
    """Whether CloudFront refused the account, as it does for new ones until AWS has verified them."""
    return page is not None and "must be verified" in page.reason.lower()


NewUser = Literal["none", "create", "group", "password"]


def first_user(admins: Collection[PoolUser], user: PoolUser | None, *, shown: bool) -> NewUser:
    """The step that is missing for the first administrator.

    ``shown``: the password is shown here and not mailed, so if an earlier `up` was killed before it showed
    the password, a new one is needed.
    """
    if admins:
        unused = user is not None and user in admins and user.status == "FORCE_CHANGE_PASSWORD"
        return "password" if shown and unused else "none"
    return "group" if user else "create"


def name_of(email: str) -> str:
    """A user name for an address: the pool uses addresses as aliases, so they cannot be names."""
    return re.sub(r"[^\w.+-]", "-", email.split("@", maxsplit=1)[0], flags=re.ASCII)[:64] or "admin"


def is_address(email: str) -> bool:
    """Whether it can be an e-mail address."""
    return re.fullmatch(r"[^@\s]{1,64}@[^@\s]+\.[^@\s]+", email) is not None
