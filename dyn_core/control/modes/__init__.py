"""Control laws of the modes of the controller."""
