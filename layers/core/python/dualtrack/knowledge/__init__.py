"""Retrieval over any texts: words, BM25, vectors, embedders and the fusion of rankings; what is searched is above."""
