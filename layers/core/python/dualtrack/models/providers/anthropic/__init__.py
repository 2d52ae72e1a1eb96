"""Claude at Anthropic, or behind a gateway that passes the Messages API on."""
