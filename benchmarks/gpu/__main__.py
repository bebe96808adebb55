"""`python -m benchmarks.gpu [SUITE ...] [--only REGEX] [--json FILE]`: kernels and steps on this GPU; also as
`python -m benchmarks.compare gpu`. Without names all suites run, and models.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from pathlib import Path
from typing import Any

from . import failure, measure, show


def main(argv: list[str] | None = None) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="SUITE", help="only these suites")
    parser.add_argument("--only", default="", help="cases whose name matches")
    parser.add_argument(
        "--suites", default="memory_bound,moving,losses,products,epilogues,bytes_products,attentions,calls,pictures"
    )
    parser.add_argument("--models", action=argparse.BooleanOptionalAction, default=True)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args(argv)
    if args.names:
        args.suites, args.models = ",".join(args.names), False
    from . import calls, kernels, pictures, products

    rows = []
    for suite in args.suites.split(","):
        try:
            home = next(m for m in (kernels, products, calls, pictures) if hasattr(m, suite))
            for case in getattr(home, suite)():
                if re.search(args.only, case.name):
                    began = time.perf_counter()
                    rows.append(measure(case))
                    print(show(rows[-1]), f"[{time.perf_counter() - began:.1f} s]", flush=True)
        except Exception as e:  # one suite that cannot be set up must not hide the others
            rows.append(failure(suite, e))
            print(show(rows[-1]), flush=True)
    if args.models:
        from . import models

        for whole in (models.training, models.torch_training, models.decoding):
            try:
                found = whole()
            except Exception as e:  # torch or transformers may be missing, or memory
                found = [failure(whole.__name__, e)]
            for row in found:
                rows.append(row)
                rate = row.get("failed") or f"{row['votive']:,.0f} tokens/s"
                print(f"{row['name']:44} {rate}", flush=True)
    if args.json:
        args.json.write_text(json.dumps(rows, indent=1))
    return rows


if __name__ == "__main__":
    sys.exit(any("failed" in row for row in main()))
