"""Documentation search: Context7, hybrid ranking, rerank, sources (DESIGN 4).

``spec`` is light and may be imported anywhere; ``pipeline`` and ``dependencies`` load httpx, numpy, voyageai and the
SDK, and belong to the search function alone.
"""
