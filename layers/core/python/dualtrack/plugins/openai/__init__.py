"""OpenAI's API over dualtrack's own chats (CONTRACT 10): what its clients send, and what they are answered."""
