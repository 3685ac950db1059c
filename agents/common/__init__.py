"""Parts that several agents share."""
