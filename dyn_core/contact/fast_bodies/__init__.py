"""Contacts of bodies that move farther in a step than they are thick."""
