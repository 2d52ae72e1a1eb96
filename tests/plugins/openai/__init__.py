"""The tests of OpenAI's API, and their parts of the shared drivers."""
