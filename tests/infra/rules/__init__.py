"""What AWS refuses, or lets fail silently, and no emulator shows: rules over the synthesised templates.

A rule is a function of a template that yields what is wrong; its docstring names the source. Beside it stands the
smallest template that breaks it, and a test shows that the rule sees that. A new rule needs nothing else; a new module
is imported by ``test_aws_rules.py``.
"""
