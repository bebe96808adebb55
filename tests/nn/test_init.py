"""Start values: distributions, shapes, generators."""

from __future__ import annotations

import math
from typing import Any

import pytest

import votive
from votive import nn
from votive.nn import init

from .. import docstrings
from .examples import examples

DOCS = examples(init)


@pytest.mark.parametrize("name", sorted(DOCS))
def test_an_example_runs_as_printed(name: str) -> None:
    doc = DOCS[name]
    assert doc, f"{name} has no docstring"
    if not doc.startswith("Deprecated name"):
        docstrings.run(name, doc)


def moments(x: Any) -> tuple[float, float, float]:
    x = x.double()
    return float(x.mean()), float(x.std()), float(x.abs().max())


# A weight of 200×100: fan in 100, fan out 200. Name, arguments, standard deviation, bound.
SCALED = [
    ("xavier_uniform_", {}, math.sqrt(2 / 300), math.sqrt(6 / 300)),
    ("xavier_uniform_", {"gain": 3.0}, 3 * math.sqrt(2 / 300), 3 * math.sqrt(6 / 300)),
    ("xavier_normal_", {}, math.sqrt(2 / 300), None),
    ("kaiming_uniform_", {}, math.sqrt(2 / 100), math.sqrt(6 / 100)),
    ("kaiming_uniform_", {"a": math.sqrt(5)}, math.sqrt(1 / 300), 0.1),
    ("kaiming_uniform_", {"mode": "fan_out", "nonlinearity": "relu"}, 0.1, math.sqrt(3) / 10),
    ("kaiming_normal_", {"nonlinearity": "tanh"}, 5 / 3 / 10, None),
    ("kaiming_normal_", {"mode": "fan_out"}, 0.1, None),
    ("uniform_", {"a": -3.0, "b": 3.0}, math.sqrt(3), 3.0),
    ("normal_", {"std": 0.5}, 0.5, None),
]


@pytest.mark.parametrize(("name", "kwargs", "std", "bound"), SCALED)
def test_the_spread_is_the_formula_s(name: str, kwargs: dict[str, Any], std: float, bound: float | None) -> None:
    votive.manual_seed(1)
    w = nn.Parameter(votive.empty(200, 100))
    assert getattr(init, name)(w, **kwargs) is w
    assert w.requires_grad
    assert w.grad_fn is None
    mean, spread, largest = moments(w.detach())
    # 20,000 values: the mean is within 4 standard errors, the spread within about 4 too.
    assert abs(mean) < 4 * std / math.sqrt(20000)
    assert spread == pytest.approx(std, rel=0.02)
    if bound is not None:
        assert 0.99 * bound < largest <= bound


@pytest.mark.parametrize(
    ("mean", "std", "a", "b"),
    [(0, 1, -2, 2), (1, 2, -1, 1.5), (0, 1, 3, 4), (5, 0.1, -1, 1), (0, 1, -9, -8), (0, 0.02, -2, 2)],
)
def test_truncated_normal_values_have_the_moments_of_the_conditioned_distribution(
    mean: float, std: float, a: float, b: float
) -> None:
    stats = pytest.importorskip("scipy.stats")
    votive.manual_seed(2)
    x = init.trunc_normal_(votive.empty(50000, dtype=votive.float64), mean, std, a, b)
    assert float(x.min()) >= a
    assert float(x.max()) <= b
    want = stats.truncnorm((a - mean) / std, (b - mean) / std, loc=mean, scale=std)
    assert float(x.mean()) == pytest.approx(want.mean(), abs=4 * want.std() / math.sqrt(50000))
    assert float(x.std()) == pytest.approx(want.std(), rel=0.02)


@pytest.mark.parametrize("dtype", [votive.float16, votive.bfloat16, votive.float32])
def test_truncated_normal_values_stay_inside_in_narrow_types(dtype: Any) -> None:
    x = init.trunc_normal_(votive.empty(5000, dtype=dtype), a=-0.5, b=0.25)
    assert x.dtype is dtype
    assert float(x.min()) >= -0.5
    assert float(x.max()) <= 0.25


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (5, 2, 3), (2, 5, 3), (1, 1)])
@pytest.mark.parametrize("gain", [1, 2.5])
def test_orthogonal_values_are_orthonormal(shape: tuple[int, ...], gain: float) -> None:
    w = init.orthogonal_(votive.empty(shape, dtype=votive.float64), gain).reshape(shape[0], -1)
    gram = w @ w.T if w.shape[0] <= w.shape[1] else w.T @ w
    want = votive.eye(len(gram), dtype=votive.float64) * gain**2
    assert votive.allclose(gram, want, atol=1e-12)


def test_orthogonal_values_have_no_preferred_sign() -> None:
    votive.manual_seed(3)
    firsts = [float(init.orthogonal_(votive.empty(2, 2))[0, 0]) for _ in range(200)]
    assert 70 < sum(f > 0 for f in firsts) < 130


def test_sparse_values_have_zeros_in_each_column() -> None:
    votive.manual_seed(4)
    w = init.sparse_(votive.empty(10, 30), sparsity=0.25, std=1.0)
    assert (w == 0).sum(0).tolist() == [3] * 30
    assert len({tuple(c) for c in (w == 0).T.tolist()}) > 5, "not the same rows everywhere"


DRAWING = [
    ("uniform_", {}),
    ("normal_", {}),
    ("trunc_normal_", {}),
    ("xavier_uniform_", {}),
    ("xavier_normal_", {}),
    ("kaiming_uniform_", {}),
    ("kaiming_normal_", {}),
    ("orthogonal_", {}),
    ("sparse_", {"sparsity": 0.5}),
]


@pytest.mark.parametrize(("name", "kwargs"), DRAWING)
def test_a_generator_decides_the_values(name: str, kwargs: dict[str, Any]) -> None:
    fill = getattr(init, name)

    def draw(seed: int) -> Any:
        return fill(votive.empty(6, 6), generator=votive.Generator().manual_seed(seed), **kwargs)

    votive.manual_seed(0)
    before = votive.get_rng_state()
    assert votive.equal(draw(1), draw(1))
    assert not votive.equal(draw(1), draw(2))
    assert votive.equal(votive.get_rng_state(), before), "the default generator is not used"


def test_views_and_strided_tensors_are_filled_in_place() -> None:
    base = votive.zeros(4, 4)
    init.ones_(base.T[1:3])
    assert base.sum(0).tolist() == [0.0, 4.0, 4.0, 0.0]
    init.orthogonal_(base[:2])
    assert float(base[2:].sum()) == 4.0


def test_older_names_warn() -> None:
    with pytest.warns(FutureWarning, match="deprecated in favor of `nn.init.constant_`"):
        init.constant(votive.empty(1), 1.0)


def test_an_empty_tensor_is_left_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="no-op"):
        init.kaiming_normal_(votive.empty(0, 3))


def test_nothing_is_drawn_while_filling_is_skipped() -> None:
    votive.manual_seed(0)
    before = votive.get_rng_state()
    m = nn.utils.skip_init(nn.Linear, 3, 4, dtype=votive.float64)
    assert m.weight.shape == (4, 3)
    assert m.weight.dtype is votive.float64
    assert votive.equal(votive.get_rng_state(), before)
    assert init.ones_(votive.zeros(1)).item() == 1, "and filled again afterwards"
