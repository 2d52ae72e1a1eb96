"""Course materials: documents are read, cut into chunks and indexed; two tools search them.

document ─► `Course` ─► `Chunk`s ─► vectors ─► `Index` (one object of a version) ─► `search`, `resolve` ─► the tools
"""
