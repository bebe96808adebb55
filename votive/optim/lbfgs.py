"""L-BFGS: a quasi-Newton method with limited memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..autograd import no_grad
from ..ops.registry import F
from ..tensor import Tensor
from .line_search import Point, strong_wolfe
from .optimizer import Optimizer, Params
from .options import check_lr, number

# Below this curvature a pair says nothing of the Hessian (the value torch uses).
_MIN_CURVATURE = 1e-10


class LBFGS(Optimizer):
    """L-BFGS (Nocedal and Wright, algorithm 7.5), optionally with a strong-Wolfe line search.

    `step(closure)` iterates up to `max_iter` times; the closure clears the gradients, computes the
    loss, calls backward and returns the loss.

    >>> w = votive.tensor([3.0, -2.0], requires_grad=True)
    >>> opt = votive.optim.LBFGS([w], line_search_fn="strong_wolfe")
    >>> def closure():
    ...     opt.zero_grad()
    ...     loss = ((w - 1) ** 2).sum()
    ...     loss.backward()
    ...     return loss
    >>> opt.step(closure)
    tensor(13., grad_fn=<SumBackward0>)
    >>> [round(value, 5) for value in w.tolist()]
    [1.0, 1.0]
    """

    _by_number = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        super().__init__(
            params,
            {
                "lr": lr,
                "max_iter": max_iter,
                "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad,
                "tolerance_change": tolerance_change,
                "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    @property
    def _params(self) -> list[Tensor]:
        return self.param_groups[0]["params"]

    def _flat_grad(self) -> Tensor:
        """All gradients as one vector; complex ones as pairs of reals."""
        parts = []
        for p in self._params:
            g = F.zeros_like(p) if p.grad is None else p.grad
            parts.append(F.view_as_real(g).reshape(-1) if g.is_complex() else g.reshape(-1))
        return F.cat(parts)

    def _move(self, t: float, d: Tensor) -> None:
        """Add t * d to the parameters."""
        at = 0
        for p in self._params:
            real: Any = F.view_as_real(p) if p.is_complex() else p
            n = real.numel()
            real.add_(F.reshape(d[at : at + n], real.shape), alpha=t)
            at += n

    @no_grad()
    def step(self, closure: Callable[[], Any]) -> Any:
        """Iterate; gives the loss before the first move."""
        (group,) = self.param_groups
        lr, change = float(number(group["lr"])), group["tolerance_change"]
        max_iter, max_eval = group["max_iter"], group["max_eval"]
        # Only one state for all parameters: it belongs to the first.
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first_loss = self._evaluate(closure)
        loss, g = float(first_loss), self._flat_grad()
        evals = 1
        state["func_evals"] += 1
        if _largest(g) <= group["tolerance_grad"]:
            return first_loss

        for n in range(1, max_iter + 1):
            state["n_iter"] += 1
            d = self._direction(state, g, group["history_size"])
            before = loss
            slope = float(F.dot(g, d))
            t = min(1.0, 1.0 / float(g.abs().sum())) * lr if state["n_iter"] == 1 else lr
            state.update(d=d, t=t, prev_flat_grad=g, prev_loss=before)
            if slope > -change:
                break
            if group["line_search_fn"] is not None:
                here = Point(0.0, loss, g, slope)
                point, used = self._search(group, closure, here, t, d, max_eval - evals)
                loss, g, t = point.loss, point.grad, point.t
                state["t"] = t
                self._move(t, d)
            else:
                self._move(t, d)
                used = 0
                if n != max_iter:
                    loss, g = float(self._evaluate(closure)), self._flat_grad()
                    used = 1
            evals += used
            state["func_evals"] += used
            if n == max_iter or evals >= max_eval or _largest(g) <= group["tolerance_grad"]:
                break
            if t * _largest(d) <= change or abs(loss - before) < change:
                break
        return first_loss

    def _direction(self, state: dict[str, Any], g: Tensor, history_size: int) -> Tensor:
        """Minus the approximate inverse Hessian times the gradient: the two-loop recursion."""
        if state["n_iter"] == 1:
            state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
            return -g
        ys, ss, ro = state["old_dirs"], state["old_stps"], state["ro"]
        y = g - state["prev_flat_grad"]
        s = state["d"] * float(state["t"])
        curvature = float(F.dot(y, s))
        if curvature > _MIN_CURVATURE:
            if len(ys) == history_size:
                for kept in (ys, ss, ro):
                    kept.pop(0)
            ys.append(y)
            ss.append(s)
            ro.append(1.0 / curvature)
            state["H_diag"] = curvature / float(F.dot(y, y))
        q = -g
        weights = [0.0] * len(ys)
        for i in range(len(ys) - 1, -1, -1):
            weights[i] = float(F.dot(ss[i], q)) * float(ro[i])
            q = q - weights[i] * ys[i]
        r = q * float(state["H_diag"])
        for i in range(len(ys)):
            r = r + (weights[i] - float(F.dot(ys[i], r)) * float(ro[i])) * ss[i]
        return r

    def _search(
        self, group: dict[str, Any], closure: Callable[[], Tensor], here: Point, t: float, d: Tensor, max_evals: int
    ) -> tuple[Point, int]:
        if group["line_search_fn"] != "strong_wolfe":
            raise RuntimeError("only 'strong_wolfe' is supported")
        origin = [F.clone(p) for p in self._params]

        def evaluate(t: float) -> Point:
            self._move(t, d)
            loss = float(self._evaluate(closure))
            g = self._flat_grad()
            # Back by copying: subtracting t * d would leave rounding errors behind.
            for p, o in zip(self._params, origin, strict=True):
                F.copy_(p, o)
            return Point(t, loss, g, float(F.dot(g, d)))

        return strong_wolfe(evaluate, here, t, _largest(d), max_evals)


def _largest(x: Tensor) -> float:
    return float(x.abs().max())
