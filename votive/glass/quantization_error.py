"""Where the error of a quantized model sits: by weight, by layer, and in what it predicts. Knows no format."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from typing import Any

import votive

from ..nn import Module
from ..nn import functional as F
from ..quant.calibration import call, evaluating
from ..quant.places import Place, places
from ..surface.block_tensor import BlockTensor
from ..tensor import Tensor
from . import values
from .error_twin import Twin, twin_of
from .parts import Parts, parts_of
from .plots import Bars, Lines, Plottable
from .text_table import table

Progress = Callable[[str, int, int], None]


@dataclass(frozen=True)
class SiteError:
    """One weight in blocks. `weight` is the error of its numbers, `output` that of the product when it is fed what the
    original feeds it; both are relative: root of summed squares of differences over that of the original's.
    """

    name: str
    layer: str  # the layer it lies in, "" for none
    format: str
    bits: float
    weight: float
    output: float


@dataclass(frozen=True)
class LayerError:
    """One layer, or a part outside of them. `weight` is the relative error of its weights in blocks together, `stream`
    that of what leaves it while the whole model is quantized, `kl` the divergence when only it is (None if not asked).
    """

    name: str
    weight: float
    stream: float
    kl: float | None = None


@dataclass(frozen=True)
class QuantizationError(Plottable):
    """Errors by `sites` and `layers`, and of the predictions: means over `tokens` predicted tokens, in nats.

    What cannot be told, since the model gives no logits or the data is no token numbers, is nan.
    """

    sites: tuple[SiteError, ...]
    layers: tuple[LayerError, ...]
    tokens: int
    kl: float
    same_top: float
    perplexity: float
    perplexity_original: float

    def __iter__(self) -> Iterator[LayerError]:
        return iter(self.layers)

    def __len__(self) -> int:
        return len(self.layers)

    def worst(self, count: int = 5) -> list[SiteError]:
        """The weights whose products are furthest off, the furthest first."""
        return sorted(self.sites, key=lambda s: -_known(s.output, s.weight))[:count]

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)

    def __str__(self) -> str:
        told = any(layer.kl is not None for layer in self.layers)
        columns = ["layer", ">weights", ">stream"] + ([">KL alone"] if told else [])
        rows = [[x.name, _share(x.weight), _share(x.stream)] + ([_nats(x.kl)] if told else []) for x in self.layers]
        wide = [[s.name, s.format, _share(s.weight), _share(s.output)] for s in self.sites]
        parts = [table("", columns, rows), table("", ["weight", "format", ">weights", ">output"], wide)]
        if self.tokens:
            parts.append(
                f"{self.tokens:,} tokens: perplexity {self.perplexity_original:.4g} -> {self.perplexity:.4g}, "
                f"KL divergence {_nats(self.kl)}, same first choice {self.same_top:.1%}"
            )
        return "\n\n".join(parts)

    def figure(self, what: str = "stream") -> Any:
        """Lines over the layers of "stream", "weight" or "kl"; bars over the weights of "output"."""
        if what == "output":
            return Bars(
                [_known(s.output, math.nan) for s in self.sites],
                [s.name for s in self.sites],
                title="error of products",
            )
        if what not in ("stream", "weight", "kl"):
            raise ValueError(f"QuantizationError: {what!r} cannot be drawn.")
        found = [getattr(layer, what) for layer in self.layers]
        if None in found:
            raise ValueError("QuantizationError: the divergence by layer was not measured; pass each=True.")
        titles = {"stream": "relative error of the stream", "weight": "relative error of weights", "kl": "KL alone"}
        return Lines({what: found}, [x.name for x in self.layers], x_name="layer", title=titles[what], y_name=what)


def _known(value: float, otherwise: float) -> float:
    return otherwise if math.isnan(value) else value


def _share(value: float) -> str:
    return "-" if math.isnan(value) else f"{value:.2%}"


def _nats(value: float | None) -> str:
    return "-" if value is None or math.isnan(value) else f"{value:.3g}"


def quantization_error(
    model: Module,
    original: Module,
    data: Tensor | Iterable[Any],
    *,
    each: bool = False,
    parts: Parts | Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> QuantizationError:
    """Compare a quantized model with its original on real inputs: by weight, by layer, and in what they predict.

    `data` is a tensor of token numbers (batch, tokens), or several inputs as `votive.quantize_` takes them. With
    `each`, the original is also run once for each layer with that layer alone quantized, which tells how much it does
    to the predictions. `parts` names the layers where they are not found by what they look like. The original is as it
    was afterwards.

    >>> config = votive.models.LlamaConfig(vocab_size=64, hidden_size=64, intermediate_size=64,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> original = votive.models.LlamaForCausalLM(config)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> _ = model.load_state_dict(original.state_dict())
    >>> _ = votive.quantize_(model, "q8_0")
    >>> found = votive.glass.quantization_error(model, original, votive.tensor([[1, 2, 3, 4]]))
    >>> [layer.name for layer in found], found.worst(1)[0].output < 0.05, found.tokens
    (['model.embed_tokens', 'model.layers.0', 'model.layers.1', 'lm_head'], True, 3)
    """
    for name, given in (("model", model), ("original", original)):
        if not isinstance(given, Module):
            raise TypeError(f"quantization_error: {name} is a Module, got {type(given).__name__}.")
    if model is original:
        raise ValueError("quantization_error: the model and the original are one; quantize a copy of it.")
    items = [data] if isinstance(data, Tensor) else list(data)
    if not items:
        raise ValueError("quantization_error: there is no data.")
    wanted = [p for p in places(model) if isinstance(p.weight, BlockTensor)]
    if not wanted:
        raise ValueError("quantization_error: the model has no weights in blocks.")
    twin = twin_of(model, original, wanted)
    groups = _groups(original, wanted, parts)
    with evaluating(model), evaluating(original):
        run = _Run(model, original, twin, groups, progress)
        for item in items:
            run.compare(item, each)
        return run.result(each)


def _groups(original: Module, wanted: list[Place], parts: Parts | Mapping[str, Any] | None) -> dict[str, list[Place]]:
    """Layers in order, with what lies before and after them, and the weights in each."""
    try:
        layers = list(parts_of(original, parts).names)
    except LookupError:
        if parts is not None:
            raise
        layers = []
    found: dict[str, list[Place]] = {}
    for place in wanted:
        name = next((n for n in layers if place.name == n or place.name.startswith(f"{n}.")), place.name)
        found.setdefault(name, []).append(place)
    for name in layers:
        found.setdefault(name, [])
    order = {name: i for i, (name, _) in enumerate(original.named_modules())}
    return {name: found[name] for name in sorted(found, key=lambda n: order.get(n, len(order)))}


@dataclass
class _Sum:
    """Sums of squares: of differences, and of what the original has."""

    error: float = 0.0
    size: float = 0.0

    def add(self, made: Tensor, wanted: Tensor) -> None:
        wide = wanted.double()
        self.error += float((made.double() - wide).square().sum())
        self.size += float(wide.square().sum())

    @property
    def relative(self) -> float:
        if not self.size:
            return math.nan if not self.error else math.inf
        return math.sqrt(self.error / self.size)


class _Run:
    """Sums over the data."""

    def __init__(
        self, model: Module, original: Module, twin: Twin, groups: dict[str, list[Place]], progress: Progress | None
    ) -> None:
        self.model, self.original, self.twin, self.groups = model, original, twin, groups
        self.tell = progress or (lambda name, done, total: None)
        self.outputs = {p.name: _Sum() for places_ in groups.values() for p in places_}
        self.streams = {name: _Sum() for name in groups}
        self.alone = dict.fromkeys(groups, 0.0)
        self.tokens = self.same = self.predicted = 0
        self.kl = 0.0
        self.losses = [0.0, 0.0]

    def compare(self, item: Any, each: bool) -> None:
        """Run both on an item of the data, and the original with each layer quantized."""
        states: dict[str, list[Tensor]] = {name: [] for name in self.groups}
        with _watched(self.original, self._products()), _watched(self.original, self._keeping(states)):
            before = call(self.original, item)
        with _watched(self.model, self._against(states)):
            after = call(self.model, item)
        first, second = _predictions(before), _predictions(after)
        if first is None or second is None:
            return
        self.kl += _divergence(first, second)
        self.same += int((first.argmax(-1) == second.argmax(-1)).sum())
        self.predicted += len(first)
        ids = _ids(item)
        if ids is not None and ids.shape[1] > 1 and ids[:, 1:].numel() == len(first):
            target = ids[:, 1:].reshape(-1)
            for i, row in enumerate((first, second)):
                self.losses[i] += float(F.nll_loss(row, target, reduction="sum"))
            self.tokens += target.numel()
        if not each:
            return
        for done, name in enumerate(self.groups):
            self.tell(name, done, len(self.groups))
            inside = all(p.name != name for p in self.groups[name])
            # Of a tied weight outside the layers, every owner.
            names = [name] if inside else [n for p in self.groups[name] for n, _ in p.owners]
            with _exchanged(self.original, self.model, names):
                alone = _predictions(call(self.original, item))
            assert alone is not None, "the original gave logits before"
            self.alone[name] += _divergence(first, alone)
        self.tell("", len(self.groups), len(self.groups))

    def _products(self) -> dict[str, Callable[[Any, Any, Any], None]]:
        """Hooks that feed the quantized twin of a layer what the original was fed."""
        made: dict[str, Callable[[Any, Any, Any], None]] = {}
        for places_ in self.groups.values():
            for place in places_:
                made[place.name] = self._product(place)
        return made

    def _product(self, place: Place) -> Callable[[Any, Any, Any], None]:
        module = self.model.get_submodule(place.name)
        sums, factor = self.outputs[place.name], self.twin.inputs.get(place.name)

        def hook(_: Any, args: Any, output: Any) -> None:
            x = args[0] if factor is None else args[0] * factor.to(args[0].dtype)
            wanted = values.first(output)
            made = values.first(module(x, *args[1:]))
            if made is not None and wanted is not None:
                sums.add(made, wanted)

        return hook

    def _keeping(self, states: dict[str, list[Tensor]]) -> dict[str, Callable[[Any, Any, Any], None]]:
        def keep(name: str) -> Callable[[Any, Any, Any], None]:
            def hook(module: Any, args: Any, output: Any) -> None:
                x = values.first(output)
                if x is not None:
                    states[name].append(x)

            return hook

        return {name: keep(name) for name in self.groups}

    def _against(self, states: dict[str, list[Tensor]]) -> dict[str, Callable[[Any, Any, Any], None]]:
        def against(name: str) -> Callable[[Any, Any, Any], None]:
            def hook(module: Any, args: Any, output: Any) -> None:
                x = values.first(output)
                if x is not None and states[name]:
                    wanted = states[name].pop(0)
                    if wanted.shape == x.shape:  # routers may send other tokens
                        self.streams[name].add(x, wanted)

            return hook

        return {name: against(name) for name in self.groups}

    def result(self, each: bool) -> QuantizationError:
        sites, layers = [], []
        for name, places_ in self.groups.items():
            whole = _Sum()
            for place in places_:
                format = place.weight.dtype
                error = self.twin.weight(place)
                whole.error += error[0]
                whole.size += error[1]
                alone = _Sum(*error).relative
                bits = 8 * place.weight.nbytes / max(place.weight.numel(), 1)
                output = self.outputs[place.name].relative
                layer = "" if name == place.name else name
                sites.append(SiteError(place.name, layer, format.name, bits, alone, output))
            kl = self.alone[name] / self.predicted if each and self.predicted else None
            layers.append(LayerError(name, whole.relative, self.streams[name].relative, kl))
        count, seen = self.tokens, self.predicted
        perplexity = [math.exp(min(x / count, 700)) if count else math.nan for x in self.losses]
        return QuantizationError(
            tuple(sites),
            tuple(layers),
            seen,
            max(self.kl / seen, 0.0) if seen else math.nan,
            self.same / seen if seen else math.nan,
            perplexity[1],
            perplexity[0],
        )


def _predictions(made: Any) -> Tensor | None:
    """The log-probabilities of what follows each token but the last, or None where there are no logits."""
    found = made if isinstance(made, Tensor) else getattr(made, "logits", None)
    if not isinstance(found, Tensor) or found.ndim < 2:
        return None
    rows = found[:, :-1].flatten(0, 1) if found.ndim == 3 and found.shape[1] > 1 else found.flatten(0, -2)
    return F.log_softmax(rows.float(), dim=-1)


def _divergence(wanted: Tensor, made: Tensor) -> float:
    """The summed KL divergence of rows of log-probabilities."""
    terms = wanted.exp() * (wanted - made)
    # A word of probability 0 adds nothing, whatever the other says of it.
    return max(float(terms.nan_to_num(0.0).sum(dtype=votive.float64)), 0.0)


def _ids(item: Any) -> Tensor | None:
    if isinstance(item, Mapping):
        item = item.get("input_ids")
    elif isinstance(item, (tuple, list)) and item:
        item = item[0]
    whole = isinstance(item, Tensor) and not item.dtype.is_floating_point and item.ndim == 2
    return item.to(votive.int64) if whole else None


@contextmanager
def _watched(model: Module, hooks: Mapping[str, Callable[[Any, Any, Any], None]]) -> Iterator[None]:
    handles = [model.get_submodule(name).register_forward_hook(hook) for name, hook in hooks.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextmanager
def _exchanged(original: Module, model: Module, names: list[str]) -> Iterator[None]:
    """The original with some modules of the quantized model in place of its own."""
    before: list[tuple[Module, str, Module | None]] = []
    try:
        for name in names:
            parent, _, last = name.rpartition(".")
            place = original.get_submodule(parent)
            before.append((place, last, place._modules[last]))
            place._modules[last] = model.get_submodule(name)
        yield
    finally:
        for place, last, own in reversed(before):
            place._modules[last] = own
