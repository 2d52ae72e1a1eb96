"""One module per stack, and the constructs they share."""
