"""The base class of the nodes, and its parts."""
