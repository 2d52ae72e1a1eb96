"""The tests of schedules, and their parts of the shared drivers."""
