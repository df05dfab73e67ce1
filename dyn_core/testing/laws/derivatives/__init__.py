"""Laws of derivatives."""
