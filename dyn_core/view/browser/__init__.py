"""The viewer in a browser, and its pages."""
