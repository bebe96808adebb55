"""Linear and logistic probes on rows of numbers: what can be read off by a hyperplane. Knows rows, no model."""

from __future__ import annotations

from dataclasses import dataclass

import votive

from ...nn import functional as F
from ...optim import LBFGS
from ...tensor import Tensor

KINDS = ("logistic", "ridge")


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
        raise TypeError(f"fit: labels are whole numbers in a row, got {y.dtype} {tuple(y.shape)}; or kind='ridge'.")
    classes, labels = y.unique(return_inverse=True)
    if len(classes) < 2:
        raise ValueError(f"fit: there is only one class, {classes.tolist()}; a probe needs two.")
    # Scales do not change what is best but for the penalty, which therefore goes with them.
    middle, scale = x.mean(0), (x - x.mean(0)).square().mean(0).sqrt().clamp(min=1e-8)
    z = (x - middle) / scale
    # Two classes have one weight, and the penalty of that one alone, as is usual.
    rows = 1 if len(classes) == 2 else len(classes)
    weight = votive.zeros(rows, x.shape[1], dtype=x.dtype, requires_grad=True)
    bias = votive.zeros(rows, dtype=x.dtype, requires_grad=True)
    optimizer = LBFGS(
        [weight, bias],
        max_iter=2000,
        max_eval=4000,
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
    if rows == 1:
        w, b = votive.cat([-w / 2, w / 2]), votive.cat([-b / 2, b / 2])
    return LinearProbe(w, b, classes)
