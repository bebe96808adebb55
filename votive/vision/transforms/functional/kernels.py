"""How a functional finds its kernel: by what it is given. Knows kinds of input, no image.

A functional is written for tensor images; others register for PIL images, masks, boxes and points.
Images and videos that say so are handled like plain tensors and keep their class.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, Protocol, TypeVar, overload

from ....tensor import Tensor
from ...tv_tensors import BoundingBoxes, Image, KeyPoints, Mask, TVTensor, Video, wrap

PIL = "PIL"
TENSOR = "tensor"
Kernel = Callable[..., Any]
P = ParamSpec("P")
R = TypeVar("R", covariant=True)
K = TypeVar("K", bound=Kernel)


class Functional(Protocol[P, R]):
    """A function of an image, with forms for other kinds of input."""

    __name__: str
    kernels: dict[type | str, Kernel]

    @overload
    def __call__(self, inpt: Tensor, /, *args: P.args, **options: P.kwargs) -> R: ...

    @overload
    def __call__(self, inpt: object, /, *args: P.args, **options: P.kwargs) -> Any: ...

    def on(self, *kinds: type | str) -> Callable[[K], K]:
        """Register the decorated function for these kinds of input."""


def is_pil(inpt: object) -> bool:
    """Whether it is a PIL image, asked without importing Pillow."""
    return any(c.__module__ == "PIL.Image" and c.__name__ == "Image" for c in type(inpt).__mro__)


def is_pure_tensor(inpt: object) -> bool:
    """Whether it is a tensor that does not say what it is.

    >>> votive.vision.transforms.functional.is_pure_tensor(votive.zeros(1))
    True
    """
    return isinstance(inpt, Tensor) and not isinstance(inpt, TVTensor)


def functional(image: Callable[Concatenate[Tensor, P], R]) -> Functional[P, R]:
    """Make the form for tensor images a functional, with `.on(kind)` to add other forms."""
    name = image.__name__
    kernels: dict[type | str, Kernel] = {TENSOR: image, Image: _keeping(image), Video: _keeping(image)}

    @functools.wraps(image)
    def run(inpt: object, *args: P.args, **options: P.kwargs) -> Any:
        kernel = kernel_for(made, inpt)
        if kernel is None:
            given = type(inpt).__name__
            raise TypeError(f"{name}: takes a tensor image, a PIL image or a kind it has a kernel for, got {given}.")
        return kernel(inpt, *args, **options)

    def on(*kinds: type | str) -> Callable[[K], K]:
        def register(fn: K) -> K:
            kernels.update(dict.fromkeys(kinds, fn))
            return fn

        return register

    made: Any = run
    made.kernels, made.on = kernels, on
    return made


def _keeping(fn: Kernel) -> Kernel:
    """`fn`, whose plain results become what its input is."""

    @functools.wraps(fn)
    def kernel(inpt: TVTensor, *args: Any, **options: Any) -> Any:
        out = fn(inpt, *args, **options)
        if isinstance(out, (tuple, list)):
            return type(out)(_like(o, inpt) for o in out)
        return _like(out, inpt)

    return kernel


def _like(out: Any, inpt: TVTensor) -> Any:
    return wrap(out, like=inpt) if is_pure_tensor(out) else out


def kernel_for(fn: Functional[..., Any], inpt: object) -> Kernel | None:
    """The form of a functional for this input, or None."""
    if is_pil(inpt):
        return fn.kernels.get(PIL)
    if isinstance(inpt, TVTensor):
        return next((fn.kernels[kind] for kind in type(inpt).__mro__ if kind in fn.kernels), None)
    return fn.kernels[TENSOR] if isinstance(inpt, Tensor) else None


def register_kernel(functional: Functional[..., Any], tv_tensor_cls: type) -> Callable[[K], K]:
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
        raise ValueError(f"register_kernel: {functional!r} is not a functional of the transforms.")
    return functional.on(tv_tensor_cls)


def on_planes(fn: Kernel) -> Kernel:
    """A form for images as one for masks: a (H, W) mask gets a channel for the while."""

    @functools.wraps(fn)
    def kernel(mask: Mask, *args: Any, **options: Any) -> Any:
        flat = mask.ndim < 3
        out = fn(mask.unsqueeze(0) if flat else mask, *args, **options)
        return wrap(out.squeeze(0) if flat else out, like=mask)

    return kernel


def on_masks(*functionals: Functional[..., Tensor], **fixed: object) -> None:
    """Let masks be handled as images are, but for arguments that are `fixed`."""
    for functional in functionals:
        functional.on(Mask)(on_planes(_fixing(functional.kernels[TENSOR], fixed)))


def _fixing(fn: Kernel, fixed: dict[str, object]) -> Kernel:
    if not fixed:
        return fn
    signature = inspect.signature(fn)

    def kernel(mask: Tensor, *args: Any, **options: Any) -> Any:
        given = signature.bind(mask, *args, **options)
        given.arguments.update(fixed)
        return fn(*given.args, **given.kwargs)

    return kernel
