"""Joint states as received: merged, dated, and refused if implausible."""
