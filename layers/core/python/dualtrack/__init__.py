"""dualtrack: the domain library of the agent backend.

It has pure decisions on frozen values, and the small store and client classes that do the I/O.
Handlers in ``functions/`` parse, call one function and return.
"""
