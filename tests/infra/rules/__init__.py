"""Rules over the synthesised templates for what AWS refuses or fails silently, and no emulator shows.

A rule is a function of a template that yields what is wrong; its docstring names the source. Each rule comes with the
smallest template that breaks it, and a test shows that the rule detects it. A new rule needs nothing else; a new module
must be imported by ``test_aws_rules.py``.
"""
