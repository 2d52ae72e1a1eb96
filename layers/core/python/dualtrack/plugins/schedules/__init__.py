"""Messages that become chats at their due times, with nobody waiting (docs/schedules.md)."""
