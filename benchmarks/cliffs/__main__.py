"""votive against torch on random shapes: `python -m benchmarks.cliffs cpu|cuda --seconds 300 --seed 1`.

    --count N       this many cases instead of as many as the time allows
    --filter REGEX  only cases whose line matches
    --case 'LINE'   these cases (may be given several times), as printed by a run before
    --warm N        with --count: first run every case once in N processes, so that kernels are compiled
    --json FILE     every figure; also read by --again FILE, which measures its suspects again

Cases follow from the seed. Both sides run in one process in turns on the same numbers, and are compared once.
What looks slower than 1.2 of torch is measured again, three times and later, and the median of those counts.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import json
import math
import os
import re
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .spec import Spec

AGAIN = 3


def parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.cliffs", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("device", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, help="300, or as long as it takes where cases are counted or named")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=0)
    parser.add_argument("--filter", default="")
    parser.add_argument("--case", action="append", default=[])
    parser.add_argument("--again", type=Path, help="cases above 1.2 in this JSON")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--worst", type=int, default=40, help="how many rows to show")
    parser.add_argument("--scale", choices=["full", "tiny"], default="full", help="tiny: only to see that cases run")
    parser.add_argument("--warm", type=int, default=0, metavar="N", help="compile kernels in N processes first")
    parser.add_argument("--share", default="", help=argparse.SUPPRESS)  # one of those processes
    parser.add_argument("--verbose", action="store_true", help="print each case before it runs")
    args = parser.parse_args(argv)
    if args.warm and not (args.count or args.case or args.again):
        parser.error("--warm needs to know the cases: give --count, --case or --again")
    if args.seconds is None:
        args.seconds = math.inf if args.count or args.case or args.again else 300.0
    return args


def cases(args: argparse.Namespace) -> Iterator[Spec]:
    """The cases asked for; endless unless they are given."""
    from .family import case

    if args.case:
        yield from map(Spec.parse, args.case)
        return
    if args.again:
        rows = json.loads(args.again.read_text())["rows"]
        slow = [r for r in rows if r["ratio"] > 1.2 or "failed" in r or "differs" in r]
        yield from (s for s in (Spec.parse(r["case"]) for r in slow) if re.search(args.filter, str(s)))
        return
    scale = args.device if args.scale == "full" else "tiny"
    number = found = 0
    while not args.count or found < args.count:
        spec = case(number, args.seed, scale)
        number += 1
        if re.search(args.filter, str(spec)):
            found += 1
            yield spec


def main(argv: list[str] | None = None) -> list[Any]:
    """Measure, look at suspects again, report."""
    args = parse(argv)
    os.environ.setdefault("OMP_NUM_THREADS", str(args.threads))  # read by both when imported
    faulthandler.enable()
    if args.share:
        from .warm import run_share

        run_share(cases(args), args.share, args.device)
        return []
    if args.warm:
        from .warm import warm

        warm(sys.argv[1:] if argv is None else argv, args.warm)
    import torch

    import votive

    from .measure import SUSPECT, Result, first_look, look_again
    from .report import record, row, summary

    torch.set_num_threads(args.threads)
    votive.set_num_threads(args.threads)
    began = time.perf_counter()
    results: list[Result] = []

    def left() -> float:
        return args.seconds - (time.perf_counter() - began)

    def progress(text: str) -> None:
        if sys.stderr.isatty() or args.verbose:
            print(f"\r{text[:150]:150}", end="\n" if args.verbose else "", file=sys.stderr, flush=True)

    try:
        told = began
        for spec in cases(args):
            if left() < args.seconds / 3 < math.inf:  # a third of the time is for suspects
                break
            progress(f"{len(results)} cases, {left():.0f} s left: {spec}")
            results.append(first_look(spec, args.device))
            if time.perf_counter() - told > 60:
                told = time.perf_counter()
                print(f"{len(results)} cases in {told - began:.0f} s", flush=True)
            if len(results) % 50 == 0:
                gc.collect()
        for turn in range(AGAIN):
            suspects = sorted((r for r in results if r.ran and r.ratios[0] > SUSPECT), key=lambda r: -r.ratio)
            for i, suspect in enumerate(suspects):
                if left() < 0:
                    break
                progress(f"again, {turn + 1} of {AGAIN}: {i} of {len(suspects)} suspects: {suspect.spec}")
                look_again(suspect, args.device)
    except KeyboardInterrupt:
        print("stopped", file=sys.stderr)
    progress("")
    if args.case:
        print("\n".join(map(row, results)))
    print(summary(results, args.worst))
    print(f"{args.device}, torch {torch.__version__}, seed {args.seed}, {time.perf_counter() - began:.0f} s")
    if args.json:
        found = {"configuration": votive.config.show().splitlines(), "torch": torch.__version__}
        found |= {"device": args.device, "threads": args.threads, "seed": args.seed}
        found |= {"seconds": time.perf_counter() - began, "load_average": os.getloadavg()}
        args.json.write_text(json.dumps(found | {"rows": [record(r) for r in results]}, indent=1) + "\n")
    return results


if __name__ == "__main__":
    main()
