"""Linear and logistic probes on rows of numbers: what can be read off by a hyperplane. Knows rows, no model."""

from __future__ import annotations

from dataclasses import dataclass

import votive

from ...nn import functional as F
from ...optim import LBFGS
from ...tensor import Tensor

KINDS = ("logistic", "ridge")
# Up to so many features two classes are told apart by Newton's method, whose steps solve a system of that size.
_NEWTON = 1024


@dataclass(frozen=True)
class LinearProbe:
    """A probe that was fitted: `x @ weight.t() + bias`, one row of `weight` for each class or target.

    `classes` are the labels in the order of the rows; None for a ridge, whose targets are numbers.

    >>> x = votive.tensor([[-2.0], [-1.0], [1.0], [2.0]])
    >>> probe = votive.glass.probes.fit(x, votive.tensor([0, 0, 1, 1]))
    >>> probe.predict(votive.tensor([[-5.0], [5.0]])).tolist(), probe.score(x, votive.tensor([0, 0, 1, 1]))
    ([0, 1], 1.0)
    """

    weight: Tensor
    bias: Tensor
    classes: Tensor | None = None

    def scores(self, x: Tensor) -> Tensor:
        """What the probe says of each row: (rows, classes or targets)."""
        return x.to(self.weight.dtype) @ self.weight.t() + self.bias

    def predict(self, x: Tensor) -> Tensor:
        """The likeliest label of each row; of a ridge the numbers."""
        found = self.scores(x)
        return found if self.classes is None else self.classes[found.argmax(-1)]

    def score(self, x: Tensor, y: Tensor) -> float:
        """The share of labels that are right; of a ridge the share of variance that is explained."""
        found = self.predict(x)
        if self.classes is not None:
            return float((found == y).double().mean())
        y = y.to(found.dtype).reshape(len(y), -1)
        total = (y - y.mean(0)).square().sum()
        return 1 - float((y - found).square().sum() / total) if float(total) else float("nan")

    @property
    def direction(self) -> Tensor:
        """The direction of a probe of two classes (from the first to the second), or of one target; of length 1."""
        if len(self.weight) > 2 or (self.classes is None and len(self.weight) > 1):
            raise ValueError(f"LinearProbe: {len(self.weight)} classes have no single direction; take rows of weight.")
        found = self.weight[-1] - self.weight[0] if self.classes is not None else self.weight[0]
        return found / found.norm().clamp(min=1e-30)


def fit(x: Tensor, y: Tensor, *, kind: str = "logistic", penalty: float = 1.0) -> LinearProbe:
    """Fit a probe to rows: "logistic" to labels, "ridge" to numbers (rows,) or (rows, targets).

    Logistic makes the summed cross entropy plus `penalty / 2` times the squared weights small (scikit-learn's C is
    1 / penalty), ridge the summed squared errors plus `penalty` times the squared weights. Biases are free. All is
    computed in float64.

    >>> x = votive.tensor([[0.0], [1.0], [2.0]])
    >>> probe = votive.glass.probes.fit(x, 3 * x[:, 0] + 1, kind="ridge", penalty=0.0)
    >>> round(float(probe.weight), 4), round(float(probe.bias), 4)
    (3.0, 1.0)
    """
    if kind not in KINDS:
        raise ValueError(f"fit: kind must be one of {', '.join(KINDS)}, got {kind!r}.")
    if x.dim() != 2 or len(x) != len(y) or not len(x):
        raise ValueError(f"fit: rows and as many labels, got {tuple(x.shape)} and {tuple(y.shape)}.")
    if penalty < 0:
        raise ValueError(f"fit: penalty must not be negative, got {penalty}.")
    x = x.detach().double()
    if not bool(x.isfinite().all()):
        raise ValueError("fit: some rows are not finite.")
    return _ridge(x, y.detach(), penalty) if kind == "ridge" else _logistic(x, y.detach(), penalty)


def _ridge(x: Tensor, y: Tensor, penalty: float) -> LinearProbe:
    y = y.double().reshape(len(y), -1)
    mean, middle = x.mean(0), y.mean(0)
    x, y = x - mean, y - middle
    gram = x.t() @ x + penalty * votive.eye(x.shape[1], dtype=x.dtype)
    if penalty > 0:
        weight = votive.linalg.solve(gram, x.t() @ y).t()
    else:  # features may depend on each other
        weight = (votive.linalg.pinv(gram, hermitian=True) @ (x.t() @ y)).t()
    return LinearProbe(weight, middle - weight @ mean)


