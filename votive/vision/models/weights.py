"""From the `weights=` of a model function to filled parameters. Knows files, no architecture.

A function takes what torchvision's take, with one difference: nothing is downloaded, so `weights`
is a file or a state dict that is already here.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from fnmatch import fnmatch
from pathlib import Path
from types import ModuleType
from typing import Any, TypeVar

from votive import nn

from ...core.similar import did_you_mean
from ..types import Weights

Builder = Callable[..., Any]
M = TypeVar("M", bound=nn.Module)
_MODELS: dict[str, Builder] = {}
# The products that give classes.
_HEADS = ("fc.weight", "classifier.weight", "classifier.1.weight", "heads.head.weight")
# Keys under which training scripts put the weights beside optimizers and numbers.
_WRAPPERS = ("state_dict", "model", "model_state_dict", "module")


def registered(build: Builder) -> Builder:
    """Let a function be found by its name with `get_model`."""
    _MODELS[build.__name__] = build
    return build


def list_models(
    module: ModuleType | None = None,
    include: Iterable[str] | str | None = None,
    exclude: Iterable[str] | str | None = None,
) -> list[str]:
    """Names that `get_model` knows: of one module, that match a pattern, or that match none.

    >>> votive.vision.models.list_models(include="resnet*", exclude=["*50", "*101", "*152"])
    ['resnet18', 'resnet34']
    """
    names = {
        name
        for name, build in _MODELS.items()
        if module is None or build.__module__.rpartition(".")[0] == module.__name__
    }

    def matching(patterns: Iterable[str] | str) -> set[str]:
        several = [patterns] if isinstance(patterns, str) else list(patterns)
        return {name for name in names if any(fnmatch(name, p) for p in several)}

    # Nothing, or a list of nothing, leaves all.
    if include:
        names = matching(include)
    if exclude:
        names -= matching(exclude)
    return sorted(names)


def get_model_builder(name: str) -> Builder:
    """The function that makes the model of a name.

    >>> votive.vision.models.get_model_builder("resnet18").__name__
    'resnet18'
    """
    found = _MODELS.get(name.lower())
    if found is None:
        known = list_models()
        raise ValueError(
            f"get_model: there is no model {name!r}; known: {', '.join(known)}.{did_you_mean(name, known)}"
        )
    return found


def get_model(name: str, **config: Any) -> nn.Module:
    """A model by its name, with the arguments of its function.

    >>> votive.vision.models.get_model("resnet18", num_classes=10).fc.out_features
    10
    """
    return get_model_builder(name)(**config)


def model_from_file(path: str | os.PathLike[str], name: str | None = None) -> tuple[str, nn.Module]:
    """A network with the weights of a file, and its name: given, or the one the file begins with.

    How many classes it has is read from the file; it comes in evaluation mode.

    >>> import tempfile
    >>> file = f"{tempfile.mkdtemp()}/resnet18-mine.safetensors"
    >>> votive.io.safetensors.save_file(
    ...     votive.vision.models.resnet18(num_classes=3).state_dict(), file)
    >>> name, net = votive.vision.models.model_from_file(file)
    >>> name, net.fc.out_features
    ('resnet18', 3)
    """
    from ...io import open_weights

    path = Path(path)
    if name is None:
        stem = path.stem.lower().replace("-", "_")
        hits = [n for n in _MODELS if stem == n or stem.startswith((f"{n}_", f"tf_{n}"))]
        if not hits:
            raise ValueError(
                f"{path.name} does not say which network it is for; its name may begin with one "
                f"of {', '.join(list_models())}."
            )
        name = max(hits, key=len)
    build = get_model_builder(name)
    with open_weights(path) as source:
        heads = [n for n in source.names() if n.endswith(_HEADS)]
        settings = {"num_classes": source.info(heads[0]).shape[0]} if heads else {}
    return name, build(weights=path, **settings).eval()


def build(make: Callable[[], M], weights: Weights | None) -> M:
    """The network that `make` gives, with the weights of a file or state dict, or with start values."""
    if weights is None:
        return make()
    with nn.init.skipped():  # start values that a file replaces at once need not be drawn
        model = make()
    load_weights(model, weights)
    return model


def load_weights(model: nn.Module, weights: Weights) -> None:
    """Fill a model from a file or a state dict; all that does not fit is named in one error.

    A file that holds a state dict beside other things (`{"state_dict": …}`), and names that begin
    with `module.` because they come from data-parallel training, are understood.

    >>> net = votive.vision.models.resnet18(num_classes=3)
    >>> votive.vision.models.load_weights(net, net.state_dict())
    """
    from ...io import MemorySource, WeightSource, load_into, open_weights

    if isinstance(weights, WeightSource):
        source = weights
    elif isinstance(weights, Mapping):
        source = MemorySource(dict(weights))
    else:
        source = open_weights(_path(type(model).__name__, weights))
    ours, names = model.state_dict(), source.names()
    for prefix in (*(f"{w}." for w in _WRAPPERS), *(f"{w}.module." for w in _WRAPPERS)):
        inside = {n.removeprefix(prefix) for n in names if n.startswith(prefix)}
        if inside & set(ours) and not set(ours) & set(names):
            source = source.prefixed(prefix)
            break
    # Files from before torch 0.4.1 have no such counters; nothing but training reads them.
    lost = [n for n in set(ours) - set(source.names()) if n.endswith(".num_batches_tracked")]
    if lost:
        source = MemorySource(dict(source.items()) | {n: ours[n] for n in lost})
    load_into(model, source)


def _path(name: str, weights: object) -> Path:
    if isinstance(weights, (str, os.PathLike)):
        path = Path(weights).expanduser()
        if path.exists():
            return path
        if "/" in str(weights) or path.suffix:
            raise FileNotFoundError(f"{name}: there is no file {str(weights)!r}.")
    raise ValueError(
        f"{name}: weights must be the path of a file (.pth, .safetensors, …) or a state dict, got "
        f"{weights!r}. Nothing is downloaded: fetch the file first and pass its path."
    )
