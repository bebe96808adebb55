"""A model that is served: what it can do, and whether its texts can be written side by side."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import votive
from votive import nn

from ..glass.sites import sites
from ..nn.layers.kv_storage import CacheDtype
from ..nn.points import BESIDE_LAYERS, IN_LAYER, has_points
from ..tensor import Tensor
from .rows_cache import SPARE, RowsCache

# How far logits of a row in a batch may be from those of the row alone, relative to the largest of them.
_NEAR = {"float64": 1e-9, "float32": 1e-3, "bfloat16": 0.1, "float16": 0.05}


class NotServed(ValueError):
    """A model that cannot be served as one that writes texts."""


@dataclass(frozen=True)
class Site:
    """A place inside: how its dimensions lie (`votive.nn.points`), and how large those of a position are."""

    address: str
    layout: str
    heads: int
    features: int


def position_dim(layout: str) -> int:
    """The dimension of positions, or of those that look at others.

    >>> from votive.serve.served_model import position_dim
    >>> position_dim("bthc"), position_dim("bhqk")
    (1, 2)
    """
    return layout.index("q" if "q" in layout else "t")


class ServedModel:
    """A decoder and its tokenizer, ready to be stepped. `before` is called before each run of the model.

    >>> from votive.serve.served_model import ServedModel
    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=1, num_attention_heads=2)
    >>> served = ServedModel("tiny", votive.models.LlamaForCausalLM(config).eval(), None)
    >>> served.context, served.together
    (2048, True)
    """

    def __init__(
        self,
        name: str,
        model: Any,
        tokenizer: Any,
        *,
        cache_dtype: CacheDtype = None,
        before: Callable[[], None] | None = None,
    ) -> None:
        self._before = before
        self.name, self.model, self.tokenizer, self.cache_dtype = name, model, tokenizer, cache_dtype
        self.device = getattr(model, "device", None)
        check(name, model)
        if tokenizer is not None and getattr(model.config, "vocab_size", None) is None:
            raise NotServed(f'"{name}" has no vocab_size in its configuration.')
        self.ropes = [m for m in model.modules() if isinstance(m, nn.RotaryEmbedding) and m.depends_on_length]
        self.keeps_states = self._probe()
        self.sites = self._find_sites()
        # Why texts go one by one; "" where they go together.
        self.why_alone = self._why_alone()

    @property
    def together(self) -> bool:
        """Whether texts of different lengths can be one batch."""
        return not self.why_alone

    @property
    def shares(self) -> bool:
        """Whether texts can share the keys and values of what they begin with."""
        return not self.ropes and not self.keeps_states

    @property
    def context(self) -> int | None:
        """How many positions the model was made for."""
        found = getattr(self.model.config, "max_position_embeddings", None) or getattr(
            self.model.config, "n_positions", None
        )
        return int(found) if isinstance(found, int) else None

    @property
    def vocabulary(self) -> int:
        """How many tokens there are."""
        return int(self.model.config.vocab_size)

    def position_bytes(self) -> int:
        """How many bytes a position of a text keeps; what layers sum up in states is spread over positions."""
        cache = nn.DynamicCache(dtype=self.cache_dtype)
        with votive.no_grad():
            self.run(self.tensor([0] * 16), cache)
        states = cache._state_bytes()
        return max((cache.nbytes() - states) // 16 + states // SPARE, 1)

    @contextmanager
    def reaching(self, length: int) -> Iterator[None]:
        """Inside, angles that depend on how long a text is are those of this length."""
        with ExitStack() as stack:
            for rope in self.ropes:
                stack.enter_context(rope.for_length(length))
            yield

    def run(self, ids: Tensor, cache: nn.KVCache, **given: Any) -> Tensor:
        """The logits of the last position, (rows, vocabulary) in float32."""
        if self._before is not None:
            self._before()
        out = self.model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1, **given)
        logits: Tensor = out.logits[:, -1].float()
        return logits

    def tensor(self, ids: list[int]) -> Tensor:
        """Ids as the model takes them, (1, positions)."""
        return votive.tensor([ids], dtype=votive.int64, device=self.device)

    def _probe(self) -> bool:
        """Whether layers keep states beside keys and values; raises for a model that fills no cache."""
        cache = nn.DynamicCache(dtype=self.cache_dtype)
        with votive.no_grad():
            logits = self.run(self.tensor([0, 0]), cache)
        if cache.get_seq_length() != 2:
            raise NotServed(f'"{self.name}" does not fill a cache of keys and values, which serving steps with.')
        if logits.dim() != 2:
            raise NotServed(f'"{self.name}" gives no logits of a next token.')
        return cache.keeps_states()

    def _find_sites(self) -> dict[str, Site]:
        """The places that runs go through at every position, by address; none where a model has no names for them."""
        if not has_points(self.model):
            return {}
        found = {}
        for address, shape in sites(self.model, self.tensor([0, 0]), logits_to_keep=1).items():
            layout = BESIDE_LAYERS.get(address) or IN_LAYER[address.split(".", 2)[2]]
            if shape[position_dim(layout)] != 2:
                continue  # logits are those of the last position only
            heads = shape[layout.index("h")] if "h" in layout else 0
            found[address] = Site(address, layout, heads, shape[-1] if layout[-1] == "c" else 0)
        return found

    def _why_alone(self) -> str:
        """See whether rows of different lengths give in a batch what they give alone."""
        if self.ropes:
            return "its angles depend on the length of a text"
        size = min(self.vocabulary, 64)
        texts = [[1 % size, 3 % size, 5 % size], [2 % size]]
        rows, alone = RowsCache(self.cache_dtype), []
        try:
            with votive.no_grad():
                for text in texts:
                    cache = nn.DynamicCache(overwrite=True, dtype=self.cache_dtype)
                    self.run(self.tensor(text), cache)
                    rows.join(cache, len(text), len(text) + 1)
                    alone.append(self.run(self.tensor([0]), cache))
                found = step_rows(self, rows, [0, 0])
        except Exception as error:
            return f"a batch of different lengths cannot be run ({error})"
        expected = votive.cat(alone)
        scale = float(expected.abs().max()) or 1.0
        gap = float((found - expected).abs().max()) / scale
        limit = _NEAR.get(str(self.model.dtype).removeprefix("votive."), 0.1)
        return "" if math.isfinite(gap) and gap <= limit else f"rows in a batch differ from rows alone by {gap:.2g}"


def step_rows(served: ServedModel, rows: RowsCache, tokens: list[int]) -> Tensor:
    """Run one more token of every row; gives logits (rows, vocabulary)."""
    rows.ready()
    given: dict[str, Any] = {"position_ids": rows.positions(served.device)}
    mask = rows.mask(served.device)
    if mask is not None:
        given["attention_mask"] = mask
    ids = votive.tensor([[t] for t in tokens], dtype=votive.int64, device=served.device)
    logits = served.run(ids, rows, **given)
    rows.stepped()
    return logits


def check(name: str, model: Any) -> None:
    """Raise `NotServed` for what writes no texts token by token, and say why.

    >>> from votive.serve.served_model import check
    >>> check("net", votive.nn.Linear(2, 2))
    Traceback (most recent call last):
    votive.serve.served_model.NotServed: "net" is a Linear, and no model that continues texts.
    """
    if not isinstance(model, nn.Module) or not hasattr(model, "config"):
        raise NotServed(f'"{name}" is a {type(model).__name__}, and no model that continues texts.')
    if getattr(model.config, "is_encoder_decoder", False):
        raise NotServed(
            f'"{name}" has an encoder and a decoder; serving continues texts with decoders, and makes vectors with '
            "encoders."
        )
    if not hasattr(model, "generate"):
        raise NotServed(f'"{name}" is a {type(model).__name__} without a head that predicts tokens.')
    taken = inspect.signature(model.forward).parameters
    missing = [n for n in ("past_key_values", "attention_mask", "position_ids") if n not in taken]
    if missing:
        raise NotServed(f'"{name}" takes no {", ".join(missing)}, which serving steps with.')
    if model.training:
        raise NotServed(f'"{name}" is in training mode; call model.eval().')
