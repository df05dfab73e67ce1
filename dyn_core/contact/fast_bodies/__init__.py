"""Contacts of fast bodies, which move in a step by more than half their thickness."""
