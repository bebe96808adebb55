"""Generating with the step of a token compiled: a function of tokens and of what is kept, which writes nothing outside.

With a growing cache its lengths are symbols of the compiled step, with a static one the memory stays and a tensor says
where the token goes. The prompt runs as always. Chooses no tokens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import votive
from votive import nn

from ..tensor import Tensor
from .stepping import DecoderStepper, Model, StepOutput, Wanted, keeps_states, sees_part

_NAME = "_compiled_steps"


class _Grown(nn.DynamicCache):
    """What is kept with what is new behind it, in new memory."""

    def __init__(self, kept: list[Any]) -> None:
        super().__init__()
        self._kept = list(kept)
        self._seen = [pair[0].shape[2] for pair in kept]

    def _append(self, kept: Any, new: Any, layer_idx: int) -> Any:
        both = votive.cat([kept[0], new[0]], 2), votive.cat([kept[1], new[1]], 2)
        return both, both


class Steps:
    """The compiled steps of a model; not copied or saved with it."""

    def __init__(self, model: Any) -> None:
        def growing(ids: Tensor, kept: list[Any], given: dict[str, Any]) -> Any:
            cache = _Grown(kept)
            out = model(ids, past_key_values=cache, use_cache=True, logits_to_keep=1, **given)
            return out.logits[:, -1:].float(), cache._kept

        def static(ids: Tensor, kept: list[Any], position: Tensor, place: Tensor, mask: Tensor | None) -> Any:
            length = kept[0][0].shape[2]
            cache = nn.StaticCache(length)
            cache._kept, cache._seen, cache._place = list(kept), [0] * len(kept), position
            seen = votive.arange(length, device=ids.device) <= position[:, None]  # (1, L)
            if mask is not None:
                seen = seen & mask[:, :length].bool()
            out = model(
                ids,
                attention_mask=seen[:, None, None, :],
                position_ids=place,
                past_key_values=cache,
                use_cache=True,
                logits_to_keep=1,
            )
            return out.logits[:, -1:].float()

        self.growing: Callable[..., Any] = votive.compile(growing, dynamic=True)
        self.static: Callable[..., Any] = votive.compile(static)

    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return _nothing, ()


def _nothing() -> None:
    return None


def steps_of(model: Any) -> Steps:
    """The compiled steps of a model; made when first asked for."""
    found = model.__dict__.get(_NAME)
    if found is None:
        found = model.__dict__[_NAME] = Steps(model)
    return found


def check(model: Model, cache: nn.KVCache | None, wanted: Wanted | None) -> None:
    """Raise where steps cannot be compiled."""
    if not isinstance(model, nn.Module):
        raise TypeError(f"generate: compile=True takes a votive.nn.Module, got {type(model).__name__}.")
    if cache is None:
        raise ValueError("generate: compile=True compiles the step of one token, which needs use_cache=True.")
    if type(cache) not in (nn.DynamicCache, nn.StaticCache):
        raise ValueError(
            f"generate: compile=True takes a dynamic or a static cache, got a {type(cache).__name__}; use "
            "cache_implementation='dynamic' or 'static'."
        )
    if cache.dtype is not None:
        raise ValueError("generate: compile=True works with caches of the model's own numbers; leave out cache_dtype.")
    if wanted is not None and wanted != Wanted():
        raise ValueError("generate: compile=True gives no attentions and hidden states; capture them, or leave it out.")
    if keeps_states(model):
        raise ValueError(
            f"generate: compile=True works with keys and values alone, and layers of {type(model).__name__} keep "
            "states; leave it out."
        )
    windows = _windows(model)
    if type(cache) is nn.StaticCache and windows:
        raise ValueError(
            f"generate: compile=True with a static cache does not know windows such as those of "
            f"{type(windows[0]).__name__}; use cache_implementation='dynamic'."
        )


def _windows(model: nn.Module) -> list[nn.Module]:
    return [m for m in model.modules() if sees_part(m)]


def _dense(x: Tensor) -> Tensor:
    """A tensor that lies as new ones do; of one head the prompt lies otherwise, and would have its own version."""
    steps = [1]
    for size in x.shape[:0:-1]:
        steps.insert(0, steps[0] * size)
    return x if x.stride() == tuple(steps) else x.clone(memory_format=votive.contiguous_format)


class CompiledStepper(DecoderStepper):
    """A decoder whose single steps are compiled."""

    model: nn.Module
    cache: nn.KVCache

    def __init__(self, model: Any, *, max_length: int, **options: Any) -> None:
        super().__init__(model, max_length=max_length, **options)
        self.windowed = bool(_windows(model))
        for part in model.modules():
            # Tables that grow while a text does would end the graph.
            if isinstance(part, nn.RotaryEmbedding) and not part.depends_on_length:
                part.angles(max_length)

    def _run(self, ids: Tensor, start: int, keep: int) -> StepOutput:
        kept: Any = self.cache._kept
        if (
            ids.dim() == 3
            or ids.shape[1] != 1
            or keep != 1
            or not start
            or self._ropes
            or None in kept
            or votive.is_grad_enabled()
        ):
            return super()._run(ids, start, keep)
        steps = steps_of(self.model)
        ids = ids.contiguous()  # or each way in which they may lie would have a version
        place = None if self.positions is None else self.positions[:, start : start + 1].contiguous()
        if isinstance(self.cache, nn.StaticCache):
            if start >= self.cache.max_length:
                return super()._run(ids, start, keep)  # which says that the cache is full
            position = votive.full((1,), start, dtype=votive.int64, device=ids.device)
            if place is None:
                place = votive.full(ids.shape, start, dtype=votive.int64, device=ids.device)
            logits = steps.static(ids, kept, position, place, self.mask)
        else:
            given: dict[str, Any] = {}
            if place is not None:
                mask = self.mask[:, : start + 1]
                # Of a mask for each query nobody asks whether it masks anything, which would end the graph.
                given = {
                    "attention_mask": mask.contiguous() if self.windowed else mask.bool()[:, None, None, :],
                    "position_ids": place,
                }
            kept = [(_dense(k), _dense(v)) for k, v in kept]
            logits, self.cache._kept = steps.growing(ids, kept, given)
        self.cache._seen = [n + 1 for n in self.cache._seen]
        return StepOutput(logits)
