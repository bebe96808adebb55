"""PyTorch programs work when only their imports are changed, and train to the same losses."""

from __future__ import annotations

import math
import re
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = sorted(p.stem for p in FOLDER.glob("[!_]*.py"))


def load(name: str, library: str) -> Any:
    """A program as a module whose torch is `library`; nothing but import lines is touched."""
    lines = (FOLDER / f"{name}.py").read_text().splitlines()
    if library != "torch":
        lines = [re.sub(r"^import torch$", f"import {library} as torch", x) for x in lines]
        lines = [re.sub(r"^(import|from) torch\b", rf"\1 {library}", x) for x in lines]
    program = types.ModuleType(f"{library}_{name}")
    sys.modules[program.__name__] = program  # dataclasses look for the module of their class
    code = compile("\n".join(lines), f"{name}.py with {library}", "exec", dont_inherit=True)
    exec(code, program.__dict__)
    return program


def test_only_imports_are_changed() -> None:
    assert load("gpt", "votive").torch is votive
    assert load("gpt", "votive").F is votive.nn.functional
    assert PROGRAMS == ["gan", "gpt", "lstm_lm", "mlp", "resnet", "unet", "vit"]


@pytest.mark.parity
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_trains_to_the_losses_of_torch(name: str) -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    original, ported = load(name, "torch"), load(name, "votive")
    theirs = [m.double() for m in original.models()]
    ours = [m.double() for m in ported.models()]
    for a, b in zip(ours, theirs, strict=True):
        assert repr(a) == repr(b)
        state = {k: votive.from_numpy(v.numpy().copy()) for k, v in b.state_dict().items()}
        assert list(a.state_dict()) == list(state)
        a.load_state_dict(state)
    before = [p.detach().clone() for m in ours for p in m.parameters()]
    got, want = ported.train(*ours), original.train(*theirs)
    np.testing.assert_allclose(got, want, rtol=1e-6)
    pairs = [
        pair
        for a, b in zip(ours, theirs, strict=True)
        for pair in zip(a.named_parameters(), b.parameters(), strict=True)
    ]
    for (key, p), q in pairs:
        np.testing.assert_allclose(p.detach().numpy(), q.detach().numpy(), rtol=1e-5, atol=1e-7, err_msg=key)
    moved = [not votive.equal(p, old) for ((_, p), _), old in zip(pairs, before, strict=True)]
    assert all(moved)


@pytest.mark.parametrize("name, classes", [("mlp", 3), ("gpt", 13), ("lstm_lm", 11), ("vit", 5)])
def test_a_program_begins_near_a_guess_without_torch(name: str, classes: int) -> None:
    votive.manual_seed(0)
    program = load(name, "votive")
    losses = program.train(*(m.double() for m in program.models()))
    assert np.isfinite(losses).all()
    assert losses[0] == pytest.approx(math.log(classes), rel=0.35)
