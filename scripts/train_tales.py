"""Train the bundled story-teller, from a text of fairy tales to the files in the package.

    python scripts/train_tales.py tales.txt work/
    python scripts/train_tales.py tales.txt work/ --export votive/models/bundled/tales

The text has a blank line between paragraphs and two between books. The last twentieth of each
book is held out. The work folder keeps the tokenizer, the tokens and the checkpoints: a run that
was stopped goes on where it was, and `--steps` may change as long as the decay of the learning rate
has not begun. docs/bundled_model.md shows the log and what the model writes.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import time
from pathlib import Path
from typing import Any

import votive
from votive.data import DataLoader, TokenFile, TokenWindows
from votive.models import Qwen3Config, Qwen3ForCausalLM
from votive.nn import functional as F
from votive.text import Tokenizer, train_bpe
from votive.train import Trainer

END = "<|endoftext|>"
VOCABULARY = 4096
CONTEXT = 512
HELD_OUT = 0.05


def tales(book: str) -> str:
    """A book with the end-of-text token before each tale, which a line in capitals announces."""
    parts = []
    for paragraph in book.split("\n\n"):
        title = len(paragraph) < 80 and paragraph.upper() == paragraph
        if title and re.match(r"[A-Z]", paragraph) and re.search(r"[A-Z]{3}", paragraph):
            parts.append(END + paragraph)
        else:
            parts.append(paragraph)
    return "\n\n".join(parts)


def prepare(text: Path, work: Path) -> tuple[Tokenizer, TokenFile, TokenFile]:
    """The tokenizer, and the tokens to learn from and to measure on; kept in the work folder."""
    files = [work / "train.tokens", work / "held_out.tokens"]
    if all(f.is_file() for f in files) and (work / "tokenizer.json").is_file():
        return Tokenizer.from_pretrained(work), TokenFile(files[0]), TokenFile(files[1])
    books = text.read_text(encoding="utf-8").split("\n\n\n")
    learn, measure = [], []
    for book in books:
        paragraphs = book.split("\n\n")
        cut = int(len(paragraphs) * (1 - HELD_OUT))
        learn.append("\n\n".join(paragraphs[:cut]))
        measure.append("\n\n".join(paragraphs[cut:]))
    tokenizer = train_bpe(learn, VOCABULARY, special_tokens=[END], model_max_length=CONTEXT)
    tokenizer.save_pretrained(work)
    for file, parts in zip(files, (learn, measure), strict=True):
        TokenFile.write(file, (tokenizer.encode(END + tales(part).removeprefix(END)) for part in parts))
    return tokenizer, TokenFile(files[0]), TokenFile(files[1])


def model() -> Qwen3ForCausalLM:
    """A Qwen3 of 5.8 million parameters."""
    config = Qwen3Config(
        vocab_size=VOCABULARY,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=8,
        num_attention_heads=8,
        num_key_value_heads=4,
        head_dim=32,
        max_position_embeddings=CONTEXT,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=0,
        pad_token_id=0,
        rope_theta=10000.0,
    )
    made = Qwen3ForCausalLM(config)
    for name, p in made.named_parameters():
        # GPT-2's rule: what writes into the residual stream shrinks with its depth.
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            votive.nn.init.normal_(p, std=0.02 / math.sqrt(2 * config.num_hidden_layers))
    return made


def step(model: Any, batch: Any) -> Any:
    """Mean cross entropy of the next token."""
    x, y = batch
    return F.cross_entropy(model(x).logits.flatten(0, 1), y.flatten())


def rate(steps: int, decay: int, warmup: int = 100) -> Any:
    """Learning rate over the steps: a short rise, constant, then linearly to nothing."""

    def factor(at: int) -> float:
        return min((at + 1) / warmup, 1.0, max(steps - at, 0) / decay)

    return factor


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("text", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--steps", type=int, default=1700)
    parser.add_argument("--decay", type=int, default=500, help="steps of falling learning rate")
    parser.add_argument("--batch", type=int, default=16, help="windows per step")
    parser.add_argument("--lr", type=float, default=2.5e-3)
    parser.add_argument("--export", type=Path, help="write the finished model here, in bfloat16")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    tokenizer, learn, measure = prepare(args.text, args.work)
    print(f"{len(learn):,} tokens to learn from, {len(measure):,} held out", flush=True)
    votive.manual_seed(1)
    net = model()
    print(f"{net.num_parameters():,} parameters", flush=True)
    matrices = [p for p in net.parameters() if p.dim() > 1]
    rest = [p for p in net.parameters() if p.dim() < 2]
    optimizer = votive.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
        lr=args.lr,
        betas=(0.9, 0.95),
    )
    # Windows overlap, so that a token is seen at different places in its window.
    data = DataLoader(TokenWindows(learn, CONTEXT, stride=128), args.batch, shuffle=True)
    held = DataLoader(TokenWindows(measure, CONTEXT), args.batch)
    start = time.perf_counter()

    def log(trainer: Any) -> None:
        if trainer.step % 50 == 0:
            print(f"step {trainer.step:5d}  loss {trainer.loss:.4f}  {time.perf_counter() - start:6.0f} s", flush=True)

    trainer = Trainer(
        net,
        optimizer,
        train_data=data,
        eval_data=held,
        step=step,
        max_steps=args.steps,
        seed=1,
        scheduler=votive.optim.lr_scheduler.LambdaLR(optimizer, rate(args.steps, args.decay)),
        clip_grad_norm=1.0,
        eval_every=250,
        checkpoint_every=50,
        keep_last=2,
        folder=args.work / "run",
        unit="tokens",
        callbacks=[log],
        progress=False,
    )
    trainer.fit()
    for row in trainer.history.evals:
        print(json.dumps(row))
    if args.export is not None:
        net.generation_config = {
            "do_sample": True,
            "temperature": 0.8,
            "top_p": 0.95,
            "max_new_tokens": 200,
            "bos_token_id": 0,
            "eos_token_id": 0,
            "pad_token_id": 0,
        }
        net.to(votive.bfloat16).save_pretrained(args.export)
        tokenizer.save_pretrained(args.export)


if __name__ == "__main__":
    main()
