"""`python -m votive.new_op NAME`: write a new operator into a checkout of the repository, ready to be filled in."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Run the script, which lies beside the package and not in it."""
    root = Path(__file__).resolve().parent.parent
    if not (root / "scripts" / "new_op").is_dir():
        print(f"new_op writes into a checkout of the repository; {root} is none.", file=sys.stderr)
        return 2
    sys.path.insert(0, str(root))
    from scripts.new_op import main as run

    return run(sys.argv[1:])


if __name__ == "__main__":
    raise SystemExit(main())
