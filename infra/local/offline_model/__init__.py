"""The offline model: the Messages API on the loopback interface, answered by rules, not by a language model.

`server` is the HTTP surface, `wire` and `rules` refuse what the real API refuses, `reply` decides what
to say, `script` lets a test say it instead.
"""
