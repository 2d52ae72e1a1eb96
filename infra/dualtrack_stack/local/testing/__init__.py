"""Whole chats within a process, for tests of tools and agents: what `dualtrack.testing` offers (docs/testing.md).

`workflow` takes the library's steps in the order of the state machine, `aws` has their stores in memory, `script` is
the model, strict as the real service is, and `local_chat` is what a test uses.
"""
