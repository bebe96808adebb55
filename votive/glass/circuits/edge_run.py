"""A run in which single edges carry other values: path patching, and the measures of a circuit. Knows no family.

The stream is a sum. Where an edge is cut, its reader gets the stream less what the writer wrote, plus what it would
have written in the other run: Wang et al. 2022, arXiv:2211.00593; Goldowsky-Dill et al. 2023, arXiv:2304.05969.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import votive

from ...nn import Module
from ...tensor import Tensor
from ..address import Pattern
from ..probe import Frame, Probe
from ..probe_hub import CHANGES
from ..sites import holders
from ..sweep_runs import inputs_of
from ..targets import uncompiled
from .graph import Circuit, Edge, Graph, graph

Metric: TypeAlias = Callable[[Any], Any]
# Inputs of another run, "zero", or what writers are to have written: by name, as `averages` gives it.
Other: TypeAlias = object

_WRITES = ("layers.0.resid_pre", "layers.*.attn.result", "layers.*.{ln1_post.scale,attn_out,mlp_out}")
READS = ("layers.*.q_input", "layers.*.k_input", "layers.*.v_input", "layers.*.mlp_in", "layers.*.resid_post")


class WriterRun(Probe):
    """Keeps what each writer writes into the stream: `values` (writers, samples, positions, features)."""

    order = CHANGES
    more: tuple[str, ...] = ()  # places besides

    def __init__(self, model: Module, of: Graph) -> None:
        super().__init__(model, sites=[Pattern(n) for n in (*_WRITES, *self.more)])
        self._only = {id(m): m for m in holders(self.model)}
        self.graph = of
        self.gains, self.scales = _gains_behind(self.model, of)
        self._written: list[Any] = []
        self._result: Any = None
        self._scale: Any = None

    @property
    def values(self) -> Tensor:
        """What was written in the last run."""
        return votive.stack(self._written)

    def left(self, frame: Frame) -> None:
        _, layer, name = _place(str(frame.address))
        if layer is None:
            return
        with self.muted():
            if name == "resid_pre":
                self._written = [frame.output]
            elif name == "attn.result":
                self._result, self._scale = frame.output, None
            elif name == "ln1_post.scale":
                self._scale = frame.output.unsqueeze(2)
            elif name == "attn_out":
                result = self._result
                if self._scale is not None:
                    # A norm behind attention: with its scale, each head's share of what is added.
                    result = (result / self._scale * self.gains[layer]).to(frame.output.dtype)
                if self.scales[layer] != 1.0:
                    result = result * self.scales[layer]
                self._written += list(result.unbind(2))
            elif name == "mlp_out":
                self._written.append(frame.output)


class EdgeRun(WriterRun):
    """A run in which the edges of `cut` (writers, readers) carry `other` (writers, samples, positions, features).

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model, ids = votive.models.LlamaForCausalLM(config).eval(), votive.tensor([[1, 2]])
    >>> g = votive.glass.circuits.graph(model)
    >>> other = votive.zeros(len(g.writers), 1, 2, 8)
    >>> with votive.no_grad(), votive.glass.circuits.EdgeRun(model, g, g.allowed, other):
    ...     bool((model(ids).logits == 0).all())
    True
    """

    more = READS

    def __init__(self, model: Module, of: Graph, cut: Tensor, other: Tensor) -> None:
        super().__init__(model, of)
        self.changes = [(cut & of.allowed, other)]
        self.at = {reader: j for j, reader in enumerate(of.readers)}

    def left(self, frame: Frame) -> None:
        super().left(frame)
        _, layer, name = _place(str(frame.address))
        if layer is None:
            return
        last = layer == self.graph.layers - 1
        with self.muted():
            if name.endswith("_input"):
                kind = name[0]
                count = frame.output.shape[2]
                columns = [self.at[f"layers.{layer}.{kind}.{h}"] for h in range(count)]
                frame.output = self._changed(frame.output, columns, True)
            elif name == "mlp_in":
                frame.output = self._changed(frame.output, [self.at[f"layers.{layer}.mlp"]], False)
            elif name == "resid_post" and last:
                frame.output = self._changed(frame.output, [self.at["logits"]], False)

    def also(self, cut: Tensor, other: Tensor) -> None:
        """Let edges that nothing else was said of carry something else again."""
        self.changes.append((cut & self.graph.allowed, other))

    def _changed(self, x: Tensor, columns: list[int], by_head: bool) -> Tensor:
        count = len(self._written)
        for cut, other in self.changes:
            mask = cut[:count][:, columns]  # (W, R)
            rows = mask.any(1).nonzero().flatten().tolist()
            if not rows:
                continue
            change = votive.stack([other[i].to(x.dtype) - self._written[i] for i in rows])  # (W, B, T, C)
            chosen = mask[rows].to(device=x.device, dtype=x.dtype)
            if by_head:
                x = x + votive.einsum("wr,wbtc->btrc", chosen, change)
            else:
                x = x + votive.einsum("wr,wbtc->rbtc", chosen, change)[0]
        return x


def _place(address: str) -> tuple[str, int | None, str]:
    kind, _, rest = address.partition(".")
    number, _, name = rest.partition(".")
    return kind, int(number) if kind == "layers" and number.isdigit() else None, name


def _gains_behind(model: Module, of: Graph) -> tuple[list[Any], list[float]]:
    """By layer, what a norm behind attention multiplies each feature with, and what of a result is added."""
    from ..head_weights import Weights, _gain

    found = Weights(model)
    norms = [found._norms(i)[1] for i in range(of.layers)]
    return [1.0 if n is None else _gain(n) for n in norms], [p.residual_scale for p in found.parts.layers]


def written(model: Module, of: Graph, given: object) -> tuple[Tensor, Any]:
    """What writers write for some inputs, (writers, samples, positions, features), and the model's output."""
    args, kwargs = inputs_of(given)
    with WriterRun(model, of) as run:
        output = model(*args, **kwargs)
    return run.values, output


