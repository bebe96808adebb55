"""nn.utils: as torch's; gradients; what must survive."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

import votive
from votive import nn
from votive.nn.utils import (
    clip_grad,
    convert_parameters,
    fusion,
    memory_format,
    parametrizations,
    parametrize,
    rnn,
    stateless,
)
from votive.nn.utils import init as skipping

from .. import docstrings
from .examples import examples
from .module_programs import make
from .utils_programs import numbers

Lin = make(votive).Lin


def _by_path(name: str) -> Any:
    """A module whose name is hidden by a function of the same name."""
    import importlib

    return importlib.import_module(f"votive.nn.utils.{name}")


DOCS = examples(
    clip_grad,
    convert_parameters,
    fusion,
    memory_format,
    parametrizations,
    parametrize,
    rnn,
    stateless,
    skipping,
    _by_path("spectral_norm"),
    _by_path("weight_norm"),
)


@pytest.mark.parametrize("name", sorted(DOCS))
def test_an_example_runs_as_printed(name: str) -> None:
    docstrings.run(name, DOCS[name])


def test_clipping_leaves_small_gradients_alone() -> None:
    p = nn.Parameter(votive.ones(3))
    p.grad = votive.tensor([0.1, 0.2, 0.2])
    assert float(nn.utils.clip_grad_norm_(p, 1.0)) == pytest.approx(0.3)
    assert p.grad.tolist() == pytest.approx([0.1, 0.2, 0.2])


def test_clipping_takes_a_generator_and_warns_of_an_empty_one() -> None:
    m = Lin(2, 2)
    m(votive.ones(1, 2)).sum().backward()
    total = nn.utils.clip_grad_norm_(m.parameters(), 1e-3)
    assert float(total) > 1
    assert float(nn.utils.get_total_norm([p.grad for p in m.parameters()])) < 1.01e-3
    with pytest.warns(UserWarning, match="empty generator"):
        nn.utils.clip_grad_norm_((p for p in ()), 1.0)


def test_gradients_of_two_types_are_clipped_together() -> None:
    a, b = nn.Parameter(votive.ones(9).half()), nn.Parameter(votive.ones(16))
    a.grad, b.grad = votive.ones(9).half(), votive.ones(16)
    assert float(nn.utils.clip_grad_norm_([a, b], 1.0)) == pytest.approx(5.0)
    assert float(a.grad[0]) == pytest.approx(0.2, abs=1e-3)
    assert float(b.grad[0]) == pytest.approx(0.2)


def test_parameters_look_at_the_vector_they_were_given() -> None:
    m = Lin(2, 2)
    v = votive.arange(6.0)
    nn.utils.vector_to_parameters(v, m.parameters())
    v[0] = 9.0
    assert float(m.weight[0, 0]) == 9.0


@pytest.mark.parametrize("register", ["weight_norm", "spectral_norm", "orthogonal"])
def test_gradients_through_a_parametrization_are_right(register: str) -> None:
    m = Lin(3, 3).double()
    m.weight.data = numbers(votive, 3, 3)
    getattr(parametrizations, register)(m)
    m.eval()
    originals = [p.detach().clone().requires_grad_() for p in m.parametrizations.parameters()]

    def weight(*values: Any) -> Any:
        names = [n for n, _ in m.parametrizations.named_parameters()]
        with stateless.replaced(m.parametrizations, dict(zip(names, values, strict=True))):
            return m.weight

    assert votive.autograd.gradcheck(weight, originals)


def test_a_copy_of_a_parametrized_module_stays_parametrized_when_the_first_is_not() -> None:
    m = parametrizations.weight_norm(nn.Linear(2, 3))
    twin = copy.deepcopy(m)
    parametrize.remove_parametrizations(m, "weight")
    assert type(m) is nn.Linear
    assert parametrize.is_parametrized(twin, "weight")
    assert votive.allclose(twin.weight, m.weight)
    twin.weight = votive.ones(3, 2)
    assert votive.allclose(twin.weight, votive.ones(3, 2))


def test_cached_values_are_of_their_module() -> None:
    a = parametrize.register_parametrization(nn.Linear(2, 2), "weight", nn.Identity())
    b = copy.deepcopy(a)
    b.parametrizations.weight.original.data.zero_()
    with parametrize.cached(), parametrize.cached():
        assert a.weight is a.weight
        assert not votive.equal(a.weight, b.weight)
    assert a.weight.requires_grad


def test_an_optimizer_s_parameter_survives_parametrizing() -> None:
    m = nn.Linear(2, 2)
    known = m.weight
    parametrize.register_parametrization(m, "weight", nn.Identity())
    m(votive.ones(1, 2)).sum().backward()
    assert known.grad is not None
    parametrize.remove_parametrizations(m, "weight")
    assert m.weight is known


def test_a_parametrization_that_is_refused_leaves_the_module_as_it_was() -> None:
    class Wrong(nn.Module):
        def forward(self, x: Any) -> Any:
            return x[0]

    m = nn.Linear(2, 2)
    weight = m.weight
    with pytest.raises(ValueError, match="shape"):
        parametrize.register_parametrization(m, "weight", Wrong())
    assert type(m) is nn.Linear
    assert m.weight is weight


def test_the_path_of_a_parametrization_is_known() -> None:
    class Wrong(nn.Module):
        def forward(self, x: Any) -> Any:
            raise ValueError("no")

    m = nn.Sequential(nn.Linear(2, 2))
    parametrize.register_parametrization(m[0], "weight", nn.Identity())
    parametrize.register_parametrization(m[0], "weight", Wrong(), unsafe=True)
    with pytest.raises(ValueError, match="no") as caught:
        m(votive.ones(1, 2))
    assert caught.value.__notes__ == ["in module '0.parametrizations.weight.1' (Wrong)"]


def test_two_forwards_through_spectral_norm_have_one_backward() -> None:
    for m in (nn.utils.spectral_norm(Lin(2, 2)), parametrizations.spectral_norm(Lin(2, 2))):
        (m(votive.ones(1, 2)) - m(votive.zeros(1, 2))).sum().backward()


def test_spectral_norm_finds_the_largest_singular_value() -> None:
    m = nn.Linear(5, 7).double()
    m.weight.data.copy_(numbers(votive, 7, 5))
    parametrizations.spectral_norm(m, n_power_iterations=200)
    assert float(votive.linalg.svdvals(m.weight)[0]) == pytest.approx(1.0, abs=1e-9)


def test_older_weight_norm_is_deprecated_and_works_in_a_model() -> None:
    with pytest.warns(FutureWarning, match="parametrizations.weight_norm"):
        m = nn.utils.weight_norm(nn.Linear(2, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = nn.Sequential(m)(votive.ones(1, 2))
    y.sum().backward()
    assert m.weight_g.grad is not None
    with pytest.raises(ValueError, match="uninitialized"), pytest.warns(FutureWarning):
        nn.utils.weight_norm(nn.LazyLinear(2))
    with pytest.raises(ValueError, match="uninitialized"):
        nn.utils.spectral_norm(nn.LazyLinear(2))


def test_a_length_beyond_the_input_is_refused() -> None:
    with pytest.raises(RuntimeError, match="exceeds the 3 steps"):
        rnn.pack_padded_sequence(votive.ones(3, 2), [9, 1])


def test_packing_then_padding_gives_the_batch_back() -> None:
    x = numbers(votive, 5, 4, 2)
    lengths = [3, 5, 1, 4]
    packed = rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
    assert packed.data.shape == (sum(lengths), 2)
    padded, again = rnn.pad_packed_sequence(packed)
    assert again.tolist() == lengths
    for b, n in enumerate(lengths):
        assert votive.equal(padded[:n, b], x[:n, b])
        assert float(padded[n:, b].abs().sum()) == 0.0


def test_unpadding_does_not_change_its_argument() -> None:
    x = votive.ones(3, 2)
    rnn.unpad_sequence(x, votive.tensor([3, 1]))
    assert x.shape == (3, 2)


def test_gradients_of_packing_and_padding_are_right() -> None:
    x = numbers(votive, 4, 3, 2).requires_grad_()

    def there_and_back(x: Any) -> Any:
        packed = rnn.pack_padded_sequence(x, [2, 4, 3], enforce_sorted=False)
        return rnn.pad_packed_sequence(packed, padding_value=3.0)[0]

    assert votive.autograd.gradcheck(there_and_back, (x,))
    assert votive.autograd.gradgradcheck(lambda x: there_and_back(x) ** 2, (x,))


def test_a_module_called_with_other_parameters_gets_its_own_back_after_an_error() -> None:
    m = Lin(2, 2)
    own = m.weight
    with pytest.raises(RuntimeError):
        stateless.functional_call(m, {"weight": votive.ones(5, 5)}, votive.ones(1, 2))
    assert m.weight is own
