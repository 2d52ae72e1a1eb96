"""Documents of any ordinary kind, in collections that agents search (docs/documents.md)."""
