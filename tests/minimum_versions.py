"""Print the oldest packages that pyproject.toml allows and this Python has wheels of."""

import re
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # comes with pytest there

# The first releases with wheels for a Python, where pyproject.toml allows older ones.
FIRST = {
    (3, 11): {"pyyaml": "6.0.1"},
    (3, 12): {"numpy": "1.26.0", "scipy": "1.11.2", "pyyaml": "6.0.1"},
    (3, 13): {"numpy": "2.1.0", "scipy": "1.14.1", "pyyaml": "6.0.2"},
}


def main():
    """Print one requirement a word."""
    text = Path(__file__).parents[1].joinpath("pyproject.toml").read_text("utf-8")
    first = next(
        (FIRST[v] for v in sorted(FIRST, reverse=True) if sys.version_info >= v), {}
    )
    for line in tomllib.loads(text)["project"]["dependencies"]:
        name, version = re.fullmatch(r"([\w-]+)>=([\d.]+).*", line).groups()
        print(f"{name}=={first.get(name, version)}", end=" ")


if __name__ == "__main__":
    main()
