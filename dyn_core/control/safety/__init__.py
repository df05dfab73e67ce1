"""Safety of a controller: checks of efforts, stops, silence, the guard."""
