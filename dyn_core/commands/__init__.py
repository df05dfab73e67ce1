"""Commands of `dyn`, except those defined beside their subject."""
