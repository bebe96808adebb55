"""Tiny models and a tokenizer for sessions, and the plain way to run a path."""

from __future__ import annotations

import itertools
from contextlib import nullcontext
from functools import cache
from typing import Any

import votive
from votive import glass, nn
from votive.models import GPT2Config, GPT2LMHeadModel

from ..generation.tiny import VOCABULARY
from ..generation.tiny import model as tiny_model

PROMPT = [5, 17, 3, 42]
KINDS = ("qwen3", "llama", "gpt2", "mistral")


@cache
def model(kind: str) -> Any:
    """A model of a family, the same in every test."""
    if kind != "gpt2":
        return tiny_model(kind)
    votive.manual_seed(0)
    config = GPT2Config(vocab_size=VOCABULARY, n_positions=256, n_embd=32, n_layer=2, n_head=4, initializer_range=0.5)
    return GPT2LMHeadModel(config).eval()


def mlp(kind: str) -> str:
    """The addresses of the MLPs."""
    return "h.*.mlp" if kind == "gpt2" else "layers.*.mlp"


@cache
def tokenizer() -> Any:
    """A byte-level tokenizer."""
    return votive.text.train_bpe(["a cat and a dog"], vocab_size=258, progress=False)


def text_model() -> Any:
    """A model with a place for every token of the tokenizer."""
    return tiny_model("llama", vocab_size=258)


def fresh(node: Any, block: int) -> Any:
    """The next token's logits after a node's path, by the plainest code: no store, no session."""
    path = node.path()
    prompt = len(path[0].tokens)
    tokens = [t for n in path for t in n.tokens]
    the_model, cache = node.session.model, nn.DynamicCache()
    cuts = [*range(0, prompt, block), *range(prompt, len(tokens) + 1)]
    logits = None
    for start, stop in itertools.pairwise(cuts):
        edits = []
        for live in node.plan:
            inside = live.since <= start and (live.until is None or start < live.until)
            positions = live.edit.positions
            if inside and (positions is None or set(positions) & set(range(start, stop))):
                edits.append(live.edit)
        # The head is run on the last position only: one row is not added up as many are.
        given = {"past_key_values": cache, "use_cache": True, "logits_to_keep": 1}
        ids = votive.tensor([tokens[start:stop]])
        with votive.no_grad(), glass.patch(the_model, edits) if edits else nullcontext():
            logits = the_model(ids, **given).logits
    assert logits is not None
    return logits[0, -1].float()


def start(**given: Any) -> glass.Session:
    """A session that draws, the same in every test."""
    return glass.Session(model("llama"), None, PROMPT, **{"do_sample": True, "seed": 1, **given})
