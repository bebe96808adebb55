"""Each example runs as its README says, and a few of its steps already teach it something."""

import os
import re
import subprocess
import sys
from argparse import Namespace
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
# The arguments of a short run; numbers that its last lines print, and what must hold of them.
RUNS = {
    "digits": (["--steps", "120"], r"held-out accuracy ([\d.]+)", lambda v: v > 0.3),
    "char_gpt": (
        ["--steps", "12", "--batch", "8", "--width", "32", "--layers", "1", "--write", "5"],
        r"held-out loss ([\d.]+)",
        lambda v: v < 3.85,  # 61 characters guessed blindly cost ln 61 = 4.11
    ),
    "autoencoder": (["--steps", "60"], r"held-out error ([\d.]+)", lambda v: v < 0.045),
    "lstm_tagger": (["--steps", "20"], r"held-out accuracy ([\d.]+)", lambda v: v > 0.85),
    "lora": (
        ["--steps", "60"],
        r"before ([\d.]+), after ([\d.]+)\n.* by ([\d.e+-]+)",
        lambda before, after, drift: after > before and 0 < drift < 1e-4,
    ),
    "induction_heads": (
        ["--steps", "250"],
        r"loss on repeats ([\d.]+)[\s\S]*without the \d induction heads: ([\d.]+)",
        lambda whole, without: whole < 0.5 and without > 3,
    ),
    "data_parallel": (["--ranks", "2", "--steps", "120"], r"held-out accuracy ([\d.]+)", lambda v: v > 0.3),
    "distributed_gpt": (["--ranks", "2", "--steps", "40"], r"held-out loss ([\d.]+)", lambda v: v < 3.0),
    "distributed_pipeline": (
        ["--ranks", "2", "--steps", "60", "--schedule", "ZBVZeroBubble"],
        r"a rank waits (\d+)%\nloss ([\d.]+)",
        lambda waits, loss: waits < 10 and loss < 3.3,
    ),
    "distributed_tensor_parallel": (
        ["--ranks", "2", "--steps", "40"],
        r"wrote the same: True\nloss ([\d.]+)",
        lambda v: v < 2.8,
    ),
    "mnist": (["--steps", "40", "--drawn", "2000"], r"held-out accuracy ([\d.]+)", lambda v: v > 0.8),
    "cartpole": (["--steps", "10", "--episodes", "16"], r"after (\d+) of", lambda v: v > 40),
}


def run(name: str, arguments: list[str]) -> str:
    """What the example prints, run as a user runs it."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": "error"}
    command = [sys.executable, str(EXAMPLES / f"{name}.py"), *arguments, "--seed", "0"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=120)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("name", RUNS)
def test_the_example_runs_and_learns(name: str) -> None:
    arguments, pattern, good = RUNS[name]
    out = run(name, arguments)
    found = re.search(pattern, out)
    assert found, out
    assert good(*map(float, found.groups())), out


@pytest.mark.parity
def test_char_gpt_has_the_losses_torch_has_from_the_same_weights_and_batches() -> None:
    pytest.importorskip("torch")
    from benchmarks.char_gpt import compare

    args = Namespace(
        context=16,
        batch=4,
        width=32,
        heads=2,
        layers=2,
        text=EXAMPLES / "data" / "tiny.txt",
        steps=12,
        seed=0,
        lr=2e-3,
        every=12,
        warm=2,
        double=True,
    )
    result = compare(args)
    assert result["largest_difference"] < 1e-12
    losses = result["losses"]["votive"]
    assert losses[-1] < losses[0] - 0.3


def test_every_example_is_run_here_and_stands_in_the_readme() -> None:
    scripts = {path.stem for path in EXAMPLES.glob("*.py")} - {"progress", "patching_smollm2"}
    assert scripts == set(RUNS)
    readme = (EXAMPLES / "README.md").read_text()
    assert {name for name in scripts if f"python examples/{name}.py" not in readme} == set()
