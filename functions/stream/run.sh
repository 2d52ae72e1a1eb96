#!/bin/sh
# Lambda Web Adapter starts this in place of a handler and waits for the port.
exec env PYTHONPATH="$LAMBDA_TASK_ROOT:/opt/python" python3 -m uvicorn --factory app:app \
    --host 127.0.0.1 --port "${AWS_LWA_PORT:-8080}" --log-level warning --timeout-keep-alive 75
