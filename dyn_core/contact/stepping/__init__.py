"""Time stepping of robots with contacts."""
