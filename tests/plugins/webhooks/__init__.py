"""The tests of webhooks, and their parts of the shared drivers."""
