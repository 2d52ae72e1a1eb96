"""Evaluations of a project's agents: cases in ``evals/``, run as chats within the process (docs/evaluate.md).

`case` is what a file may say, `files` reads it, `services` answers the model's calls, `run` takes a case through a
chat, `checks` and `judge` decide, `compare` and the reports show.
"""
