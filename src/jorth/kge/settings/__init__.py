"""The settings of a training run: given, by name, or following from the graph."""
