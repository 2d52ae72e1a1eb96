"""The emulated account: its address, and clients for it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from botocore.config import Config
from botocore.credentials import RefreshableCredentials
from botocore.session import Session

if TYPE_CHECKING:
    from dualtrack_stack.local.credentials import Credentials

REGION: Final = "us-east-1"

_NOT_READ: Final = {
    "profile": (None, None, None, None),
    "config_file": (None, None, os.devnull, None),
    "credentials_file": (None, None, os.devnull, None),
}
"""botocore's own variables without their names in the environment."""


def emulated_session() -> Session:
    """A session that reads no AWS configuration of this machine, which may name a profile that does not exist."""
    return Session(session_vars=_NOT_READ)


@dataclass(frozen=True, slots=True)
class Aws:
    """Clients of the emulated account."""

    endpoint_url: str
    credentials: Credentials
    _session: Session = field(default_factory=emulated_session, repr=False, compare=False)

    def client(self, service: str) -> Any:
        """A client that ignores this machine's AWS configuration."""
        return self._session.create_client(
            service,
            region_name=REGION,
            endpoint_url=self.endpoint_url,
            aws_access_key_id=self.credentials.access_key,
            aws_secret_access_key=self.credentials.secret_key,
            aws_session_token=self.credentials.session_token,
            config=Config(
                retries={"max_attempts": 2, "mode": "standard"},
                s3={"addressing_style": "path"},
                connect_timeout=5,
                read_timeout=900,
            ),
        )


def role_client(aws: Aws, role_arn: str, service: str) -> Any:
    """A client with a role's credentials, as the role's function has them; it renews them."""
    sts = aws.client("sts")

    def assume() -> dict[str, str]:
        issued = sts.assume_role(RoleArn=role_arn, RoleSessionName="dualtrack-local")["Credentials"]
        return {
            "access_key": issued["AccessKeyId"],
            "secret_key": issued["SecretAccessKey"],
            "token": issued["SessionToken"],
            "expiry_time": issued["Expiration"].isoformat(),
        }

    credentials = RefreshableCredentials.create_from_metadata(
        assume(), refresh_using=assume, method="assume-role"
    )
    session = emulated_session()
    session._credentials = credentials  # type: ignore[attr-defined]  # botocore has no setter
    return session.create_client(
        service, region_name=REGION, endpoint_url=aws.endpoint_url, config=Config(max_pool_connections=50)
    )
