"""AdamW: Adam with decoupled weight decay."""

from __future__ import annotations

from typing import Any

from ..tensor import Tensor
from .adam import Adam
from .optimizer import Params


class AdamW(Adam):
    """Adam whose weight decay shrinks the parameters directly (Loshchilov and Hutter 2017).

    p = p (1 - lr * weight_decay) before Adam's step, so that the decay is not divided by √v.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.AdamW([w], lr=0.1, weight_decay=0.5)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w
    tensor([0.8500, 1.8000], requires_grad=True)
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        super().__init__(
            params,
            lr,
            betas,
            eps,
            weight_decay,
            amsgrad,
            foreach=foreach,
            maximize=maximize,
            capturable=capturable,
            differentiable=differentiable,
            fused=fused,
            decoupled_weight_decay=True,
        )

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        # Whatever was loaded, also a state of Adam: the decay is what makes this AdamW.
        for group in self.param_groups:
            group["decoupled_weight_decay"] = True
