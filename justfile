# `uv run just` lists these; CONTRIBUTING.md has when to use them.

_list:
    @just --list --unsorted

# ruff, ruff format, pyrefly
check:
    uv run --group lint ruff check .
    uv run --group lint ruff format --check .
    uv run --group test --group lint pyrefly check

# ruff's own repairs
format:
    uv run --group lint ruff check --fix .
    uv run --group lint ruff format .

# the tests of a file or folder, in this process
test +PATHS:
    uv run --group test pytest -n 0 {{ PATHS }}

# most tests, in their short forms
test-all:
    uv run --group test pytest

# what CI runs: outside tools, all tests, no skips
ci:
    bash .ci/run

# the local stage's templates, after a change in infra/
synth:
    uv run --extra deploy python -m dualtrack_stack.local.synth

# the layers' versions, after a change of uv.lock
versions:
    uv export --quiet --frozen --all-extras --no-default-groups --no-hashes --no-emit-project --no-header --no-annotate --output-file layers/versions.txt

# the documents' tables of settings, after a change of a setting
tables:
    uv run python -m dualtrack_stack.setting_tables

# the local stack with its page
dev *OPTIONS:
    uv run dualtrack dev {{ OPTIONS }}

# ruff before each commit
hooks:
    uvx pre-commit install
