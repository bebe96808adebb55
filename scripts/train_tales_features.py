"""Train the features that come with the bundled story-teller, from the text that it learned from.

    python scripts/train_tales_features.py tales.txt work/
    python scripts/train_tales_features.py tales.txt work/ --export votive/models/bundled/tales/features

A sparse autoencoder of the stream behind layer 4 and a transcoder of that layer's MLP. The text has the form that
scripts/train_tales.py says, and the same twentieth of each book is held out. The work folder keeps tokens, values and
checkpoints: a run that was stopped goes on where it was. docs/laboratory/find_name_and_steer_a_feature.md has
what was measured.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from train_tales import END, HELD_OUT, tales

import votive
from votive.data import TokenFile
from votive.glass.features import SAE, SAEConfig, SAETrainer, SAETraining, collect, measure, save_saelens
from votive.glass.features.store import Windows

LAYER = "model.layers.4"
CONTEXT = 128
CONFIGS = {
    "sae": SAEConfig(256, 1536, "topk", k=32, site=LAYER, model="tales"),
    "transcoder": SAEConfig(
        256, 1280, "topk", k=32, d_out=256, site=f"{LAYER}.mlp:in", writes=f"{LAYER}.mlp", model="tales"
    ),
}
SITES = {"sae": [LAYER], "transcoder": [f"{LAYER}.mlp:in", f"{LAYER}.mlp"]}


def prepare(text: Path, work: Path, tokenizer: votive.text.Tokenizer) -> tuple[TokenFile, TokenFile]:
    """The tokens to learn from and to measure on; kept in the work folder."""
    files = work / "learn.tokens", work / "held.tokens"
    if not all(f.is_file() for f in files):
        learn, held = [], []
        for book in text.read_text(encoding="utf-8").split("\n\n\n"):
            paragraphs = book.split("\n\n")
            cut = int(len(paragraphs) * (1 - HELD_OUT))
            learn.append("\n\n".join(paragraphs[:cut]))
            held.append("\n\n".join(paragraphs[cut:]))
        for file, parts in zip(files, (learn, held), strict=True):
            TokenFile.write(file, (tokenizer.encode(END + tales(p).removeprefix(END)) for p in parts))
    return TokenFile(files[0]), TokenFile(files[1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--windows", type=int, default=4000, help="of 128 tokens, spread over all books")
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--export", type=Path, help="write the finished coders here, in bfloat16")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    model = votive.models.AutoModelForCausalLM.from_pretrained("tales").float().eval()
    learn, held = prepare(args.text, args.work, votive.text.Tokenizer.from_pretrained("tales"))
    parts = []
    for tokens, many in ((learn, args.windows), (held, 200)):
        whole = Windows(tokens, CONTEXT, None)
        step = len(whole) // min(many, len(whole))
        parts.append(votive.cat([whole.batch(i, i + 1) for i in range(0, step * min(many, len(whole)), step)]))
    sites = [s for found in SITES.values() for s in found]
    start = time.perf_counter()
    stores = {name: collect(model, parts[0], SITES[name], args.work / name, batch_size=32) for name in CONFIGS}
    tests = {name: collect(model, parts[1], SITES[name], args.work / f"{name}-held", batch_size=32) for name in CONFIGS}
    print(f"{len(stores['sae']):,} rows at {len(sites)} sites: {time.perf_counter() - start:.0f} s", flush=True)
    for name, config in CONFIGS.items():
        votive.manual_seed(1)
        plan = SAETraining(
            args.steps,
            lr=args.lr,
            warmup=50,
            decay=args.steps // 4,
            dead_after=200_000,
            checkpoint_every=100,
            log_every=50,
        )
        sae, start = SAE(config), time.perf_counter()
        SAETrainer(sae, stores[name], plan, folder=args.work / f"{name}-run", progress=None).fit()
        print(f"{name}: {time.perf_counter() - start:.0f} s", flush=True)
        sae = sae.fold().to(votive.bfloat16).float()
        found = measure(sae, tests[name], model=model, batches=parts[1].split(20))
        print(name, json.dumps(found.to_dict()), flush=True)
        if args.export is not None:
            save_saelens(sae, args.export / name, dtype=votive.bfloat16)


if __name__ == "__main__":
    main()
