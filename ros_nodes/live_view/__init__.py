"""The command `dyn view`, also of live joint states."""
