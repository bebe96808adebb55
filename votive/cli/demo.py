"""`votive demo`: a network written by hand with tensors and autograd, then a look inside an
operator.
"""

from __future__ import annotations

import argparse
import math
from itertools import pairwise

import votive as vt

from . import Commands, command
from .numbers import whole


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "demo",
        description="Train a small network written with tensors alone, then explain an operator.",
        examples="  votive demo --steps 200",
    )
    p.add_argument("--steps", type=whole(1, 1_000_000), default=400, help="training steps (default 400)")
    p.add_argument("--seed", type=whole(0, 2**64 - 1), default=0, help="random seed (default 0)")


def run(args: argparse.Namespace) -> int:
    """Show the tour."""
    tour(args.steps, args.seed)
    return 0


def spirals(n: int) -> tuple[vt.Tensor, vt.Tensor]:
    """Two interleaved spirals, n points each, with a class of -1 or +1."""
    t = vt.linspace(0.25, 1.0, n) * 3 * math.pi
    arm = vt.stack([t.cos() * t, t.sin() * t], dim=1) / (3 * math.pi)  # (n, 2)
    x = vt.cat([arm, -arm]) + 0.02 * vt.randn(2 * n, 2)
    y = vt.cat([vt.ones(n), -vt.ones(n)])
    return x, y


def init(rows: int, columns: int) -> vt.Tensor:
    """Weights of a layer, scaled so that activations keep their size."""
    return (vt.randn(rows, columns) / math.sqrt(rows)).requires_grad_()


def tour(steps: int, seed: int) -> None:
    """Train, report, and explain one operator that was used."""
    from rich.console import Console
    from rich.panel import Panel
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
    from rich.syntax import Syntax

    console = Console()
    vt.manual_seed(seed)
    x, y = spirals(128)
    sizes = (2, 32, 32, 1)
    weights = [init(a, b) for a, b in pairwise(sizes)]
    biases = [vt.zeros(b, requires_grad=True) for b in sizes[1:]]
    params = [*weights, *biases]
    moments = [(vt.zeros_like(p), vt.zeros_like(p)) for p in params]

    def network(h: vt.Tensor) -> vt.Tensor:
        for w, b in zip(weights[:-1], biases[:-1], strict=True):
            h = vt.nn.functional.gelu(h @ w + b)  # (N, 32)
        return (h @ weights[-1] + biases[-1]).squeeze(1)  # (N,)

    console.print(
        f"[bold]votive {vt.__version__}[/] - two spirals, a {'-'.join(map(str, sizes))} network, Adam by hand"
    )
    loss = vt.tensor(math.nan)
    columns = (
        TextColumn("training"),
        BarColumn(),
        TextColumn("step {task.completed}/{task.total}  loss {task.fields[loss]:.4f}"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console) as progress:
        task = progress.add_task("train", total=steps, loss=math.nan)
        for step in range(1, steps + 1):
            loss = vt.nn.functional.softplus(-y * network(x)).mean()  # log(1 + exp(-y f(x)))
            loss.backward()
            adam(params, moments, step)
            progress.update(task, advance=1, loss=loss.item())
    with vt.no_grad():
        right = (network(x).sign() == y).sum().item()
    console.print(f"final loss {loss.item():.4f}, {right} of {len(y)} points on the right side\n")
    shown = Syntax(vt.explanation("gelu"), "python", word_wrap=True, background_color="default")
    console.print(Panel(shown, title='votive.explain("gelu")', title_align="left"))


def adam(params: list[vt.Tensor], moments: list[tuple[vt.Tensor, vt.Tensor]], step: int) -> None:
    """One step of Adam (Kingma & Ba 2015, algorithm 1) in place."""
    with vt.no_grad():
        for p, (m, v) in zip(params, moments, strict=True):
            m.mul_(0.9).add_(p.grad, alpha=0.1)
            v.mul_(0.999).addcmul_(p.grad, p.grad, value=0.001)
            scale = (v / (1 - 0.999**step)).sqrt_().add_(1e-8)
            p.addcdiv_(m, scale, value=-0.02 / (1 - 0.9**step))
            p.grad = None
