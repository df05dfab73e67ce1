"""Commands on motions and runs: sim, id, fd, report, excite, export."""
