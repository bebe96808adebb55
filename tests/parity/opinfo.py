"""Command line of the comparison with torch: prints what harness finds, decides nothing."""

from __future__ import annotations

import argparse
import gc
import os
import sys
import time
from collections.abc import Iterator
from fnmatch import fnmatchcase

# Before torch and NumPy start their thread pools: samples are tiny, and the machine may be shared.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import torch

from . import known
from .compare import Rules
from .harness import DTYPES, MODES, OPS, OpReport, Settings, check, crashed
from .resolve import counterpart
from .subject import Subject, torch_subject, votive_subject
from .workers import forked

_SHORT = {
    "forward": "fwd",
    "keywords": "kw",
    "inplace": "inpl",
    "inplace_grad": "inpl-grad",
    "gradgrad": "grad2",
    "errors": "err",
}


def main(argv: list[str] | None = None) -> int:
    """Parse, run, print; 1 where something disagreed."""
    options = _parse(argv)
    torch.set_num_threads(1)
    gc.freeze()
    subject = torch_subject() if options.self_check else votive_subject()
    names = [name for name in OPS if _wanted(name, options.patterns)]
    if not names:
        sys.exit(f"no OpInfo matches {' '.join(options.patterns)}; names look like nn.functional.gelu")
    if options.missing:
        return _print_missing(names, subject, options.verbose)
    settings = _settings(options)
    start, reports = time.perf_counter(), []
    for report in _reports(names, settings, subject, options.jobs):
        reports.append(report)
        _print_report(report, options)
    return _print_totals(reports, time.perf_counter() - start)


def _parse(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.parity.opinfo", description=__doc__)
    add = parser.add_argument
    add("patterns", nargs="*", help="names or globs: add, gelu, 'linalg.*', 'div:*'; all if none")
    add("--dtype", action="append", default=[], help=f"repeat or comma-separate; {','.join(DTYPES)}")
    for mode in ("keywords", "method", "alias", "inplace", "out", "errors", "grad", "gradgrad"):
        add(f"--{mode}", action="append_const", dest="modes", const=mode, help=MODES[mode].__doc__)
    add("--all", action="store_true", help="every mode")
    add("--no-forward", action="store_true", help="leave the plain function call out")
    add("--max-samples", type=int, help="per operator and dtype, spread over the list")
    add("--reference", action="store_true", help="torch's larger set of reference inputs")
    add("--strides", action="store_true", help="compare strides of outputs too")
    add("--views", action="store_true", help="compare which outputs are views of arguments")
    add("--missing", action="store_true", help="list operators that votive lacks, run nothing")
    add("--self-check", action="store_true", help="compare torch with itself")
    add("--failing", action="store_true", help="print only operators that disagree")
    add("--seconds", type=float, default=120.0, help="time limit per operator")
    add("-j", "--jobs", type=int, default=1, help="processes; 0 runs in this one")
    add("-v", "--verbose", action="count", default=0, help="all distinct failures; -vv: tracebacks")
    return parser.parse_args(argv)


def _settings(options: argparse.Namespace) -> Settings:
    chosen = set(MODES) if options.all else {"forward", *(options.modes or ())}
    if {"inplace", "grad"} <= chosen:
        chosen.add("inplace_grad")
    if options.no_forward:
        chosen.discard("forward")
    dtypes = [d for group in options.dtype for d in group.split(",")] or list(DTYPES)
    return Settings(
        modes=tuple(mode for mode in MODES if mode in chosen),
        dtypes=tuple(dtypes),
        max_samples=options.max_samples,
        reference=options.reference,
        rules=Rules(strides=options.strides),
        views=options.views,
        seconds=options.seconds,
    )


def _wanted(name: str, patterns: list[str]) -> bool:
    base = name.split(":")[0]
    forms = {name, base, base.rsplit(".", 1)[-1]}
    return not patterns or any(fnmatchcase(form, p) for p in patterns for form in forms)


def _reports(names: list[str], settings: Settings, subject: Subject, jobs: int) -> Iterator[OpReport]:
    if jobs < 1:
        yield from (check(OPS[name], settings, subject) for name in names)
        return
    work = lambda name: check(OPS[name], settings, subject)
    # The operator's own alarm comes first; this one is for code that never returns to Python.
    for name, result in forked(names, work, jobs, settings.seconds + 10):
        yield result if isinstance(result, OpReport) else crashed(name, result)


def _print_report(report: OpReport, options: argparse.Namespace) -> None:
    if report.missing or (options.failing and not report.failures):
        return
    counts = "  ".join(
        f"{_SHORT.get(mode, mode)} {tally.ok}/{tally.total}" for mode, tally in report.tallies.items() if tally.total
    )
    mark = "FAIL" if report.failures else "ok"
    slow = f"  {report.seconds:.1f}s" if report.seconds > 2 else ""
    print(f"{mark:4} {report.name:32} {counts or 'no comparable sample'}{slow}", flush=True)
    shown: set[str] = set()
    for failure in report.failures:
        if not options.verbose and shown:
            break
        # Samples that differ in sizes only tend to fail alike: one of each message is enough.
        if failure.message in shown:
            continue
        shown.add(failure.message)
        print(f"       {failure}")
        if options.verbose > 1:
            print("           " + failure.trace.rstrip().replace("\n", "\n           "))


def _print_missing(names: list[str], subject: Subject, verbose: int) -> int:
    absent = dict.fromkeys(OPS[n].name for n in names if counterpart(subject, OPS[n]) is None)
    foreign = {n: why for n in absent for p, why in known.OUT_OF_SCOPE.items() if fnmatchcase(n, p)}
    for name in absent:
        if name not in foreign:
            print(name)
        elif verbose:
            print(f"{name}  (out of scope: {foreign[name]})")
    present = len({OPS[n].name for n in names}) - len(absent)
    print(f"{present} present, {len(absent) - len(foreign)} missing, {len(foreign)} out of scope")
    return 0


def _print_totals(reports: list[OpReport], seconds: float) -> int:
    run = [report for report in reports if not report.missing]
    bad = [report for report in run if report.failures]
    tallies = [tally for report in run for tally in report.tallies.values()]
    ok, total = sum(t.ok for t in tallies), sum(t.total for t in tallies)
    skipped = sum(t.skipped for t in tallies)
    print(
        f"{len(run) - len(bad)}/{len(run)} operators agree, {len(reports) - len(run)} missing; "
        f"{ok}/{total} comparisons, {skipped} skipped; {seconds:.1f} s"
    )
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
