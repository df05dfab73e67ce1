"""Controllers of ros2_control: packages of ament_cmake around exported cycles."""

RUNS_WHILE_TRACED = "never"  # a mark, see engines/llvm/cached/fingerprint.py
