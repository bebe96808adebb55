"""Loading a state: all or nothing, and what it accepts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import votive
from votive import nn

from .module_programs import make

NAMES = make(votive)
Lin, Net = NAMES.Lin, NAMES.Net


def values(m: Any) -> dict[str, Any]:
    return {k: v.clone().tolist() for k, v in m.state_dict().items()}


def spoiled(m: Any, **changes: Any) -> dict[str, Any]:
    given = {k: v + 1 for k, v in m.state_dict().items()}
    for key, value in changes.items():
        given[key.replace("__", ".")] = value
    return {k: v for k, v in given.items() if v is not None}


@pytest.mark.parametrize("assign", [False, True])
@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"head__fc__weight": votive.ones(7)}, "size mismatch for head.fc.weight"),
        ({"head__fc__weight": None}, 'Missing key(s) in state_dict: "head.fc.weight"'),
        ({"head__fc__other": votive.ones(1)}, 'Unexpected key(s) in state_dict: "head.fc.other"'),
        ({"head__fc__weight": "text"}, "head.fc.weight"),
        ({"head__fc__weight": np.array(["a"])}, "head.fc.weight"),
    ],
)
def test_a_load_that_fails_changes_nothing(changes: dict[str, Any], told: str, assign: bool) -> None:
    m = Net()
    before, tensors = values(m), [id(p) for p in m.parameters()]
    with pytest.raises(RuntimeError, match="loading state_dict for Net") as caught:
        m.load_state_dict(spoiled(m, **changes), assign=assign)
    assert told in str(caught.value)
    assert values(m) == before
    assert [id(p) for p in m.parameters()] == tensors


def test_a_load_tells_all_that_is_wrong_at_once() -> None:
    m = Net()
    given = spoiled(m, scale=None, first__weight=votive.ones(1, 1), elsewhere=votive.ones(1), norm__mean=votive.ones(9))
    with pytest.raises(RuntimeError) as caught:
        m.load_state_dict(given)
    lines = str(caught.value).split("\n\t")
    assert lines == [
        "Error(s) in loading state_dict for Net:",
        'Missing key(s) in state_dict: "scale". ',
        'Unexpected key(s) in state_dict: "elsewhere". ',
        "size mismatch for first.weight: copying a param with shape votive.Size([1, 1]) from "
        "checkpoint, the shape in current model is votive.Size([3, 2]).",
        "size mismatch for norm.mean: copying a param with shape votive.Size([9]) from "
        "checkpoint, the shape in current model is votive.Size([3]).",
    ]


class Eager(Lin):  # type: ignore[misc, valid-type]
    """Looks at its values as soon as the default has loaded them."""

    def _load_from_state_dict(self, *args: Any) -> None:
        super()._load_from_state_dict(*args)
        self.seen = float(self.weight.sum())


@pytest.mark.parametrize("assign", [False, True])
def test_values_that_an_override_needed_early_are_put_back_when_the_load_fails(assign: bool) -> None:
    m = nn.Sequential(Eager(2, 2), Lin(2, 2))
    before, weight = values(m), m[0].weight
    given = spoiled(m)
    given["1.weight"] = votive.ones(5)
    with pytest.raises(RuntimeError, match="size mismatch"):
        m.load_state_dict(given, assign=assign)
    assert m[0].seen == pytest.approx(sum(map(sum, before["0.weight"])) + 4)
    assert values(m) == before
    assert m[0].weight is weight


def test_a_post_hook_sees_loaded_values_and_may_forgive_missing_keys() -> None:
    m = nn.Sequential(Lin(1, 1))
    seen = []
    m.register_load_state_dict_post_hook(lambda m, keys: seen.append(float(m[0].weight)))
    given = {"0.weight": votive.full((1, 1), 7.0)}
    with pytest.raises(RuntimeError, match="Missing"):
        m.load_state_dict(given)
    assert seen == [7.0]
    assert float(m[0].weight) == 0.0, "put back, since nobody forgave"
    m.register_load_state_dict_post_hook(lambda m, keys: keys.missing_keys.clear())
    m.load_state_dict(given)
    assert float(m[0].weight) == 7.0


def test_numpy_arrays_and_tensors_of_torch_can_be_loaded() -> None:
    m = Lin(2, 2)
    m.load_state_dict({"weight": np.full((2, 2), 3.0), "bias": np.ones(2, np.float16)})
    assert m.weight.tolist() == [[3.0, 3.0], [3.0, 3.0]]
    assert m.bias.dtype is votive.float32
    torch = pytest.importorskip("torch")
    m.load_state_dict(torch.nn.Linear(2, 2).state_dict())


def test_the_state_shares_memory_with_the_module() -> None:
    m = Lin(2, 2)
    m.state_dict()["bias"].fill_(4)
    assert m.bias.tolist() == [4.0, 4.0]
    assert m.state_dict(keep_vars=True)["bias"] is m.bias
    with pytest.warns(FutureWarning, match="Positional"):
        assert list(m.state_dict(None, "p.")) == ["p.weight", "p.bias"]


def test_lazy_parameters_stay_lazy_when_a_load_fails() -> None:
    m = nn.Sequential(nn.LazyLinear(2), Lin(2, 2))
    given = nn.Sequential(nn.Linear(3, 2), Lin(2, 2)).state_dict()
    given["1.weight"] = votive.ones(9)
    with pytest.raises(RuntimeError, match="size mismatch"):
        m.load_state_dict(given)
    assert m[0].has_uninitialized_params()
