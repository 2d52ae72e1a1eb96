"""What a stage has for webhooks: a function that a timer calls every minute, and what operators are told of it."""

from __future__ import annotations

from typing import Final

from dualtrack_stack.stacks.function_spec import BY_TIMER, Alarm, FunctionSpec, PluginStack, Retries, Timer

_KEYS: Final = "HOOKS#*"
_SHARDS: Final = "hooks#*"
"""`dualtrack.storage.outbox`; written out, because the templates' key does not cover it."""

_DELIVER: Final = FunctionSpec(
    "deliver",
    "Tells webhooks what has happened",
    seconds=90,  # a run takes 50 s, and as long as one webhook's turn
    memory=256,  # it waits for receivers
    layers=("base",),
    environment=("CHATS_TABLE", "CONNECTIONS_KEY"),
    retries=Retries(0, 60),  # the next one comes in a minute
    tells=True,
    permissions=lambda allow: [
        # webhooks and what waits for them, and their part of the index of what is open; no chat
        allow.items("chats", _KEYS, "BatchGetItem", "Query", "PutItem", "UpdateItem", "DeleteItem"),
        allow.open_chats("Query", _SHARDS),
        allow.connections("Decrypt"),  # their secrets
        *allow.event_bus(),
    ],
)

STACK: Final = PluginStack(
    functions=(_DELIVER,),
    timers=(Timer("Deliver", "rate(1 minute)", "deliver", BY_TIMER, 0),),  # the next one comes in a minute
    alarms=(
        Alarm(
            "WebhookDisabled",
            "deliver",
            "A webhook has taken nothing for three days, or wants no more, and is disabled; its owner's list says so",
            metric="WebhooksDisabled",
        ),
        Alarm("DeliveriesStopped", "deliver", "No webhook was told anything for a quarter of an hour"),
    ),
)
