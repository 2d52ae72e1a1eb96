"""dualtrack: the domain library of the agent backend.

It has pure decisions on frozen values, and the small store and client classes that do the I/O.
Handlers in ``functions/`` parse, call one function and return.
"""

__version__ = "1.0.0"
"""The one place of the version: package, commands, OpenAPI document and documents have it from here."""
