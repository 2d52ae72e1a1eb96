"""The `dualtrack` command: a client of any stack; in a checkout it also runs the local stack."""
