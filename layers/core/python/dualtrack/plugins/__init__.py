"""Capabilities, each a folder that can be deleted (`dualtrack.plugin`)."""