def _logistic(x: Tensor, y: Tensor, penalty: float) -> LinearProbe:
    if y.is_floating_point() or y.is_complex() or y.dim() != 1:
        raise TypeError(
            f"fit: labels must be a 1-d tensor of integers, got {y.dtype} {tuple(y.shape)}; or kind='ridge'."
        )
    classes, labels = y.unique(return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"fit: there is only one class, {classes.tolist()}; a probe needs two.")
    if len(classes) == 2 and x.shape[1] <= _NEWTON:
        w, b = _newton(x, labels.double(), penalty)
        return LinearProbe(votive.stack([-w / 2, w / 2]), votive.stack([-b / 2, b / 2]), classes)
    w, b = _descended(x, labels, len(classes), penalty)
    return LinearProbe(w, b, classes)


def _newton(x: Tensor, y: Tensor, penalty: float) -> tuple[Tensor, Tensor]:
    """The weight and bias of two classes by Newton's method; steps that lead too far are halved."""
    middle = x.mean(0)
    z = votive.cat([x - middle, votive.ones(len(x), 1, dtype=x.dtype)], 1)
    keep = votive.full((z.shape[1],), penalty, dtype=x.dtype)
    keep[-1] = 0.0
    w = votive.zeros(z.shape[1], dtype=x.dtype)

    def loss(w: Tensor) -> float:
        return float(F.binary_cross_entropy_with_logits(z @ w, y, reduction="sum") + (keep * w.square()).sum() / 2)

    value = loss(w)
    for _ in range(100):
        p = (z @ w).sigmoid()
        slope = z.t() @ (p - y) + keep * w
        curve = z.t() @ (z * (p * (1 - p)).unsqueeze(1))
        # Without a penalty classes that can be told apart have no best weight, and no curvature in the end.
        curve = curve + (keep + 1e-12 * (1 + curve.diag().max())).diag()
        step = votive.linalg.solve(curve, slope)
        size = 1.0
        while size > 1e-6 and loss(w - size * step) > value:
            size /= 2
        if size <= 1e-6:
            break
        w = w - size * step
        before, value = value, loss(w)
        if float(slope.abs().max()) < 1e-9 or before - value < 1e-14 * max(1.0, abs(value)):
            break
    return w[:-1], w[-1] - w[:-1] @ middle


def _descended(x: Tensor, labels: Tensor, classes: int, penalty: float) -> tuple[Tensor, Tensor]:
    """The weights and biases of several classes, or of many features, by L-BFGS."""
    # Scales do not change what is best but for the penalty, which therefore goes with them.
    middle, scale = x.mean(0), (x - x.mean(0)).square().mean(0).sqrt().clamp(min=1e-8)
    z = (x - middle) / scale
    # Two classes have one weight, and the penalty of that one alone, as is usual.
    rows = 1 if classes == 2 else classes
    weight = votive.zeros(rows, x.shape[1], dtype=x.dtype, requires_grad=True)
    bias = votive.zeros(rows, dtype=x.dtype, requires_grad=True)
    optimizer = LBFGS(
        [weight, bias],
        max_iter=500,
        max_eval=1000,
        tolerance_grad=1e-10,
        tolerance_change=1e-14,
        history_size=30,
        line_search_fn="strong_wolfe",
    )

    def loss() -> Tensor:
        optimizer.zero_grad()
        scores = z @ weight.t() + bias
        if rows == 1:
            fit = F.binary_cross_entropy_with_logits(scores[:, 0], labels.double())
        else:
            fit = F.cross_entropy(scores, labels)
        value = fit + penalty / (2 * len(x)) * (weight / scale).square().sum()
        value.backward()
        return value

    with votive.enable_grad():
        optimizer.step(loss)
    w = (weight / scale).detach()
    b = bias.detach() - w @ middle
    return (votive.cat([-w / 2, w / 2]), votive.cat([-b / 2, b / 2])) if rows == 1 else (w, b)
