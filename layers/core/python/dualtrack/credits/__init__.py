"""Credits: prices, accounts, and the ledger that proves them."""
