"""Machine code on disk, and the digests under which it is found."""
