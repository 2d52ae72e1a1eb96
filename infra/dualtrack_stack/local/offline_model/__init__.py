"""The offline model: the Messages API on the loopback interface, answered by rules, not by a language model.

`service` is the API, `server` its HTTP surface. `wire` and `rules` refuse what the real API refuses, `reply` decides
the response, `script` lets a test decide it.
"""
