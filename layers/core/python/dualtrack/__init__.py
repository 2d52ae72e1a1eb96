"""dualtrack: the domain library of the agent backend.

Pure decisions on frozen values live here side by side with the small store and client
classes that do the I/O; handlers in ``functions/`` parse, call one function and return.
"""
