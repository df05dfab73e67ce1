"""Process of a node: start, signals, watchdog, scheduling and exit."""
