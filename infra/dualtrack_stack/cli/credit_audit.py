"""Checks an account against its ledger, read directly from a stage's table. The API does not show the parts
of a line, and the check should not depend on the functions that wrote the account. So this needs AWS
credentials (``cloudformation:DescribeStacks``, ``dynamodb:GetItem``, ``dynamodb:Query``) and only reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import boto3
from botocore.exceptions import BotoCoreError, ClientError
from dualtrack.credits.audit import audit
from dualtrack.errors import Contended
from dualtrack.storage.deletions import ALIAS
from dualtrack.storage.ledger import Ledger

from dualtrack_stack.cli.client import Unreachable
from dualtrack_stack.cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Clients = Callable[[str], Any]

__all__ = ["ALIAS", "Proof", "prove"]

_READS: Final = 10


@dataclass(frozen=True, slots=True)
class Proof:
    """The number of ledger lines, and the differences between them and the account."""

    user_id: str
    lines: int
    differences: tuple[str, ...]

    def body(self) -> Mapping[str, Any]:
        """As ``--json`` prints it."""
        return {"user_id": self.user_id, "lines": self.lines, "differences": self.differences}


def prove(user_id: str, stage: str, clients: Clients | None = None) -> Proof:
    """Read the account and its ledger in the table of a stage.

    ``clients`` returns the account's client of a service; by default with the environment's credentials. Raises
    `Missing` if there is no account and `Unreachable` if the table cannot be read.
    """
    try:
        session: Any = boto3.Session()
        return _proof(_ledger(clients or session.client, stage), user_id)
    except (BotoCoreError, ClientError, Contended) as error:
        raise Unreachable(f"Cannot read the credits of the stage {stage}: {error}") from error


def _ledger(clients: Clients, stage: str) -> Ledger:
    described = clients("cloudformation").describe_stacks(StackName=f"dualtrack-{stage}-data")
    outputs = {output["OutputKey"]: output["OutputValue"] for output in described["Stacks"][0]["Outputs"]}
    return Ledger(clients("dynamodb"), outputs["CreditsTable"])


def _proof(ledger: Ledger, user_id: str) -> Proof:
    for _ in range(_READS):
        account = ledger.load(user_id)
        lines = ledger.movements(user_id)
        # A movement writes both, so they are consistent if there was none while they were read.
        if ledger.load(user_id) == account:
            break
    else:
        raise Contended("The account changed too often while it was read.")
    if not (account.seq or lines):
        raise Missing(f"No account of a user {user_id}: it is created by the first movement.")
    return Proof(user_id, len(lines), audit(account, lines))
