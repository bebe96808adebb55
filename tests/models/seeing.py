"""What sees and hears, compared with transformers: a row for each class and choice, with what it is given."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import votive
import votive.models as models

from .compare import agree, arrays, both, torch, transformers

Given = dict[str, Any]


class Row(NamedTuple):
    """A class that is called alike in both, its configuration, what it is given, and labels for its loss."""

    name: str
    config: Callable[[], Any]
    given: Callable[[], Given]
    labels: Callable[[], Given] | None = None

    gain: float = 3.0
    asked: tuple[str, ...] = ("output_attentions", "output_hidden_states")
    idle: str = ""  # a pattern of parameters without a gradient


def pictures(*shape: int, seed: int = 0) -> Any:
    """Random pictures, or samples."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def configured(name: str, *sides: dict[str, Any], **settings: Any) -> Callable[[], Any]:
    """What makes a configuration of transformers, when it is asked for."""
    return lambda: getattr(transformers, name)(**settings)


ROWS: dict[str, Row] = {}
for _file in sorted((Path(__file__).parent / "seen").glob("[a-z]*.py")):
    ROWS |= import_module(f"tests.models.seen.{_file.stem}").ROWS


@cache
def models_of(name: str) -> tuple[Any, Any]:
    """Both models of a row; they are shared, so tests leave them as they are."""
    return fresh(name)


def fresh(name: str, train: bool = False) -> tuple[Any, Any]:
    """Both models of a row, made anew."""
    row, config = ROWS[name], ROWS[name].config()
    torch.manual_seed(0)
    config._attn_implementation = "eager"
    reference = getattr(transformers, row.name)(config).eval()
    with torch.no_grad():
        for key, p in reference.named_parameters():
            # What begins at zero or one would hide what is swapped or left out.
            if p.dim() < 2:
                p.add_(torch.randn_like(p) * 0.1)
            elif not p.any():
                p.normal_(std=0.2)
            elif "embed" not in key:
                p.mul_(row.gain)
        for key, b in reference.named_buffers():
            if "running" in key:
                b.uniform_(0.5, 1.5)
    ours = getattr(models, row.name)
    model = ours(ours.config_class.from_dict(config.to_dict()))
    model.load_weights(arrays(reference.state_dict()))
    for p in model.parameters():
        p.requires_grad_(train)
    return reference.requires_grad_(train), model.eval()


def inputs(name: str, labels: bool = False) -> tuple[Given, Given]:
    """What a row gives to both models."""
    row = ROWS[name]
    given = row.given()
    if labels:
        assert row.labels is not None
        given |= row.labels()
    pairs = {key: _both(value) for key, value in given.items()}
    return {k: v[0] for k, v in pairs.items()}, {k: v[1] for k, v in pairs.items()}


def _both(value: Any) -> Any:
    if isinstance(value, (np.ndarray, list)) and not (isinstance(value, list) and isinstance(value[0], dict)):
        return both(value)
    if isinstance(value, list):
        each = [{k: both(v) for k, v in one.items()} for one in value]
        return tuple([{k: v[i] for k, v in one.items()} for one in each] for i in (0, 1))
    return value, value


def same(got: Any, expected: Any, where: str = "", real: Any = None) -> int:
    """Compare all tensors in two results, where a mask (batch, positions) is not 0; gives how many there were."""
    if expected is None:
        return 0
    if hasattr(expected, "keys"):
        names = [k for k in expected if k != "past_key_values" and expected[k] is not None]
        mine = got if isinstance(got, dict) else dict(got.items())
        missing = [k for k in names if mine.get(k) is None]
        assert not missing, f"{where}: {missing} are missing, of {list(mine)}"
        return sum(same(mine[k], expected[k], f"{where}.{k}", real) for k in names)
    if isinstance(expected, (tuple, list)):
        assert len(got) == len(expected), f"{where}: {len(got)} for {len(expected)}"
        return sum(same(a, b, f"{where}[{i}]", real) for i, (a, b) in enumerate(zip(got, expected)))
    assert isinstance(got, votive.Tensor), where
    assert tuple(got.shape) == tuple(expected.shape), f"{where}: {tuple(got.shape)} for {tuple(expected.shape)}"
    if real is not None and tuple(expected.shape[:2]) == tuple(real.shape):
        got, expected = got[votive.tensor(real.numpy()).bool()], expected[real.bool()]
    elif real is not None and expected.dim() == 4 and (expected.shape[0], expected.shape[2]) == tuple(real.shape):
        got = got.transpose(1, 2)[votive.tensor(real.numpy()).bool()]
        expected = expected.transpose(1, 2)[real.bool()]
    if not expected.abs().max():
        assert not got.abs().max(), where
        return 1
    try:
        agree(got, expected)
    except AssertionError as error:
        raise AssertionError(f"{where} {error}") from None
    return 1
