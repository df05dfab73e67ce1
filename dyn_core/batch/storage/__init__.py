"""Where the rows of a batch come from, and where its results go."""
