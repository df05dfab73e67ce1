"""How the process of a node runs, waits and ends."""
