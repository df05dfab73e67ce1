"""Steps in time, and control laws."""
