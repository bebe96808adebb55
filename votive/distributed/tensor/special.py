"""Calls that are answered before any operator runs: what asks for facts, makes new tensors or moves between devices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...core.errors import UnsupportedError
from ...ops.registry import F
from .dtensor import DTensor, wrap
from .placement_types import Partial, Replicate

SPECIAL: dict[str, Callable[..., Any]] = {}


def special(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Let a function answer calls of these names."""

    def enter(fn: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            SPECIAL[name] = fn
        return fn

    return enter


special("is_floating_point")(lambda input: input._held.is_floating_point())
special("is_complex")(lambda input: input._held.is_complex())
special("is_tensor")(lambda obj: True)
special("numel")(lambda input: input._spec.numel)
special("is_same_size")(lambda input, other: tuple(input.shape) == tuple(other.shape))


def _like(name: str) -> Callable[..., Any]:
    def make(input: DTensor, *args: Any, **options: Any) -> Any:
        lies = tuple(Replicate() if isinstance(p, Partial) else p for p in input._placements)
        held = input._held
        if lies != input._placements:
            held = wrap(held, input._mesh, lies, input._spec.shape)._held
        wants = bool(options.pop("requires_grad", False))
        made = wrap(getattr(F, name)(held, *args, **options), input._mesh, lies, input._spec.shape)
        return made.requires_grad_() if wants else made

    return make


for _name in ("zeros_like", "ones_like", "empty_like", "full_like"):
    SPECIAL[_name] = _like(_name)


def _random_like(name: str) -> Callable[..., Any]:
    def make(input: DTensor, *args: Any, **options: Any) -> Any:
        wants = bool(options.pop("requires_grad", False))
        generator = options.pop("generator", None)
        empty = SPECIAL["empty_like"](input, **options)
        if name == "rand_like":
            empty.uniform_(generator=generator)
        elif name == "randn_like":
            empty.normal_(generator=generator)
        else:
            low, high = (0, args[0]) if len(args) == 1 else args
            empty.random_(low, high, generator=generator)
        return empty.requires_grad_() if wants else empty

    return make


for _name in ("rand_like", "randn_like", "randint_like"):
    SPECIAL[_name] = _random_like(_name)


def _new(name: str) -> Callable[..., Any]:
    def make(input: DTensor, *args: Any, **options: Any) -> Any:
        wants = bool(options.pop("requires_grad", False))
        made = getattr(F, name)(input._held.detach(), *args, **options)
        mesh = input._mesh
        out = wrap(made, mesh, (Replicate(),) * mesh.ndim, made._spec.shape)
        return out.requires_grad_() if wants else out

    return make


for _name in ("new_zeros", "new_ones", "new_full"):
    SPECIAL[_name] = _new(_name)


@special("one_hot")
def _one_hot(input: DTensor, num_classes: int = -1) -> Any:
    n = int(input.max().item()) + 1 if num_classes == -1 else num_classes
    if input._spec.numel and not bool(((input >= 0) & (input < n)).all()):
        raise RuntimeError(f"one_hot: classes must lie in 0 .. {n - 1}.")
    mesh = input._mesh
    classes = wrap(F.arange(n, device=input.device), mesh, (Replicate(),) * mesh.ndim, (n,))
    return (input.unsqueeze(-1) == classes).long()


@special("bernoulli")
def _bernoulli(input: DTensor, p: Any = None, *, generator: Any = None, out: Any = None) -> Any:
    if out is not None:
        raise UnsupportedError("bernoulli: out= is not supported for DTensors; assign the result.")
    return SPECIAL["empty_like"](input).bernoulli_(input.detach() if p is None else p, generator=generator)


@special("equal")
def _equal(input: Any, other: Any) -> bool:
    if tuple(input.shape) != tuple(other.shape):
        return False
    return bool((input == other).all().item())


@special("_masked_select", "_nonzero", "_unique", "_bincount")
def _by_data(*args: Any, **kwargs: Any) -> Any:
    raise UnsupportedError(
        "the shape of this result depends on numbers that are on other ranks; use .full_tensor() for the whole, or "
        ".to_local() for this rank's part."
    )


@special("_views")
def _views(input: DTensor, joint: str, given: Any, dim: int, bounds: Any) -> tuple[Any, ...]:
    if isinstance(bounds, int):
        return tuple(F.select(input, dim, i) for i in range(bounds))
    return tuple(F._slice(input, dim, a, b, 1) for a, b in bounds)
