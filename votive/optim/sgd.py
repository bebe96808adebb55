"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from ..ops.registry import F
from ..tensor import Tensor
from .group_step import GroupOptimizer, State, values
from .optimizer import Params
from .options import check_implementation, check_lr, nonnegative, number


class SGD(GroupOptimizer):
    """Stochastic gradient descent with momentum.

    With the gradient g (plus weight_decay * p): buf = momentum * buf + (1 - dampening) * g and
    p = p - lr * buf; Nesterov's form uses g + momentum * buf instead of buf.

    >>> w = votive.tensor([1.0, 2.0], requires_grad=True)
    >>> opt = votive.optim.SGD([w], lr=0.1, momentum=0.9)
    >>> for _ in range(2):
    ...     opt.zero_grad()
    ...     (w * w).sum().backward()
    ...     opt.step()
    >>> w
    tensor([0.4600, 0.9200], requires_grad=True)
    """

    _scales = True
    _absent = GroupOptimizer._absent | {"nesterov": False, "fused": False}
    _numbers = ()

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_lr(lr)
        nonnegative("momentum value", momentum)
        nonnegative("weight_decay value", weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        check_implementation(foreach, fused, differentiable)
        options = {
            "lr": lr,
            "momentum": momentum,
            "dampening": dampening,
            "weight_decay": weight_decay,
            "nesterov": nesterov,
        }
        super().__init__(
            params, options, maximize=maximize, foreach=foreach, differentiable=differentiable, fused=fused
        )

    def _state_of(self, p: Tensor, group: dict[str, Any]) -> State:
        # Without momentum nothing is kept, not even an empty entry.
        return self.state[p] if group["momentum"] != 0 else {}

    def _update_sparse(self, group: dict[str, Any], p: Tensor, grad: Tensor, state: State) -> None:
        """Only the rows of the gradient are written; a momentum is as sparse as the gradients were."""
        if group["weight_decay"]:
            raise RuntimeError("SGD: weight_decay option is not compatible with sparse gradients")
        g: Any = -grad if group["maximize"] else grad
        if group["momentum"]:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = g.detach().clone()
            else:
                buffer.mul_(group["momentum"]).add_(g, alpha=1 - group["dampening"])
            g = g.add(buffer, alpha=group["momentum"]) if group["nesterov"] else buffer
        p.add_(g, alpha=-float(group["lr"]))

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        # A loaded state may hold None where momentum was never used.
        fresh = tuple(s.get("momentum_buffer") is None for s in states)
        scale, found = self._scaling(params[0])
        if found is not None and any(fresh) and group["momentum"] and group["dampening"]:
            # A step that is left out leaves a buffer as it was. One of zeros is as good as a fresh
            # one, but for dampening: then the first step must be known to have happened.
            if found.item():
                return
        buffers: list[Tensor] = []
        if group["momentum"] != 0:
            for p, s, new in zip(params, states, fresh, strict=True):
                if new:
                    s["momentum_buffer"] = F.empty_like(p) if found is None else F.zeros_like(p)
                buffers.append(s["momentum_buffer"])
        F._sgd_step(
            params,
            grads,
            buffers,
            fresh,
            number(group["lr"]),
            *values(group, "momentum", "dampening"),
            number(group["weight_decay"]),
            *values(group, "nesterov", "maximize"),
            scale,
            found,
        )
