"""The command `dyn view`, including a view of live joint states."""
