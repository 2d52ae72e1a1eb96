"""What a stage has for schedules: a function that a timer calls every minute."""

from __future__ import annotations

from typing import Final

from dualtrack_stack.stacks.function_spec import (
    BY_TIMER,
    MEMORY,
    OWN,
    PAST,
    FunctionSpec,
    PluginStack,
    Retries,
    Timer,
)

_SCHEDULE: Final = FunctionSpec(
    "schedule",
    "Starts the chats of schedules that are due",
    seconds=55,  # the next run comes in a minute
    memory=256,  # no user waits for it
    layers=("base", "arguments", "schedules"),  # client tools are checked as a chat is admitted
    environment=(*MEMORY, "CREDITS_TABLE", "CACHE_TABLE", "STATE_MACHINE_ARN", "UPGRADE_MESSAGE"),
    retries=Retries(0, 60),  # the next run comes in a minute
    admits=True,
    permissions=lambda allow: [
        # the items that `api` writes to admit a chat, and the schedules
        allow.table("chats", *OWN, "BatchGetItem"),
        allow.table("history", *OWN, *PAST),
        allow.table("credits", "GetItem", "PutItem"),
        # names of MCP tools, which client tools may not have
        allow.table("cache", "GetItem"),
        allow.bodies("GetObject", "PutObject", "DeleteObject"),
        # what an admission has written that fails is deleted
        allow.list_bodies(),
        allow.open_chats("Query"),
        allow.machine("chat", "StartExecution"),
    ],
)

STACK: Final = PluginStack(
    functions=(_SCHEDULE,),
    timers=(Timer("Schedules", "rate(1 minute)", "schedule", BY_TIMER, 0),),  # the next one comes in a minute
    api_layers=("schedules",),  # routes check due times
)
