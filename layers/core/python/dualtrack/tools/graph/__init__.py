"""The graph: fifteen tools over one read-only interface, and the guard in front of it."""
