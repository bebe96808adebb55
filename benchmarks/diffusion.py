"""Steps of Stable Diffusion 1.5's denoiser on the CPU, votive and diffusers in turns.

python -m benchmarks.diffusion
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import tempfile
import time
import warnings
from typing import Any


def networks(small: bool) -> tuple[Any, Any]:
    """The denoiser in both libraries, with the same random weights."""
    import torch
    from diffusers import UNet2DConditionModel as Theirs

    from votive.models.diffusion import UNet2DConditionModel as Ours

    torch.manual_seed(0)
    widths = (64, 128, 128, 128) if small else (320, 640, 1280, 1280)
    config = {"sample_size": 64, "cross_attention_dim": 768, "block_out_channels": widths}
    theirs = Theirs(**config).eval()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours = Ours.from_pretrained(folder)
    return ours, theirs


def main() -> None:
    """Time single steps of both in turns; a run of n steps is n of them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=256, help="height and width of the picture")
    parser.add_argument("--steps", type=int, default=20, help="timed steps of each library")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="a denoiser of a hundredth of the size, to try this out")
    parser.add_argument("--json", type=pathlib.Path, help="write the times here")
    args = parser.parse_args()
    warnings.simplefilter("ignore")

    import numpy as np
    import torch

    import votive

    votive.set_num_threads(args.threads)
    torch.set_num_threads(args.threads)
    ours, theirs = networks(args.small)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 4, args.side // 8, args.side // 8)).astype(np.float32)
    text = rng.standard_normal((2, 77, 768)).astype(np.float32)
    a, b = (votive.from_numpy(x), votive.from_numpy(text)), (torch.from_numpy(x), torch.from_numpy(text))
    times: dict[str, list[float]] = {"votive": [], "diffusers": []}
    with votive.no_grad(), torch.no_grad():
        for i in range(args.steps + 1):
            t = 981 - 48 * i
            start = time.perf_counter()
            got = ours(a[0], t, a[1]).sample
            middle = time.perf_counter()
            expected = theirs(b[0], t, b[1]).sample
            end = time.perf_counter()
            if i == 0:
                worst = float(np.abs(got.numpy() - expected.numpy()).max() / np.abs(expected.numpy()).max())
                print(f"largest difference {worst:.1e} of the largest value")
                continue  # the first call warms up
            times["votive"].append(middle - start)
            times["diffusers"].append(end - middle)
            print(f"step {i}: votive {middle - start:.3f} s, diffusers {end - middle:.3f} s", flush=True)
    ratios = [v / d for v, d in zip(times["votive"], times["diffusers"], strict=True)]
    total = sum(times["votive"]) / sum(times["diffusers"])
    print(
        f"{args.steps} steps of {args.side} x {args.side}: votive {sum(times['votive']):.1f} s, diffusers "
        f"{sum(times['diffusers']):.1f} s, ratio {total:.2f} (median {statistics.median(ratios):.2f}, "
        f"{min(ratios):.2f} to {max(ratios):.2f})"
    )
    if args.json:
        args.json.write_text(json.dumps({**times, "side": args.side, "threads": args.threads}))


if __name__ == "__main__":
    main()
