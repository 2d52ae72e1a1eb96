"""Course materials: documents are read, cut into chunks and indexed; two tools find their way in them.

document ─► `Course` ─► `Chunk`s ─► vectors ─► `Index` (one object of a version) ─► `search`, `resolve` ─► the tools
"""
