"""Joint states as they arrive: sorted, dated, refused if impossible."""
