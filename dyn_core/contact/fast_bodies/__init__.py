"""Contacts of fast bodies, which move farther in a step than they are thick."""
