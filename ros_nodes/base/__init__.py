"""Base class of the lifecycle nodes and the classes that it is composed of."""
