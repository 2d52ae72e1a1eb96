"""Who is told, by ids alone, what happens to a user's chats (docs/webhooks.md)."""
