"""The command: python -m fuzz."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from fuzz.campaign import Campaign
from fuzz.doors import KINDS
from fuzz.trial import LIMIT


def main(argv: Sequence[str] | None = None) -> int:
    """Try random files; return the exit status: 1 if one fails."""
    parser = argparse.ArgumentParser(
        "python -m fuzz",
        description="Random files of every kind: each is read, or refused in one"
        " sentence.",
    )
    parser.add_argument(
        "--n", type=int, default=500, help="files (default: %(default)s)"
    )
    parser.add_argument("--kind", choices=(*KINDS, "all"), default="all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help="CPU time for a file [s]"
    )
    parser.add_argument("--show", type=Path, help="folder for files that fail")
    arguments = parser.parse_args(argv)
    progress = sys.stderr if sys.stderr.isatty() else None
    failed = 0
    for kind in KINDS if arguments.kind == "all" else (arguments.kind,):
        campaign = Campaign(
            kind,
            arguments.n,
            arguments.seed,
            arguments.limit,
            folder=arguments.show,
        )
        campaign.run(progress)
        print(campaign, flush=True)
        failed += campaign.failed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
