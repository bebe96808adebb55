"""What a sparse coder is like, as data: sizes, activation, what it reads and writes. Knows no tensors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

KINDS = ("relu", "topk", "batchtopk", "jumprelu", "gated")


@dataclass(frozen=True)
class SAEConfig:
    """One configuration for sparse autoencoders, transcoders and crosscoders.

    `kind` is the activation. With `d_out` it is a transcoder, which gives something else than it reads; `skip` adds a
    linear way around it. With `layers` above 1 it is a crosscoder: one set of features for (..., layers, d_in). With
    `prefixes`, ascending numbers of features, it is a matryoshka: the first ones alone must explain the value too.
    `center` takes the decoder's bias from what is read. `site` and `writes` say where a model has these values,
    `model` which model.

    >>> config = votive.glass.features.SAEConfig(16, 64, "topk", k=4, site="layers.2")
    >>> config.role, config.replace(d_out=16).role, config.replace(layers=3).role
    ('sae', 'transcoder', 'crosscoder')
    """

    d_in: int
    d_sae: int
    kind: str = "topk"
    k: int | None = None
    d_out: int | None = None
    skip: bool = False
    layers: int = 1
    prefixes: tuple[int, ...] = ()
    center: bool | None = None
    bandwidth: float = 0.001
    threshold: float = 0.001
    site: str = ""
    writes: str = ""
    model: str = ""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise ValueError(f"SAEConfig: kind must be one of {', '.join(KINDS)}, got {self.kind!r}.")
        for name in ("d_in", "d_sae", "layers", "d_out"):
            size = getattr(self, name)
            if name == "d_out" and size is None:
                continue
            if type(size) is not int or size < 1:
                raise ValueError(f"SAEConfig: {name} must be a positive integer, got {size!r}.")
        if (self.k is not None) != (self.kind in ("topk", "batchtopk")):
            needs = "needs k, the number of features that may fire" if self.k is None else "has no use for k"
            raise ValueError(f"SAEConfig: kind {self.kind!r} {needs}.")
        if self.k is not None and not 1 <= self.k <= self.d_sae:
            raise ValueError(f"SAEConfig: k must be in 1..{self.d_sae}, got {self.k}.")
        if self.skip and self.d_out is None:
            raise ValueError("SAEConfig: skip= is for transcoders; give d_out=.")
        if self.layers > 1 and self.d_out is not None:
            raise ValueError("SAEConfig: a crosscoder gives what it reads; leave d_out away.")
        object.__setattr__(self, "prefixes", tuple(self.prefixes))
        if self.prefixes and (
            list(self.prefixes) != sorted(set(self.prefixes)) or self.prefixes[0] < 1 or self.prefixes[-1] != self.d_sae
        ):
            raise ValueError(f"SAEConfig: prefixes must ascend and end with {self.d_sae}, got {self.prefixes}.")
        if self.center is None:
            object.__setattr__(self, "center", self.d_out is None)
        if self.center and self.d_out is not None:
            raise ValueError("SAEConfig: a transcoder's bias is of what it gives; center= must be False.")
        if self.bandwidth <= 0 or self.threshold <= 0:
            raise ValueError("SAEConfig: bandwidth and threshold must be above 0.")

    @property
    def role(self) -> str:
        """Whether it is an "sae", a "transcoder" or a "crosscoder"."""
        if self.layers > 1:
            return "crosscoder"
        return "sae" if self.d_out is None else "transcoder"

    @property
    def reads(self) -> int:
        """How many numbers it reads at a position."""
        return self.d_in * self.layers

    @property
    def gives(self) -> int:
        """How many numbers it gives at a position."""
        return self.d_out or self.reads

    def replace(self, **changes: Any) -> SAEConfig:
        """The same with other values."""
        if "center" not in changes and "d_out" in changes:
            changes["center"] = None
        return replace(self, **changes)

    def to_dict(self) -> dict[str, Any]:
        """The values as JSON has them."""
        return {**asdict(self), "prefixes": list(self.prefixes)}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> SAEConfig:
        """Read `to_dict` back; unknown names are refused."""
        unknown = sorted(set(given) - {f.name for f in fields(cls)})
        if unknown:
            raise ValueError(f"SAEConfig: unknown {', '.join(unknown)}.")
        return cls(**{**given, "prefixes": tuple(given.get("prefixes", ()))})
