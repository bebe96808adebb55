"""Whether each named place of a decoder holds what its name says: measured, not believed. Knows no family.

One run shows all places; another, in which nothing is opened, shows what modules and fused operators really get and
give. The parts must make up the whole, and what is changed must change the answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import votive

from ..nn import Module
from ..tensor import Tensor
from .display import Displayable, Pictures
from .edits import Edit
from .parts import find_parts
from .patch import patch
from .probe import Frame, Probe
from .sites import AllSites, some_ids
from .table import Table
from .targets import uncompiled


class WrongSite(RuntimeError):
    """A place that does not hold what its name says."""


@dataclass
class SiteCheck(Displayable):
    """What was checked: by address, what must be equal there and how far it is off, as a share of its size."""

    rows: list[tuple[str, str, float]] = field(default_factory=list)
    tolerance: float = 0.0

    @property
    def wrong(self) -> list[tuple[str, str, float]]:
        """What is off by more than rounding."""
        return [r for r in self.rows if not r[2] <= self.tolerance]

    @property
    def worst(self) -> float:
        """The largest difference."""
        return max((r[2] for r in self.rows), default=0.0)

    def pictures(self) -> Pictures:
        return {"checks": lambda: [Table(["site", "what is equal", "off by"], [list(r) for r in self.rows])]}

    def __str__(self) -> str:
        shown = self.wrong or sorted(self.rows, key=lambda r: -r[2])[:8]
        lines = [f"{at:<28} {what:<44} {off:.1e}" for at, what, off in shown]
        return "\n".join([f"{len(self.rows)} checks, {len(self.wrong)} wrong; tolerance {self.tolerance:.0e}", *lines])

    def same(self, at: str, what: str, got: Tensor, expected: Tensor) -> None:
        """Note how far two values are from each other."""
        if got.shape != expected.shape:
            self.rows.append((at, f"{what}: {tuple(got.shape)} for {tuple(expected.shape)}", math.inf))
            return
        got, expected = got.double(), expected.double()
        both = (got == expected) | ~(got.isfinite() | expected.isfinite())
        off = (got - expected).masked_fill(both, 0.0).abs().max()
        size = expected.masked_fill(~expected.isfinite(), 0.0).abs().max()
        self.rows.append((at, what, float(off) / max(float(size), 1e-12)))


class _Plain(Probe):
    """What modules and fused attention get and give where no place is opened."""

    def __init__(self, model: Module) -> None:
        super().__init__(model, ops=True)
        self.given: dict[str, Any] = {}
        self.gave: dict[str, Any] = {}

    def left(self, frame: Frame) -> None:
        at = f"{frame.address.module}/{frame.address.op}" if frame.address.op else frame.address.module
        self.given[at] = frame.args
        self.gave[at] = frame.output


def check_sites(model: Module, *args: object, edits: bool = True, **kwargs: object) -> SiteCheck:
    """Measure that every named place of a decoder holds what its name says; raise `WrongSite` if not.

    Sums must be the whole (`resid_pre + attn_out = resid_mid`, results of heads = attention), `softmax(scores)` the
    pattern, `pattern @ v` z, and so on; and all of it what modules and fused operators have in a run that nobody
    opens. With `edits`, each place of the first and the last layer is changed, which must reach the logits. Without
    inputs the model is run on some ids. The model should be in `eval()`.

    >>> config = votive.models.LlamaConfig(vocab_size=9, hidden_size=8, intermediate_size=16, num_hidden_layers=1,
    ...     num_attention_heads=2)
    >>> check = votive.glass.check_sites(votive.models.LlamaForCausalLM(config).eval())
    >>> len(check.wrong), check.worst < 1e-4
    (0, True)
    """
    model = uncompiled(model)
    if not args and not kwargs:
        args = (some_ids(model),)
    seen, plain = AllSites(model), _Plain(model)
    with votive.no_grad():
        expected = model(*args, **kwargs).logits
        with seen:
            model(*args, **kwargs)
        with plain:
            model(*args, **kwargs)
        report = SiteCheck(tolerance=_tolerance(model))
        if not seen.values:
            raise LookupError(f"{type(model).__name__} runs through no named places; see votive.glass.sites.")
        _Checks(model, seen.values, plain, report).all(expected)
        if edits:
            _edited(model, args, kwargs, expected, seen.values, report)
    if report.wrong:
        raise WrongSite(f"{type(model).__name__}: {report}")
    return report


def _tolerance(model: Module) -> float:
    """What rounding may add up to."""
    kinds = {t.dtype for t in (*model.parameters(), *model.buffers())}
    if any(hasattr(d, "block_size") and d.block_size > 1 for d in kinds):
        # Products with blocks round what they are given to eight bits a number: what is rounded otherwise before
        # that may come out a step away.
        return 0.06
    return max([1e-4, *(8 * votive.finfo(d).eps for d in kinds if d.is_floating_point)])


class _Checks:
    def __init__(self, model: Module, values: dict[str, Any], plain: _Plain, report: SiteCheck) -> None:
        self.model, self.values, self.plain, self.report = model, values, plain, report
        self.parts = find_parts(model)

    def all(self, logits: Tensor) -> None:
        v, same = self.values, self.report.same
        start = v["embed"] + v["pos_embed"] if "pos_embed" in v else v["embed"]
        if not next(m for m in self.model.modules() if hasattr(m, "stack")).design.embedding_norm:
            same("embed", "all embeddings = layers.0.resid_pre", start, v["layers.0.resid_pre"])
        last = len(self.parts.layers) - 1
        for i, name in enumerate(self.parts.names):
            self.layer(f"layers.{i}", name, self.parts.layers[i])
            if i < last:
                same(
                    f"layers.{i}.resid_post",
                    "next resid_pre",
                    v[f"layers.{i}.resid_post"],
                    v[f"layers.{i + 1}.resid_pre"],
                )
        if "ln_final.scale" in v:
            self.norm("ln_final", v[f"layers.{last}.resid_post"], self.parts.norm)
        same("logits", "logits of a run that is not opened", v["logits"], logits)

    def norm(self, at: str, read: Tensor, norm: Any) -> None:
        """A norm's scale and normed vectors, from what it reads."""
        x = read.double()
        if isinstance(norm, votive.nn.LayerNorm):
            x = x - x.mean(-1, keepdim=True)
        scale, normed = self.values[f"{at}.scale"], self.values[f"{at}.normalized"]
        size = (x.square().mean(-1, keepdim=True) + (norm.eps or 0.0)).sqrt()
        self.report.same(f"{at}.scale", "root of the mean square", scale, size)
        self.report.same(f"{at}.normalized", "normalized * scale = what is read", normed.double() * scale.double(), x)

    def layer(self, at: str, name: str, layer: Any) -> None:
        v, same = (
            {k.removeprefix(f"{at}."): x for k, x in self.values.items() if k.startswith(f"{at}.")},
            self.report.same,
        )
        gave, paths = self.plain.gave, {id(m): n for n, m in layer.named_modules()}
        if hasattr(layer, "is_net"):
            self.solo(at, v, name, layer)
            return
        if not hasattr(layer.mixer, "apart"):
            return  # no attention, of which less is known
        attn, net = f"{name}.{paths[id(layer.mixer)]}", paths.get(id(layer.net))
        net = None if net is None else f"{name}.{net}"
        before, behind, before_net, behind_net = layer.norms()
        read = "resid_pre" if layer.parallel else "resid_mid"
        if layer.norm_place == "before":
            for field_, start in (("attn_in", "resid_pre"), ("mlp_in", read)):
                same(f"{at}.{field_}", f"{field_} = {start}", v[field_], v[start])
            if before is not None:
                self.norm(f"{at}.ln1", v["attn_in"], before)
            if before_net is not None:
                self.norm(f"{at}.ln2", v["mlp_in"], before_net)
        else:
            self.normed_stream(at, v, name, layer)
        for n, count in (("q", v["attn.q"].shape[2]), ("k", v["attn.k"].shape[2]), ("v", v["attn.v"].shape[2])):
            if f"{n}_input" not in v:
                continue  # a layer whose heads all read the same
            own = v["attn_in"].unsqueeze(2).expand(*v["attn_in"].shape[:2], count, v["attn_in"].shape[2])
            same(f"{at}.{n}_input", "each head reads attn_in", v[f"{n}_input"], own)
        self.attention(at, v, attn, layer.mixer)
        middle = v["resid_pre"] + v["attn_out"]
        if layer.norm_place == "before":
            if not layer.parallel:
                same(f"{at}.resid_mid", "resid_pre + attn_out", middle, v["resid_mid"])
            same(f"{at}.resid_post", "attn_out and mlp_out added", middle + v["mlp_out"], v["resid_post"])
        same(f"{at}.resid_post", "what the layer gives", v["resid_post"], gave[name])
        if behind is None:
            share = getattr(layer, "mixer_factors", (1.0, layer.residual_scale))[1]
            same(f"{at}.attn_out", "what attention gives", v["attn_out"], gave[attn] * share)
        else:
            self.norm(f"{at}.ln1_post", gave[attn], behind)
        if net is None:
            return  # its products are the layer's own
        if behind_net is None:
            share = getattr(layer, "net_factors", (1.0, layer.residual_scale))[1]
            same(f"{at}.mlp_out", "what the net gives", v["mlp_out"], gave[net] * share)
        else:
            self.norm(f"{at}.ln2_post", gave[net], behind_net)
        self.net(at, v, net, layer.net)

    def solo(self, at: str, v: dict[str, Any], name: str, layer: Any) -> None:
        """A layer of one part: a mixer of positions, or a net."""
        same, gave, path = self.report.same, self.plain.gave, f"{name}.{layer.mixer_path}"
        reads, norm, writes = ("mlp_in", "ln2", "mlp_out") if layer.is_net else ("attn_in", "ln1", "attn_out")
        same(f"{at}.{reads}", f"{reads} = resid_pre", v[reads], v["resid_pre"])
        self.norm(f"{at}.{norm}", v[reads], next(n for n in layer.norms() if n is not None))
        same(f"{at}.{writes}", "what the one part gives", v[writes], gave[path])
        same(f"{at}.resid_post", f"resid_pre + {writes}", v["resid_pre"] + v[writes], v["resid_post"])
        same(f"{at}.resid_post", "what the layer gives", v["resid_post"], gave[name])
        if hasattr(layer.mixer, "apart"):
            self.attention(at, v, path, layer.mixer)
        elif layer.is_net:
            self.net(at, v, path, layer.net)

    def normed_stream(self, at: str, v: dict[str, Any], name: str, layer: Any) -> None:
        """Norms of the stream itself: what they read and what they give, which is handed on."""
        same, gave = self.report.same, self.plain.gave
        normed = [gave[f"{name}.{n}"] for n in layer.norm_names if n]
        first, _, second, _ = layer.norms()
        first_share, second_share = (getattr(layer, n, (1.0,))[0] for n in ("mixer_factors", "net_factors"))
        attn, net = v["attn_in"] * first_share + v["attn_out"], v["mlp_in"] * second_share + v["mlp_out"]
        if layer.norm_place == "stream":
            reads = v["resid_pre"], v["resid_mid"]
            same(f"{at}.attn_in", "what the norm gives", v["attn_in"], normed[0])
            same(f"{at}.resid_mid", "attn_in + attn_out", v["resid_mid"], attn)
            same(f"{at}.mlp_in", "what the norm gives", v["mlp_in"], normed[1])
            same(f"{at}.resid_post", "mlp_in + mlp_out", v["resid_post"], net)
        else:
            reads = attn, net
            same(f"{at}.attn_in", "attn_in = resid_pre", v["attn_in"], v["resid_pre"])
            same(f"{at}.resid_mid", "what the norm gives", v["resid_mid"], normed[0])
            same(f"{at}.mlp_in", "mlp_in = resid_mid", v["mlp_in"], v["resid_mid"])
            same(f"{at}.resid_post", "what the norm gives", v["resid_post"], normed[1])
        self.norm(f"{at}.ln1", reads[0], first)
        self.norm(f"{at}.ln2", reads[1], second)

    def attention(self, at: str, v: dict[str, Any], path: str, module: Any) -> None:
        same, plain = self.report.same, self.plain
        q, k = v.get("attn.rot_q", v["attn.q"]), v.get("attn.rot_k", v["attn.k"])
        group = q.shape[2] // k.shape[2]
        keys, values = (t.transpose(1, 2).repeat_interleave(group, 1).double() for t in (k, v["attn.v"]))
        scale = q.shape[-1] ** -0.5 if module.scale is None else module.scale
        products = q.transpose(1, 2).double() @ keys.transpose(-2, -1) * scale
        if module.cap is not None:
            products = module.cap * votive.tanh(products / module.cap)
        fused = plain.given.get(f"{path}/attention")
        if fused is not None and fused[3] is not None and fused[3].is_floating_point():
            products = products + fused[3].double()  # what falls with the distance
        seen = v["attn.scores"].isfinite()
        same(
            f"{at}.attn.scores",
            "q . k * scale",
            v["attn.scores"].masked_fill(~seen, 0.0),
            products.masked_fill(~seen, 0.0),
        )
        scores = v["attn.scores"].double()
        if module.has_sinks:
            sinks = module.sinks.detach().double().view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
            scores = votive.cat([scores, sinks], -1)
        pattern = votive.softmax(scores, -1).nan_to_num(0.0)[..., : v["attn.pattern"].shape[-1]]
        same(f"{at}.attn.pattern", "softmax(scores)", v["attn.pattern"], pattern)
        z = (v["attn.pattern"].double() @ values).transpose(1, 2)
        same(f"{at}.attn.z", "pattern @ v", v["attn.z"], z)
        if fused is not None:
            for name, mine, given in (("q", q, fused[0]), ("k", k, fused[1]), ("v", v["attn.v"], fused[2])):
                same(f"{at}.attn.{name}", "what fused attention is given", mine.transpose(1, 2), given)
            same(
                f"{at}.attn.z",
                "what fused attention gives",
                v["attn.z"].transpose(1, 2),
                plain.gave[f"{path}/attention"][0],
            )
        bias = getattr(module.product, "bias", None)
        total = v["attn.result"].sum(2) if bias is None else v["attn.result"].sum(2) + bias
        same(f"{at}.attn.result", "results of heads = attention", total, plain.gave[path])

    def net(self, at: str, v: dict[str, Any], path: str, module: Any) -> None:
        same, gave = self.report.same, self.plain.gave[path]
        if "mlp.router_logits" in v:
            best, chosen = module.chances(v["mlp.router_logits"].flatten(0, 1))
            used = v["mlp.expert_weights"]
            kept = votive.zeros_like(used).flatten(0, 1).scatter(-1, chosen, best.to(used.dtype)).view(used.shape)
            same(f"{at}.mlp.expert_weights", "chances of the chosen experts", used, kept)
            same(
                f"{at}.mlp.router_logits",
                "what the router gives",
                v["mlp.router_logits"].flatten(0, 1),
                self.plain.gave[f"{path}.{module.design.gate}"],
            )
            return
        if "mlp.pre" not in v:
            return  # a net of its own kind, of which less is known
        made = module.act_fn(v["mlp.pre"])
        made = made * v["mlp.pre_linear"] if "mlp.pre_linear" in v else made
        same(f"{at}.mlp.post", "activation of mlp.pre", v["mlp.post"], made)
        product = module.halves()[2]
        same(f"{at}.mlp.post", "its product is what the net gives", product(v["mlp.post"]), gave)


def _edited(
    model: Module,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    logits: Tensor,
    values: dict[str, Any],
    report: SiteCheck,
) -> None:
    """Change each place of the first and of the last layer: the logits must follow, and the receipt say so."""
    last = max(int(a.split(".")[1]) for a in values if a.startswith("layers."))
    chosen = [a for a in values if not a.startswith("layers.") or int(a.split(".")[1]) in (0, last)]
    for at in chosen:
        # Not by a factor, which norms and softmax may take away again; and by position, for the same reason.
        edit = Edit(at, "call", _bent)
        with patch(model, edit) as receipt:
            changed = model(*args, **kwargs).logits
        moved = float((changed.double() - logits.double()).abs().max())
        site = receipt.sites[at]
        fine = moved > 0 and site.reached is not False and site.largest > 0
        report.rows.append((at, "an edit there moves the logits", 0.0 if fine else math.inf))


def _bent(x: Tensor) -> Tensor:
    """Other values, which differ along every dimension; what is masked stays so."""
    at = votive.arange(x.numel(), device=x.device).reshape(x.shape).to(x.dtype)
    return x + votive.where(x.isfinite(), 0.5 * votive.sin(1.0 + at), votive.zeros_like(x)).to(x.dtype)
