"""Control laws."""
