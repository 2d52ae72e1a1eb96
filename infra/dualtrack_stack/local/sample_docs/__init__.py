"""A Context7-shaped server with a few sample documents, so that documentation search works offline.

The documents in ``documents/`` were written for dualtrack: the vendors' own pages may say more.
"""
