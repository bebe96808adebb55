"""How a functional finds its kernel: by what it is given. Knows kinds of input, no image.

A functional is written for tensor images; others register for PIL images, masks and boxes. Images
and videos that say so are handled like plain tensors and keep their class.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ....tensor import Tensor
from ...tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video, wrap

PIL = "PIL"
TENSOR = "tensor"


def is_pil(inpt: Any) -> bool:
    """Whether it is a PIL image, asked without importing Pillow."""
    return any(c.__module__ == "PIL.Image" and c.__name__ == "Image" for c in type(inpt).__mro__)


def is_pure_tensor(inpt: Any) -> bool:
    """Whether it is a tensor that does not say what it is.

    >>> votive.vision.transforms.functional.is_pure_tensor(votive.zeros(1))
    True
    """
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def functional(image: Callable[..., Any]) -> Any:
    """Make the form for tensor images a functional, with `.on(kind)` to add other forms."""
    kernels: dict[Any, Callable[..., Any]] = {TENSOR: image, Image: _keeping(image), Video: _keeping(image)}

    @functools.wraps(image)
    def run(inpt: Any, *args: Any, **options: Any) -> Any:
        kernel = kernel_for(run, inpt)
        if kernel is None:
            name, given = image.__name__, type(inpt).__name__
            raise TypeError(f"{name}: takes a tensor image, a PIL image or what is registered for it, got {given}.")
        return kernel(inpt, *args, **options)

    def on(kind: Any) -> Callable[[Any], Any]:
        def register(fn: Any) -> Any:
            kernels[kind] = fn
            return fn

        return register

    run.kernels = kernels  # type: ignore[attr-defined]
    run.on = on  # type: ignore[attr-defined]
    return run


def _keeping(fn: Callable[..., Any]) -> Callable[..., Any]:
    """`fn`, whose plain results become what its input is."""

    @functools.wraps(fn)
    def kernel(inpt: Any, *args: Any, **options: Any) -> Any:
        out = fn(inpt, *args, **options)
        if isinstance(out, (tuple, list)):
            return type(out)(_like(o, inpt) for o in out)
        return _like(out, inpt)

    return kernel


def _like(out: Any, inpt: Any) -> Any:
    return wrap(out, like=inpt) if is_pure_tensor(out) else out


def kernel_for(fn: Any, inpt: Any) -> Callable[..., Any] | None:
    """The form of a functional for this input, or None."""
    kernels = fn.kernels
    if is_pil(inpt):
        return kernels.get(PIL)
    if isinstance(inpt, TVTensor):
        for kind in type(inpt).__mro__:
            if kind in kernels:
                return kernels[kind]  # type: ignore[no-any-return]
        return None
    return kernels[TENSOR] if isinstance(inpt, Tensor) else None


def register_kernel(functional: Any, tv_tensor_cls: type) -> Callable[[Any], Any]:
    """Let the decorated function serve a functional for a class of your own.

    >>> v = votive.vision
    >>> class Depth(v.tv_tensors.TVTensor): ...
    >>> @v.transforms.functional.register_kernel(v.transforms.functional.hflip, Depth)
    ... def flip_depth(depth):
    ...     return v.tv_tensors.wrap(depth.flip(-1), like=depth)
    >>> v.transforms.functional.hflip(Depth([[1, 2]]))
    Depth([[2, 1]])
    """
    if not (isinstance(tv_tensor_cls, type) and issubclass(tv_tensor_cls, TVTensor)):
        raise ValueError(f"register_kernel: needs a subclass of TVTensor, got {tv_tensor_cls}.")
    if tv_tensor_cls in (Image, Video, Mask, BoundingBoxes, KeyPoints):
        raise ValueError(f"register_kernel: {tv_tensor_cls.__name__} has its own kernels.")
    if not hasattr(functional, "kernels"):
        raise ValueError(f"register_kernel: {functional!r} is no functional of the transforms.")
    return functional.on(tv_tensor_cls)  # type: ignore[no-any-return]


def on_planes(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A form for images as one for masks: a (H, W) mask gets a channel for the while."""

    @functools.wraps(fn)
    def kernel(mask: Any, *args: Any, **options: Any) -> Any:
        flat = mask.ndim < 3
        out = fn(mask.unsqueeze(0) if flat else mask, *args, **options)
        return wrap(out.squeeze(0) if flat else out, like=mask)

    return kernel
