"""Which places a decoder's run goes through, and what has which name there. Knows no family.

`layers.3.attn.pattern` is the same in GPT-2 and in Gemma: see `votive.nn.points`.
"""

from __future__ import annotations

from typing import Any

import votive

from ..nn import Module
from ..nn.points import has_points
from .address import Pattern
from .probe import Frame, Probe
from .site_names import NAMES
from .targets import uncompiled


class AllSites(Probe):
    """Keeps every value that a run shows at a place, or at those that patterns name.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> from votive.glass.sites import AllSites
    >>> with AllSites(model) as seen:
    ...     _ = model(votive.tensor([[1, 2, 3]]))
    >>> seen.values["layers.0.attn.pattern"].shape
    votive.Size([1, 2, 3, 3])
    """

    def __init__(self, model: Module, names: tuple[str, ...] = NAMES) -> None:
        super().__init__(model, sites=[Pattern(n) for n in names])
        # The modules themselves run as ever: only what holds places is seen.
        self._only = {id(m): m for m in holders(self.model)}
        self.values: dict[str, Any] = {}

    def left(self, frame: Frame) -> None:
        if frame.address.module.startswith("layers.") or frame.address.module in NAMES:
            self.values[str(frame.address)] = frame.output


def holders(model: Module) -> list[Module]:
    """The model, and what in it runs through places."""
    return [m for m in model.modules() if m is model or getattr(m, "runs_through_points", False)]


def some_ids(model: Module, samples: int = 2, length: int = 6) -> Any:
    """Ids that a model knows, (samples, positions), the same each time.

    >>> from votive.glass.sites import some_ids
    >>> net = votive.nn.Sequential(votive.nn.Embedding(5, 2))
    >>> some_ids(net).shape
    votive.Size([2, 6])
    """
    table = next((m for m in model.modules() if hasattr(m, "num_embeddings")), None)
    if table is None:
        raise LookupError(f"{type(model).__name__} has no table of tokens; give the inputs to run it with.")
    generator = votive.Generator().manual_seed(0)
    ids = votive.randint(0, int(table.num_embeddings), (samples, length), generator=generator)
    return ids.to(table.weight.device)


def sites(model: Module, *args: object, **kwargs: object) -> dict[str, tuple[int, ...]]:
    """The addresses of all places that a run goes through, in order, with the shapes there.

    Without inputs the model is run on some ids. Each address serves `capture`, `patch`, `ablate`,
    `sweep`, `means`, gradients and breakpoints; TransformerLens' names do too.

    >>> config = votive.models.GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    >>> found = votive.glass.sites(votive.models.GPT2LMHeadModel(config), votive.tensor([[1, 2, 3]]))
    >>> list(found)[:4], found["layers.0.attn.scores"]
    (['embed', 'pos_embed', 'layers.0.resid_pre', 'layers.0.attn_in'], (1, 2, 3, 3))
    """
    model = uncompiled(model)
    if not has_points(model):
        raise LookupError(
            f"{type(model).__name__} runs through no named places; decoders of votive.models do. Its modules and "
            "operators have addresses all the same: votive.glass.tree shows them."
        )
    if not args and not kwargs:
        args = (some_ids(model),)
    seen = AllSites(model)
    with votive.no_grad(), seen:
        model(*args, **kwargs)
    first = ("pos_embed", "embed")
    found = {name: tuple(v.shape) for name, v in seen.values.items()}
    return {**{n: found[n] for n in reversed(first) if n in found}, **found}
