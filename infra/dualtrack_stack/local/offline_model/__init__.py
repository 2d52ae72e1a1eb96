"""The offline model: the Messages API on the loopback interface, answered by rules, not by a language model.

`server` is the HTTP surface, `wire` and `rules` refuse what the real API refuses, `reply` decides the response,
`script` lets a test decide it.
"""
