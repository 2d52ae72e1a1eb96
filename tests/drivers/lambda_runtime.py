"""What a function finds on Lambda without a layer of ours."""

from __future__ import annotations

import sys
from typing import Final

from dualtrack_stack.layers import Role

from tests.drivers.documents import ROOT

SDK: Final = frozenset({"boto3", "botocore", "dateutil", "jmespath", "s3transfer", "six", "urllib3"})
"""Top-level modules of the AWS SDK that the Python runtime includes (AWS Lambda Developer Guide, "Building Lambda
functions with Python", section "Runtime-included SDK versions"; what it needs is in the SDK's own metadata).
The runtime interface client and what that needs are there too, but are nothing that a function may count on.
"""

HOOKS: Final = frozenset({"snapshot_restore_py"})
"""What the Python runtime includes for SnapStart (AWS Lambda Developer Guide, "Lambda SnapStart runtime hooks
for Python"); on this machine it is not there, and a function does without it.
"""

RUNTIME: Final = Role("runtime", parent=ROOT / "tests" / "fixtures")
"""The same as requirements, to resolve for this machine."""

REMOVED: Final = frozenset(
    {
        # Python 3.12, "What's New", section "Removed"
        "asynchat", "asyncore", "distutils", "imp", "smtpd",
        # Python 3.13: PEP 594, and 2to3
        "aifc", "audioop", "cgi", "cgitb", "chunk", "crypt", "imghdr", "lib2to3", "mailcap", "msilib", "nis",
        "nntplib", "ossaudiodev", "pipes", "sndhdr", "spwd", "sunau", "telnetlib", "uu", "xdrlib",
    }
)  # fmt: skip
"""Standard library modules of 3.11 that the functions' 3.13 no longer has."""

STANDARD: Final = frozenset(sys.stdlib_module_names) - REMOVED
