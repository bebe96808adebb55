"""How exactly a GPU multiplies float32: torch's switch, under torch's names. Starts nothing."""

from __future__ import annotations

from typing import Any

from .. import base

PRECISIONS = ("highest", "high", "medium")


class Matmul:
    """`votive.backends.cuda.matmul`: what matrix products and convolutions in float32 may do.

    >>> votive.backends.cuda.matmul.allow_tf32
    False
    """

    precision = "highest"  # see `votive.set_float32_matmul_precision`

    @property
    def allow_tf32(self) -> bool:
        """Whether operands may be cut to TF32 (10 bits behind the point), which is several times
        faster."""
        return self.precision != "highest"

    @allow_tf32.setter
    def allow_tf32(self, value: bool) -> None:
        if value.__class__ is not bool:
            raise TypeError(f"allow_tf32: expected a bool, got {type(value).__name__}.")
        self.choose("high" if value else "highest")

    def choose(self, precision: str) -> None:
        before = self.allow_tf32
        type(self).precision = precision
        if before != self.allow_tf32:
            for tell in base.listeners:  # plans that chose a kernel are made anew
                tell("")

    @property
    def fp32_precision(self) -> str:
        """ "tf32" or "ieee", as `allow_tf32` says."""
        return "tf32" if self.allow_tf32 else "ieee"

    @fp32_precision.setter
    def fp32_precision(self, value: str) -> None:
        if value not in ("none", "ieee", "tf32"):
            raise RuntimeError(f"fp32_precision: expected 'ieee', 'tf32' or 'none', got {value!r}.")
        self.choose("high" if value == "tf32" else "highest")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in PERMISSIONS:
            if not isinstance(value, (bool, tuple)):
                raise TypeError(f"{name}: expected a bool, got {type(value).__name__}.")
        elif name not in ("allow_tf32", "fp32_precision"):
            raise AttributeError(f"votive.backends.cuda.matmul has no switch {name!r}.")
        super().__setattr__(name, value)

    # What products may do but never need to: votive adds half types in float32.
    allow_fp16_reduced_precision_reduction: bool | tuple[bool, bool] = True
    allow_bf16_reduced_precision_reduction: bool | tuple[bool, bool] = True
    allow_fp16_accumulation: bool = False


PERMISSIONS = frozenset(name for name in vars(Matmul) if name.startswith("allow_") and name != "allow_tf32")


class Convolutions:
    """What convolutions may do, beside what products may: use cuDNN, cut float32 to TF32. See `backends.cudnn`."""

    library = True
    tf32 = True

    @property
    def allow_tf32(self) -> bool:
        return self.tf32 and matmul.allow_tf32

    def choose(self, *, library: bool | None = None, tf32: bool | None = None) -> None:
        before = self.library, self.allow_tf32
        self.library = self.library if library is None else library
        self.tf32 = self.tf32 if tf32 is None else tf32
        if before != (self.library, self.allow_tf32):
            for tell in base.listeners:
                tell("")


matmul = Matmul()
convolutions = Convolutions()
