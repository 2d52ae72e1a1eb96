"""Course materials: reads documents, cuts them into chunks and indexes them for two tools.

document ─► `Course` ─► `Chunk`s ─► vectors ─► `Index` (one object per version) ─► `search`, `resolve` ─► the tools
"""
