"""Machine code on disk, and the digests by which it is found."""
