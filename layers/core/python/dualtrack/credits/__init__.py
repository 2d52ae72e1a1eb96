"""Credits: what things cost, what an account allows, and the ledger that proves it."""
