"""An account proved from its ledger, read in a stage's own table.

The API shows no line's parts, and what is to be proved is not asked of the functions that wrote it. So this
takes AWS credentials (``cloudformation:DescribeStacks``, ``dynamodb:GetItem``, ``dynamodb:Query``) and only reads.
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

from dualtrack_cli.client import Unreachable
from dualtrack_cli.target import Missing

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Clients = Callable[[str], Any]

__all__ = ["ALIAS", "Proof", "prove"]

_READS: Final = 10


@dataclass(frozen=True, slots=True)
class Proof:
    """How many lines the ledger has, and what the account says otherwise than they do."""

    user_id: str
    lines: int
    differences: tuple[str, ...]

    def body(self) -> Mapping[str, Any]:
        """As ``--json`` prints it."""
        return {"user_id": self.user_id, "lines": self.lines, "differences": self.differences}


def prove(user_id: str, stage: str, clients: Clients | None = None) -> Proof:
    """Read the account and its ledger in the table of a stage.

    ``clients`` gives the account's client of a service; without it the environment's credentials do. Raises
    `Missing` if there is no account and `Unreachable` if the table cannot be read.
    """
    try:
        session: Any = boto3.Session()
        return _proof(_ledger(clients or session.client, stage), user_id)
    except (BotoCoreError, ClientError, Contended) as error:
        raise Unreachable(f"Cannot read the credits of the stage {stage}: {error}") from error


def _ledger(clients: Clients, stage: str) -> Ledger:
    described = clients("cloudformation").describe_stacks(StackName=f"dualtrack-{stage}-data")
    outputs = {one["OutputKey"]: one["OutputValue"] for one in described["Stacks"][0]["Outputs"]}
    return Ledger(clients("dynamodb"), outputs["CreditsTable"])


def _proof(ledger: Ledger, user_id: str) -> Proof:
    for _ in range(_READS):
        account = ledger.load(user_id)
        lines = ledger.movements(user_id)
        # A movement writes both, so they belong together if none was made while they were read.
        if ledger.load(user_id) == account:
            break
    else:
        raise Contended("The account moved too often.")
    if not (account.seq or lines):
        raise Missing(f"No account of a user {user_id}: the first movement makes it.")
    return Proof(user_id, len(lines), audit(account, lines))
