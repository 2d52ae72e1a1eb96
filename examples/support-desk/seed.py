"""Puts sample tickets of one customer into the table: ``uv run python seed.py CUSTOMER`` (README.md)."""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

from tools.desk import table

SAMPLES = (
    (1001, 50, "closed", "The lamp came without a bulb", None),
    (1002, 33, "closed", "Wrong size of shade", "PX-77120"),
    (1003, 31, "closed", "Invoice with the old address", None),
    (1004, 12, "open", "The replacement has not arrived", "PX-80455"),
    (1005, 3, "open", "A second lamp at the same price?", None),
)
"""Number, days ago, status, subject, parcel."""


def main(customer: str) -> None:
    """Write the samples; tickets of these numbers are replaced."""
    with table().batch_writer() as batch:
        for number, days, status, subject, parcel in SAMPLES:
            opened = (datetime.now(UTC) - timedelta(days=days)).date().isoformat()
            item = {
                "customer": customer,
                "number": number,
                "status": status,
                "subject": subject,
                "opened": opened,
            }
            batch.put_item(Item={**item, "parcel": parcel} if parcel else item)
    print(f"{len(SAMPLES)} tickets of {customer}")


if __name__ == "__main__":
    main(*sys.argv[1:])
