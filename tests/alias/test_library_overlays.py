"""Private parts of torch that libraries import behave as they expect."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import votive
from votive.torch.overlays import _dynamo
from votive.torch.overlays._dynamo.eval_frame import OptimizedModule
from votive.torch.overlays._higher_order_ops.associative_scan import associative_scan
from votive.torch.overlays.distributed.tensor import DTensor
from votive.torch.tensor_types import tensor_type

from .test_import import run


def test_an_associative_scan_gives_running_results_in_both_directions() -> None:
    x = votive.arange(6.0).reshape(2, 3)
    assert associative_scan(operator.add, x, dim=1).tolist() == x.cumsum(1).tolist()
    assert associative_scan(operator.mul, x, 0, reverse=True, combine_mode="generic").tolist() == [
        [0, 4, 10],
        [3, 4, 5],
    ]
    # A recurrence h = a * h + b, as in state-space models.
    a, b = votive.tensor([0.5, 0.5, 0.5]), votive.tensor([1.0, 1.0, 1.0])
    _, h = associative_scan(lambda p, q: (p[0] * q[0], q[0] * p[1] + q[1]), (a, b), 0)
    assert h.tolist() == [1.0, 1.5, 1.75]
    with pytest.raises(RuntimeError, match="keep shapes"):
        associative_scan(lambda p, q: (p + q)[None], x, 1)


def test_decorators_of_the_compiler_keep_what_a_function_does() -> None:
    fn = lambda x: x
    assert _dynamo.disable(fn)(3) == 3
    assert _dynamo.disable(recursive=False)(fn)(3) == 3
    assert _dynamo.allow_in_graph(fn) is fn


def test_compiled_modules_and_spread_tensors_are_told_from_plain_ones() -> None:
    layer = votive.nn.Linear(1, 1)
    assert not isinstance(layer, OptimizedModule)
    assert isinstance(votive.compile(layer), OptimizedModule)
    assert not isinstance(votive.ones(1), DTensor)
    with pytest.raises(NotImplementedError, match="one process"):
        DTensor(1)


def test_functionals_of_vision_have_forms_for_plain_tensors() -> None:
    import votive.vision.transforms.v2.functional as v2

    image = votive.arange(12, dtype=votive.uint8).reshape(3, 2, 2)
    assert v2.to_dtype_image(image, votive.float32, scale=False).dtype is votive.float32
    assert v2.resize_image(image, [4, 4]).shape == (3, 4, 4)
    with pytest.raises(AttributeError, match="colour_image"):
        v2.colour_image  # noqa: B018


def test_legacy_constructors_take_arrays_as_data_and_numbers_as_sizes() -> None:
    made = tensor_type("Float")
    assert made(np.ones((2, 2))).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    assert made(np.arange(2)).tolist() == [0.0, 1.0]
    assert made(np.int64(3)).shape == (3,)


def test_names_that_timm_imports_are_there() -> None:
    run(
        """
        from torch.hub import HASH_REGEX, urlparse
        from torch.jit import Final
        from torch.jit.annotations import List
        assert HASH_REGEX.search("resnet18-f37072fd.pth")[1] == "f37072fd"
        assert urlparse("https://a/b").netloc == "a"
        assert Final is not None and List is not None
        """
    )