def other_values(model: Module, of: Graph, own: Tensor, other: Other) -> Tensor:
    """What edges that are cut carry: of another run, zeros, or given vectors by writer."""
    if isinstance(other, str):
        if other != "zero":
            raise ValueError(f"circuits: give inputs of another run, 'zero' or means; got {other!r}.")
        return votive.zeros_like(own)
    if isinstance(other, Mapping) and set(other) >= set(of.writers):
        return votive.stack([other[w].to(own.dtype).expand(own.shape[1:]) for w in of.writers])
    found = written(model, of, other)[0]
    if found.shape != own.shape:
        raise ValueError(
            f"circuits: both texts must have as many samples and positions; the streams are {tuple(own.shape[1:])} "
            f"and {tuple(found.shape[1:])}."
        )
    return found


def averages(model: Module, batches: Iterable[object], over: str = "samples") -> dict[str, Tensor]:
    """What each writer writes on average over a data set, as a dict that `votive.save` takes.

    The mean is over samples for each position of texts of one length; with `over="positions"` over both. Where a
    batch has an `attention_mask`, only what is in it counts.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> found = votive.glass.circuits.averages(model, [votive.tensor([[1, 2], [3, 4]])])
    >>> found["layers.0.head.1"].shape
    votive.Size([1, 2, 8])
    """
    if over not in ("samples", "positions"):
        raise ValueError(f"averages: over must be samples or positions, got {over!r}.")
    of, total, count = graph(model), None, votive.zeros(1, 1, 1, 1)
    with votive.no_grad():
        for batch in batches:
            found = written(uncompiled(model), of, batch)[0].double()
            dims = (1,) if over == "samples" else (1, 2)
            used = found.new_ones((1, *found.shape[1:3], 1))
            mask = inputs_of(batch)[1].get("attention_mask")
            if isinstance(mask, Tensor) and mask.dim() == 2:
                if over == "samples" and not bool(mask[:, 0].all()):
                    raise ValueError("averages: padding comes before a text; pad on the right, or use over='positions'")
                used = mask.to(device=found.device, dtype=found.dtype)[None, :, -found.shape[2] :, None]
            # Not by a product: what is left out may be of any size.
            part = found.masked_fill(used == 0, 0.0).sum(dims, keepdim=True)
            if total is not None and total.shape != part.shape:
                raise ValueError("averages: texts have different lengths; use over='positions'.")
            total, count = (part if total is None else total + part), count + (used != 0).sum(dims, keepdim=True)
    if total is None:
        raise ValueError("averages: no batch was given.")
    if not bool((count > 0).all()):
        raise ValueError("averages: there are positions that the attention_mask leaves out in every sample.")
    return {w: m.float() for w, m in zip(of.writers, total / count, strict=True)}


def measured(metric: Metric, output: object) -> float:
    """The mean of a metric over samples."""
    found = votive.as_tensor(metric(output))
    return float(found.double().mean())


def patch_paths(model: Module, clean: object, other: Other, edges: Iterable[Edge]) -> Any:
    """The model's output for `clean` where some edges carry what they do in another run; all else follows.

    `other` is inputs of the model, "zero", or means from `averages`. Edges are pairs of a writer and a reader.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> ids, other = votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]])
    >>> edges = votive.glass.circuits.graph(model).edges()
    >>> out = votive.glass.circuits.patch_paths(model, ids, other, edges)  # all of them: the other run
    >>> votive.allclose(out.logits, model(other).logits, atol=1e-5)
    True
    """
    model = uncompiled(model)
    of = graph(model)
    with votive.no_grad():
        own, _ = written(model, of, clean)
        values = other_values(model, of, own, other)
        args, kwargs = inputs_of(clean)
        with EdgeRun(model, of, of.mask(edges), values):
            return model(*args, **kwargs)


@dataclass(frozen=True)
class Faithfulness:
    """What is left of a metric: in the circuit alone, and without it.

    `faithfulness` is the share that the circuit alone keeps (1: all), `completeness` the share that is lost without
    it (1: nothing outside does the same).
    """

    clean: float
    other: float
    circuit: float
    without: float

    @property
    def faithfulness(self) -> float:
        return (self.circuit - self.other) / (self.clean - self.other)

    @property
    def completeness(self) -> float:
        return (self.clean - self.without) / (self.clean - self.other)


def faithfulness(model: Module, clean: object, other: Other, circuit: Circuit, *, metric: Metric) -> Faithfulness:
    """How much of a metric a circuit keeps by itself, and how much is lost without it.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config).eval()
    >>> g = votive.glass.circuits.graph(model)
    >>> whole = votive.glass.circuits.Circuit(g, g.allowed)
    >>> left = votive.glass.circuits.faithfulness(model, votive.tensor([[1, 2, 3]]), votive.tensor([[1, 5, 3]]), whole,
    ...     metric=lambda out: out.logits[:, -1, 4])
    >>> round(left.faithfulness, 3), round(left.completeness, 3)
    (1.0, 1.0)
    """
    model = uncompiled(model)
    of = circuit.graph
    args, kwargs = inputs_of(clean)

    def run(cut: Tensor) -> float:
        with EdgeRun(model, of, cut, values):
            return measured(metric, model(*args, **kwargs))

    with votive.no_grad():
        own, output = written(model, of, clean)
        values = other_values(model, of, own, other)
        return Faithfulness(measured(metric, output), run(of.allowed), run(~circuit.mask), run(circuit.mask))
