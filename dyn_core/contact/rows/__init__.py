"""The rows of a contact problem: contacts, limits, loops, gears, friction."""
