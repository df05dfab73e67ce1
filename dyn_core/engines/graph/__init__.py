"""The Graph: traced operations, rewrite rules, straight-line Python."""
