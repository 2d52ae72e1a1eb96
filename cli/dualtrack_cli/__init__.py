"""The `dualtrack` command: a client of any stack, and the way to the local one in a checkout."""
