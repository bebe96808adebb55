"""The GPU works without torch, and the package starts it only when it is asked for."""

from __future__ import annotations

import os
import subprocess
import sys

from .device import EMULATED, anywhere

_PROGRAM = """
import sys

class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("torch", "cupy", "jax"):
            raise ImportError(f"{name} must not be imported")

sys.meta_path.insert(0, NoTorch())
import votive, votive.nn as nn
votive.manual_seed(0)
model = nn.Sequential(nn.Embedding(10, 8), nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 10))
model = model.to("cuda")
optimizer = votive.optim.AdamW(model.parameters(), lr=1e-2)
tokens = votive.arange(10, device="cuda")
losses = []
for _ in range(3):
    loss = nn.functional.cross_entropy(model(tokens), (tokens + 1) % 10)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
assert losses[-1] < losses[0], losses
assert "torch" not in sys.modules
print("ok")
"""


def _run(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, **environment},
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return done.stdout.strip()


def test_a_model_trains_on_the_gpu_with_torch_out_of_reach() -> None:
    extra = {"VOTIVE_CUDA": "emulated", "TRITON_INTERPRET": "1"} if EMULATED else {}
    assert _run(_PROGRAM, **extra) == "ok"


@anywhere
def test_importing_the_package_imports_neither_triton_nor_the_driver() -> None:
    program = (
        "import sys, votive\n"
        "print([m for m in sys.modules if m.split('.')[0] in ('triton', 'torch') "
        "or m.startswith('votive.backends.cuda.')])"
    )
    assert _run(program) == "[]"


@anywhere
def test_a_gpu_that_is_switched_off_says_so() -> None:
    program = "import votive\ntry:\n    votive.ones(2, device='cuda')\nexcept RuntimeError as e:\n    print(e)"
    assert "VOTIVE_CUDA=0" in _run(program, VOTIVE_CUDA="0")
