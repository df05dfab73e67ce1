"""Safety of a controller: checks of efforts, stops, stale states, the guard."""
