"""A coder inside a model, so that its features are a site like any other. Knows hooks, no model class."""

from __future__ import annotations

from typing import Any

from ... import nn
from ...nn import Module
from ...tensor import Tensor
from .. import values
from ..address import Pattern
from ..site_names import means_site, translated
from ..targets import no_match, uncompiled
from .coder import SAE
from .places import module_at

# What calls all of its modules itself, or none: one more of them would change what it computes.
_HOLDERS = (nn.Sequential, nn.ModuleList, nn.ModuleDict)


class Site(nn.Module):
    """Gives on what it is given: an address for a value."""

    def forward(self, value: Tensor) -> Tensor:
        return value.view_as(value)  # a node of its own, so that it has a gradient of its own


class Splice:
    """Holds a coder in a model inside a `with` block; see `splice`.

    `features`, `error` and `target` are the addresses of the features, of what they leave out, and of the value.
    """

    def __init__(
        self, model: Module, at: str | None, sae: SAE, *, error: bool = True, frozen_error: bool = False, name: str = ""
    ) -> None:
        c = sae.config
        if c.role == "crosscoder":
            raise ValueError(
                "splice: a crosscoder reads later layers than it writes; capture its layers and call encode()."
            )
        at = at or (c.writes if c.role == "transcoder" else c.site)
        if not at:
            raise ValueError("splice: the coder does not say where its values are; give an address.")
        self.model, self.sae, self.error_term, self.frozen = uncompiled(model), sae, error, frozen_error
        if c.role == "transcoder" and means_site(translated(c.site)):
            raise ValueError(
                f"splice: the transcoder reads {c.site!r}, but in a module's place it is given what goes into that."
            )
        place = module_at(self.model, at)
        if place is not None:
            host, side = place
            if c.role == "transcoder" and isinstance(host, (nn.LayerNorm, nn.RMSNorm)):
                raise ValueError(f"splice: {at!r} is the output of a norm; a transcoder replaces an MLP, so name that.")
            at = "^" + next(n for n, m in self.model.named_modules() if m is host) + (":in" if side == "in" else "")
        pattern = Pattern(at)
        if pattern.path or not pattern.wants_modules or pattern.regex is None or pattern.wants_ops:
            raise ValueError(f"splice: {at!r} must name a module, or what goes into it with ':in'.")
        self.inward = pattern.side == "in"
        if self.inward and c.role == "transcoder":
            raise ValueError("splice: a transcoder replaces a module; name it without ':in'.")
        self.path, self.host = self._find(pattern)
        prefix = f"{self.path}." if self.path else ""
        self._names = (f"{name}features", f"{name}error")
        self.features, self.error = (prefix + n for n in self._names)
        self.target = f"^{self.path}" + (":in" if self.inward else "")
        self._removed: list[Any] = []

    def _find(self, pattern: Pattern) -> tuple[str, Module]:
        named = list(self.model.named_modules())
        assert pattern.regex is not None
        found = [(n, m) for n, m in named if pattern.regex.fullmatch(f"{n}#0")]
        if not found:
            raise no_match(pattern, [n for n, _ in named])
        if len(found) > 1:
            raise ValueError(f"splice: {pattern.text!r} means {len(found)} modules, such as {found[0][0]!r}; name one.")
        if isinstance(found[0][1], _HOLDERS):
            kind = type(found[0][1]).__name__
            raise ValueError(
                f"splice: {found[0][0] or 'the model'!r} is a {kind}, which calls its parts in order; name one of them."
            )
        return found[0]

    def __enter__(self) -> Splice:
        if self._removed:
            raise RuntimeError("splice: it is in use already; make another one.")
        taken = [n for n in self._names if hasattr(self.host, n)]
        if taken:
            raise ValueError(f"splice: {self.path!r} has {taken[0]!r} already; give name= to tell them apart.")
        sites = [Site(), Site()]
        for name, site in zip(self._names, sites, strict=True):
            site.train(self.host.training)
            self.host._modules[name] = site
        if self.inward:
            hook = self.host.register_forward_pre_hook(self._before, with_kwargs=True)
        else:
            hook = self.host.register_forward_hook(self._after, with_kwargs=True)
        self._removed = [hook]
        return self

    def __exit__(self, *exc: object) -> None:
        for hook in self._removed:
            hook.remove()
        self._removed = []
        for name in self._names:
            self.host._modules.pop(name, None)

    # --- in the run ------------------------------------------------------------------------------

    def _before(self, _module: Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        way = values.first_path(args)
        if way is None:
            way = values.first_path(kwargs)
            if way is None:
                raise LookupError(f"splice: {self.path!r} is given no tensor.")
            x = values.get(kwargs, way)
            return args, values.put(kwargs, way, self._through(x, x))
        x = values.get(args, way)
        return values.put(args, way, self._through(x, x)), kwargs

    def _after(self, _module: Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> Any:
        way = values.first_path(output)
        if way is None and not isinstance(output, Tensor):
            raise LookupError(f"splice: {self.path!r} gives no tensor.")
        y = output if way is None else values.get(output, way)
        x = y
        if self.sae.config.role == "transcoder":
            found = values.first((args, kwargs))
            if found is None:
                raise LookupError(f"splice: {self.path!r} is given no tensor.")
            x = found
        new = self._through(x, y)
        return new if way is None else values.put(output, way, new)

    def _through(self, x: Tensor, y: Tensor) -> Tensor:
        """The value from its features, as they are after all edits, and from what they leave unexplained."""
        features = self.sae.encode(x)
        seen = self.host._modules[self._names[0]](features)
        given = self.sae.decode(seen, x)
        if self.error_term:
            error = y.to(given.dtype) - self.sae.decode(features, x)
            error = error.detach() if self.frozen else error
            given = given + self.host._modules[self._names[1]](error)
        return given.to(y.dtype)


def splice(
    model: Module, at: str | None, sae: SAE, *, error: bool = True, frozen_error: bool = False, name: str = ""
) -> Splice:
    """Let a value go through a coder inside a `with` block; its features are a site below the module's.

    At `layers.3` they are `layers.3.features`, to be captured, patched, ablated and steered as anything else, with
    gradients and true receipts. What the coder does not explain is added, and is the site `layers.3.error`, so that
    without edits the model computes what it did, up to rounding; `error=False` leaves it out, and `frozen_error=True`
    lets no gradient through it. A transcoder stands for a module, such as `layers.3.mlp`, and reads what goes into it.
    Named places that a module gives or is given serve too: at `layers.3.attn_out` or `blocks.3.hook_resid_pre` the
    coder is put at that module, whatever the family calls it, and `Splice.features` says what its features are called.
    Without an address the coder's own is taken; `name` comes before "features" and "error".

    >>> class Block(votive.nn.Module):
    ...     def forward(self, x):
    ...         return 2 * x
    >>> net = votive.nn.Sequential(Block())
    >>> sae = votive.glass.features.SAE(4, 8, "relu")
    >>> x = votive.randn(1, 3, 4)
    >>> with votive.glass.features.splice(net, "0", sae), votive.glass.capture(net, "0.features") as seen:
    ...     y = net(x)
    >>> votive.allclose(y, 2 * x, atol=1e-5), seen["0.features"].shape
    (True, votive.Size([1, 3, 8]))
    """
    return Splice(model, at, sae, error=error, frozen_error=frozen_error, name=name)


def steer(features: dict[int, float]) -> Any:
    """A function for an edit at a features site: adds to some features, wherever the edit is made.

    >>> steering = votive.glass.features.steer({1: 4.0})
    >>> steering(votive.zeros(1, 2, 3))
    tensor([[[0., 4., 0.],
             [0., 4., 0.]]])
    """
    if not features:
        raise ValueError("steer: name at least one feature.")

    def add(value: Tensor) -> Tensor:
        step = value.new_zeros(value.shape[-1])
        for feature, size in features.items():
            if not 0 <= feature < value.shape[-1]:
                raise IndexError(f"steer: feature {feature} is outside 0..{value.shape[-1] - 1}.")
            step[feature] = size
        return value + step

    return add
