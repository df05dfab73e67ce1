"""Components of the node `simulator`."""
