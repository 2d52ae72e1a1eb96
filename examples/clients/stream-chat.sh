#!/bin/sh
# Ask dualtrack and print the chat's events as they arrive; an interrupted stream is resumed.
#
#   sh examples/clients/stream-chat.sh "How do I set up OAuth for Twitter ads?"
#
# Needs curl and python3 (for JSON). DUALTRACK_URL: the API (default: the local stack). DUALTRACK_TOKEN: an ID
# token (default: one of the local stack). Exit 0 if the chat was answered, 1 if it failed.
set -eu

url=${DUALTRACK_URL:-http://127.0.0.1:8000}
field() { python3 -c 'import json, sys; print(json.load(sys.stdin)[sys.argv[1]])' "$1"; }

token=${DUALTRACK_TOKEN:-$(curl -sSf "$url/dev/token" | field token)}
body=$(python3 -c 'import json, sys; print(json.dumps({"message": sys.argv[1]}))' "$1")
chat=$(curl -sS --fail-with-body -H "Authorization: Bearer $token" -H 'Content-Type: application/json' \
    -H "Idempotency-Key: $(python3 -c 'import uuid; print(uuid.uuid4())')" -d "$body" "$url/v1/chats") || {
    echo "$chat" >&2
    exit 1
}
events=$(printf %s "$chat" | field events_url)

seen=$(mktemp)
trap 'rm -f "$seen"' EXIT
last=
for _ in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
    curl -sSN --fail-with-body -H "Authorization: Bearer $token" ${last:+-H "Last-Event-ID: $last"} \
        "$url$events" | tee "$seen" || true
    # an event is complete once its empty line has arrived; an incomplete one is sent again
    whole=$(awk '/^id: / { id = $2 } /^event: / { name = $2 } /^$/ && id { print id, name; id = "" }' "$seen" | tail -n 1)
    [ -z "$whole" ] || last=${whole%% *}
    case $whole in
        *" done") exit 0 ;;
        *" error") exit 1 ;;
    esac
    sleep 1
done
exit 1
