"""Laws of contacts and bounds: cones, residuals, responses, slopes."""
