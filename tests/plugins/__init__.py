"""The tests of plug-ins, a folder for each of `dualtrack.plugins`."""
