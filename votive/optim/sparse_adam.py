"""Adam for sparse gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import no_grad
from ..ops.registry import F
from ..tensor import Tensor
from .optimizer import Optimizer, Params


class SparseAdam(Optimizer):
    """Adam that moves only the rows a sparse gradient has, and their averages (Kingma & Ba 2015, section 2).

    >>> table = votive.nn.Embedding(4, 1, sparse=True)
    >>> opt = votive.optim.SparseAdam(list(table.parameters()), lr=0.1)
    >>> before = table.weight.detach().clone()
    >>> table(votive.tensor([2])).sum().backward()
    >>> opt.step()
    >>> (table.weight.detach() != before).reshape(-1)
    tensor([False, False,  True, False])
    """

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if isinstance(lr, Tensor) and lr.numel() != 1:
            raise ValueError("Tensor lr must be 1-element")
        if not float(lr) > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        for i, beta in enumerate(betas):
            if not 0.0 <= beta < 1.0:
                raise ValueError(f"Invalid beta parameter at index {i}: {beta}")
        super().__init__(params, {"lr": lr, "betas": betas, "eps": eps, "maximize": maximize})
        at = [i for group in self.param_groups for i, p in enumerate(group["params"]) if p.layout.name != "strided"]
        if at:
            raise ValueError(f"Sparse params at indices {at}: SparseAdam requires dense parameter tensors")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update the rows of every parameter that its gradient has; gives the closure's loss, if there is one."""
        loss = self._evaluate(closure)
        with no_grad():
            for group in self.param_groups:
                for p in group["params"]:
                    if p._grad is not None:
                        self._move(group, p, p._grad)
        return loss

    def _move(self, group: dict[str, Any], p: Tensor, grad: Any) -> None:
        if not grad.is_sparse:
            raise RuntimeError("SparseAdam does not support dense gradients, please consider Adam instead")
        state = self.state[p]
        if not state:
            state["step"] = 0
            state["exp_avg"], state["exp_avg_sq"] = F.zeros_like(p), F.zeros_like(p)
        state["step"] += 1
        g = grad.coalesce()
        if g._nnz() == 0:
            return
        values = -g.values() if group["maximize"] else g.values()
        averages = []
        for name, beta, new in zip(("exp_avg", "exp_avg_sq"), group["betas"], (values, values * values), strict=True):
            old = state[name].sparse_mask(g).values()
            change = (new - old) * (1 - beta)
            state[name].add_(g._with(change))
            averages.append(old + change)
        first, second = averages
        beta1, beta2 = group["betas"]
        rate = float(group["lr"]) * (1 - beta2 ** state["step"]) ** 0.5 / (1 - beta1 ** state["step"])
        p.add_(g._with(first / (second.sqrt() + group["eps"])), alpha=-rate)
