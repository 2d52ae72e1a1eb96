"""The `dualtrack` command: a client of any stack; with the extra `local` it runs the local stack."""
