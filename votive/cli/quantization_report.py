"""What quantizing did to a model: errors by layer, perplexity and divergence on a text. Knows commands' arguments."""

from __future__ import annotations

import argparse
from typing import Any

from .quantizing import Job, load, pieces
from .terminal import progress

TOKENS = 4096
WORST = 8


def report(args: argparse.Namespace, job: Job) -> dict[str, Any]:
    """Compare OUT with IN, as JSON has it."""
    from ..glass import quantization_error
    from ..quant.passage import PASSAGE
    from .inputs import read_text

    text = PASSAGE if args.text is None else read_text(args.text)
    data = pieces(job, text, args.tokens or TOKENS)
    original, model = load(job.source, dequantize=True), load(str(job.out))
    with progress(args, "comparing", None) as bar:
        found = quantization_error(
            model, original, data, each=args.report == "full", progress=lambda name, done, total: bar.label(name)
        )
    told = found.to_dict()
    told["text"] = args.text or "the bundled text"
    told["worst"] = [s for w in found.worst(WORST) for s in told["sites"] if s["name"] == w.name]
    return told
