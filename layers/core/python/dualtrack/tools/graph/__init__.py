"""The graph: fifteen tools over a read-only interface, and the guard in front of it."""
