"""Small models, and their training in one process, which training on several ranks is held to."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any

import numpy as np

import votive
import votive.distributed as dist
from votive import Tensor, nn
from votive.models.gpt2 import GPT2Config, GPT2LMHeadModel

Batch = tuple[Tensor, Tensor]
Loss = Callable[[nn.Module, Batch], Tensor]


def filled(model: nn.Module, seed: int) -> nn.Module:
    """The same numbers on every rank and in every thread."""
    rng = np.random.default_rng(seed)
    with votive.no_grad():
        for p in model.parameters():
            p.copy_(votive.tensor(rng.standard_normal(tuple(p.shape)).astype("f4") * 0.3 + (p.dim() == 1) * 0.5))
    return model


def mlp() -> Any:
    return filled(nn.Sequential(nn.Linear(6, 12), nn.Tanh(), nn.Linear(12, 12), nn.GELU(), nn.Linear(12, 3)), 1)


def cnn() -> Any:
    net = nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(),
        nn.Conv2d(4, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(36, 3),
    )  # fmt: skip
    return filled(net, 2)


def gpt() -> Any:
    config = GPT2Config(
        vocab_size=17, n_positions=8, n_embd=12, n_layer=2, n_head=2, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0
    )
    return filled(GPT2LMHeadModel(config), 3)


def squares(model: nn.Module, batch: Batch) -> Tensor:
    return (model(batch[0]) - batch[1]).square().mean()


def of_tokens(model: nn.Module, batch: Batch) -> Tensor:
    logits = model(batch[0]).logits
    loss: Tensor = nn.functional.cross_entropy(logits.reshape(-1, logits.shape[-1]), batch[1].reshape(-1))
    return loss


def data(kind: str, steps: int, size: int) -> list[Batch]:
    rng = np.random.default_rng(7)
    found = []
    for _ in range(steps):
        if kind == "gpt":
            tokens = rng.integers(0, 17, (size, 9))
            found.append((votive.tensor(tokens[:, :-1]), votive.tensor(tokens[:, 1:])))
            continue
        shape = (size, 6) if kind == "mlp" else (size, 2, 5, 5)
        x, y = rng.standard_normal(shape).astype("f4"), rng.standard_normal((size, 3)).astype("f4")
        found.append((votive.tensor(x), votive.tensor(y)))
    return found


MODELS: dict[str, tuple[Callable[[], nn.Module], Loss]] = {
    "mlp": (mlp, squares),
    "cnn": (cnn, squares),
    "gpt": (gpt, of_tokens),
}


def mine(batch: Batch) -> Batch:
    """The part of a batch that this rank sees."""
    rank, count = dist.get_rank(), dist.get_world_size()
    size = len(batch[0])
    ends = [size * r // count for r in range(count + 1)]
    return batch[0][ends[rank] : ends[rank + 1]], batch[1][ends[rank] : ends[rank + 1]]


def optimizer_of(params: Any) -> votive.optim.Optimizer:
    return votive.optim.SGD(params, lr=0.1, momentum=0.9)


def alone(kind: str, batches: list[Batch], make: Callable[[Any], Any] = optimizer_of) -> tuple[list[float], nn.Module]:
    """Losses and the model of one process."""
    build, loss_of = MODELS[kind]
    model = build()
    optimizer, losses = make(model.parameters()), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, batch)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses, model


def together(
    kind: str, batches: list[Batch], wrap: Callable[[nn.Module], nn.Module], make: Callable[[Any], Any] = optimizer_of
) -> tuple[list[float], nn.Module]:
    """Losses, averaged over ranks, and the model of this rank."""
    build, loss_of = MODELS[kind]
    model = wrap(build())
    optimizer, losses = make(model.parameters()), []
    for batch in batches:
        optimizer.zero_grad()
        loss = loss_of(model, mine(batch))
        loss.backward()
        optimizer.step()
        shown = loss.detach().clone()
        dist.all_reduce(shown, dist.ReduceOp.AVG)
        losses.append(shown.item())
    return losses, model


def same_state(found: dict[str, Tensor], wanted: dict[str, Tensor], tolerance: float = 2e-5) -> None:
    """Whether two models hold the same."""
    assert list(found) == list(wanted)
    for name, t in wanted.items():
        np.testing.assert_allclose(found[name], t, rtol=tolerance, atol=tolerance, err_msg=name)


def same_on_all_ranks(tensors: Iterable[Tensor]) -> None:
    for t in tensors:
        first = t.detach().clone()
        dist.broadcast(first, 0)
        np.testing.assert_array_equal(first, t.detach())


def run_on_mpi(programs: dict[str, Callable[[], None]]) -> None:
    """Run all programs on the processes that MPI connects; what went wrong is printed by whom it happened to."""
    dist.init_process_group("mpi", timeout=timedelta(seconds=60))
    for name, program in programs.items():
        try:
            program()
        except BaseException:
            sys.stdout.write(f"FAILED {dist.get_rank()} {name}\n{traceback.format_exc()}\n")
            sys.stdout.flush()
            raise  # the others are somewhere else now
    sys.stdout.write(f"PASSED {dist.get_rank()} {len(programs)}\n")  # at once: ranks share the screen
    sys.stdout.flush()
    dist.destroy_process_group()
