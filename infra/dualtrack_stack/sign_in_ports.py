"""Where a browser leads back to the terminal that signs in: the addresses that the template allows and
`dualtrack login` listens on. Plain values: nothing here loads the CDK.
"""

from __future__ import annotations

from typing import Final

PORTS: Final = (27311, 27312, 27313)
"""Fixed, because Cognito compares addresses with their ports; three, because one may be taken. None is in a range that
systems give to outgoing connections (Linux from 32768, macOS and Windows from 49152 on)."""

PATH: Final = "/signed-in"


def address_at(port: int) -> str:
    """The address of a port. By name: Cognito takes plain HTTP for ``localhost`` alone."""
    return f"http://localhost:{port}{PATH}"
