"""A trainer on several ranks: the model spread or copied, data in shares, one history, checkpoints of all.

Knows what a trainer holds, and `votive.distributed`; one process never loads it.
"""

from __future__ import annotations

import io
import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

import votive
from votive import distributed as dist
from votive import nn

from ..autograd import no_grad
from ..data.randomness import get_random_state, kept_random_state, set_random_state
from ..distributed import checkpoint
from ..distributed.buffers import from_array
from ..distributed.checkpoint.files import read_whole
from ..distributed.fsdp import FSDPModule, fully_shard
from ..distributed.planning.pieces import layers_of
from ..nn.parallel import DistributedDataParallel
from ..serialization import load, save
from .checkpoints import CheckpointError
from .feed import moved, size_of
from .shares import Shares, measured_share, training_share

WAYS = {"data": "data", "ddp": "data", "sharded": "sharded", "fsdp": "sharded"}


class Ranks:
    """What a trainer does where it is one of several.

    >>> from votive.train.ranks import Ranks
    >>> votive.distributed.simulate(lambda: Ranks("data", None).size, 2)
    [2, 2]
    """

    def __init__(self, way: str, mesh: Any) -> None:
        if way not in WAYS:
            raise ValueError(f"Trainer: distributed must be 'data' or 'sharded', got {way!r}.")
        if not dist.is_initialized():
            _join()
        self.way, self.mesh = WAYS[way], mesh
        if mesh is not None and (mesh.ndim > 2 or (mesh.ndim == 2 and self.way == "data")):
            raise ValueError(
                f"Trainer: a mesh of {mesh.ndim} dimensions does not fit distributed={way!r}: 'data' takes one, "
                "'sharded' one or two. Of other forms, wrap the model and pass it."
            )
        if mesh is not None and mesh.size() != dist.get_world_size():
            raise ValueError("Trainer: the mesh must have all ranks.")
        self.rank, self.size = dist.get_rank(), dist.get_world_size()
        self.folders: checkpoint.StepFolders | None = None

    # --- models and data ----------------------------------------------------------------------

    def spread(self, model: nn.Module, optimizer: Any) -> Any:
        """The model as its ranks hold it; the optimizer follows."""
        if is_spread(model):
            return model
        if self.way == "data":
            return DistributedDataParallel(model, device_mesh=self.mesh)
        if optimizer.state:
            raise ValueError("Trainer: an optimizer that has made steps cannot follow a model into shards.")
        names = {id(p): n for n, p in model.named_parameters()}
        for child in layers_of(model):
            fully_shard(child, mesh=self.mesh)
        fully_shard(model, mesh=self.mesh)
        spread = dict(model.named_parameters())
        for group in optimizer.param_groups:
            unknown = [p for p in group["params"] if id(p) not in names]
            if unknown:
                raise ValueError("Trainer: the optimizer has a parameter that is not of the model.")
            group["params"] = [spread[names[id(p)]] for p in group["params"]]
        return model

    def share(self, data: Any, seed: int | None) -> Any:
        """This rank's share of training data."""
        return training_share(data, self.rank, self.size, seed or 0)

    def begin_epoch(self, feed: Any, epoch: int) -> None:
        """Let the order be that of the epoch."""
        sampler: Any = getattr(feed.data, "sampler", None)
        if feed._batches is None and hasattr(sampler, "set_epoch"):
            if isinstance(sampler, Shares) and epoch != sampler.epoch:
                sampler.start = 0
            sampler.set_epoch(epoch)

    def sends(self, model: nn.Module, last: bool) -> None:
        """Let gradients of several batches add up on each rank, and be sent with the last."""
        if isinstance(model, DistributedDataParallel):
            model.require_backward_grad_sync = last
        for m in model.modules():
            if isinstance(m, FSDPModule):
                m.set_requires_gradient_sync(last, recurse=False)

    # --- numbers ------------------------------------------------------------------------------

    def agree(self, stopped: bool, signal: int | None) -> tuple[bool, int | None]:
        """Whether any rank is to stop, and by which signal."""
        found = np.array([int(stopped), signal or 0])
        dist.all_reduce(from_array(found), dist.ReduceOp.MAX)
        return bool(found[0]), int(found[1]) or None

    def mean(self, loss: Any, values: dict[str, Any]) -> tuple[float, dict[str, float]]:
        """The means over all ranks."""
        found = np.array([float(loss), *(float(v) for v in values.values())])
        dist.all_reduce(from_array(found), dist.ReduceOp.AVG)
        return float(found[0]), dict(zip(values, found[1:].tolist(), strict=True))

    def evaluate(
        self, model: nn.Module, data: Iterable[Any], measure: Callable[[Any, Any], dict[str, Any]], device: Any
    ) -> dict[str, float]:
        """`evaluate`, of what all ranks have seen together."""
        plain = model.module if isinstance(model, DistributedDataParallel) else model
        sums: dict[str, float] = {}
        count, training = 0.0, plain.training
        plain.eval()
        try:
            with kept_random_state(), no_grad():
                batches, batch = iter(measured_share(data, self.rank, self.size)), None
                while True:
                    following = next(batches, None)
                    # A sharded model is called by all ranks or by none.
                    have = np.array([int(following is not None), int(following is None and batch is None)])
                    dist.all_reduce(from_array(have), dist.ReduceOp.MAX)
                    if not have[0]:
                        break
                    if have[1] and self.size > 1:
                        raise ValueError(
                            "evaluate: a rank has no batch at all; give more samples than there are ranks."
                        )
                    batch = moved(batch if following is None else following, device)
                    found = dict(measure(plain, batch))
                    n = float(found.pop("weight", size_of(batch, "items"))) if following is not None else 0.0
                    for name, value in found.items():
                        sums[name] = sums.get(name, 0.0) + (float(value) * n if n else 0.0)
                    count += n
        finally:
            plain.train(training)
        total = np.array([count, *sums.values()])
        dist.all_reduce(from_array(total))
        if not total[0]:
            raise ValueError("evaluate: the data gave no batch.")
        return {name: float(value / total[0]) for name, value in zip(sums, total[1:], strict=True)}

    # --- checkpoints --------------------------------------------------------------------------

    def keep(self, folder: str | os.PathLike[str], keep_last: int | None) -> None:
        """Let checkpoints be in a folder that all ranks see."""
        path = Path(folder)
        if list(path.glob("step-*.safetensors")):
            raise FileExistsError(
                f"Trainer: {path} holds checkpoints of one process, which ranks do not resume; use another folder."
            )
        self.folders = checkpoint.StepFolders(path, keep_last)

    def write(self, trainer: Any, best: bool = False) -> Path:
        """Write a checkpoint of all ranks."""
        assert self.folders is not None, "asked before"
        path = self.folders.folder / "best" if best else self.folders.path(trainer.step)
        try:
            if best:
                checkpoint.save(self._state(trainer), checkpoint_id=path)
            else:
                self.folders.save(trainer.step, self._state(trainer))
        except (OSError, dist.DistError) as e:
            there = self.folders.steps()
            last = f"The last one is {self.folders.path(there[-1])}" if there else "There is none before it"
            raise CheckpointError(
                getattr(e, "errno", None) or 0, f"the checkpoint {path} could not be written: {e}. {last}."
            ) from None
        return path

    def _state(self, trainer: Any) -> dict[str, Any]:
        options = checkpoint.StateDictOptions(ignore_frozen_params=not trainer.checkpoint_frozen)
        weights = checkpoint.get_model_state_dict(trainer.model, options=options)
        steps = checkpoint.get_optimizer_state_dict(trainer.model, trainer.optimizer)
        sampler = getattr(trainer._feed.data, "sampler", None)
        own = {"random": get_random_state(), "data": trainer._feed.state_dict(), "start": getattr(sampler, "start", 0)}
        state = {"model": weights, "optim": steps, "ranks": self.size, "seen": self._seen(trainer._feed),
                 "of_rank": {str(self.rank): _packed(own)}}  # fmt: skip
        if self.rank == 0:
            state["trainer"] = _packed(trainer._rest_of_state())
        return state

    def _seen(self, feed: Any) -> int | None:
        """How many samples of the epoch all ranks have seen; None where only the data itself could tell."""
        sampler: Any = getattr(feed.data, "sampler", None)
        if not isinstance(sampler, Shares):
            return None
        return min(sampler.start + feed.taken * feed.data.batch_size * self.size, len(sampler.dataset))

    def latest(self) -> Path | None:
        """The newest checkpoint, if there is one."""
        return None if self.folders is None else self.folders.latest()

    def resume(self, trainer: Any, path: Path) -> None:
        """Go on from a checkpoint, of however many ranks."""
        found: dict[str, Any] = {"ranks": 0, "seen": None}
        checkpoint.load(found, checkpoint_id=path)
        self._load_weights(trainer, path, with_optimizer=True)
        trainer._take_rest(_unpacked(read_whole(path, "trainer")))
        feed = trainer._feed
        sampler: Any = getattr(feed.data, "sampler", None)
        if found["ranks"] == self.size:
            own = _unpacked(read_whole(path, f"of_rank.{self.rank}"))
            if isinstance(sampler, Shares):
                sampler.start = own["start"]
                sampler.set_epoch(trainer.epoch)
            feed.load_state_dict(own["data"])
            set_random_state(own["random"])
            return
        if found["seen"] is None:
            raise ValueError(
                f"Trainer: {path} is of {found['ranks']} ranks, and there are {self.size}. Where the data cannot be "
                "shared out anew, training goes on with as many ranks only; pass a DataLoader over a dataset."
            )
        sampler.start = found["seen"]
        sampler.set_epoch(trainer.epoch)
        if trainer.seed is not None:
            votive.data.seed_everything(trainer.seed + self.rank + trainer.step)

    def _load_weights(self, trainer: Any, path: Path, with_optimizer: bool) -> None:
        options = checkpoint.StateDictOptions(
            ignore_frozen_params=not trainer.checkpoint_frozen, strict=trainer.checkpoint_frozen
        )
        weights = checkpoint.get_model_state_dict(trainer.model, options=options)
        state: dict[str, Any] = {"model": weights}
        if with_optimizer:
            state["optim"] = checkpoint.get_optimizer_state_dict(trainer.model, trainer.optimizer)
        checkpoint.load(state, checkpoint_id=path)
        checkpoint.set_model_state_dict(trainer.model, weights, options=options)
        if with_optimizer:
            checkpoint.set_optimizer_state_dict(trainer.model, trainer.optimizer, state["optim"])

    def load_best(self, trainer: Any) -> int:
        """Give the model the weights that measured best."""
        path = None if self.folders is None else self.folders.folder / "best"
        if path is None or not path.is_dir():
            raise FileNotFoundError("Trainer: there is no best checkpoint; give folder= and best=, and train.")
        self._load_weights(trainer, path, with_optimizer=False)
        return int(_unpacked(read_whole(path, "trainer"))["step"])


def ranks_for(distributed: str | bool | None, mesh: Any, model: nn.Module) -> Ranks | None:
    """What a trainer was asked to be: None for one process."""
    if distributed is False:
        if mesh is not None:
            raise ValueError("Trainer: distributed=False, but a mesh is given.")
        return None
    if distributed is None and mesh is None and not is_spread(model):
        return None
    if distributed is not None and distributed is not True and not isinstance(distributed, str):
        raise TypeError(f"Trainer: distributed is 'data', 'sharded' or None, got {distributed!r}.")
    sharded = any(isinstance(m, FSDPModule) for m in model.modules())
    given = distributed if isinstance(distributed, str) else "sharded" if sharded else "data"
    return Ranks(given, mesh)


def first_then_others(first: Callable[[], Any], others: Callable[[], Any]) -> Any:
    """What `first` gives on rank 0, and `others` on the others, which begin when that is done."""
    if not dist.is_initialized():
        _join()
    found, wrong = None, None
    if dist.get_rank() == 0:
        try:
            found = first()
        except Exception as e:
            wrong = e
    said = [None if wrong is None else f"{type(wrong).__name__}: {wrong}"]
    dist.broadcast_object_list(said, 0)
    if wrong is not None:
        raise wrong
    if said[0] is not None:
        raise dist.DistError(f"rank 0 has failed with {said[0]}")
    return found if dist.get_rank() == 0 else others()


def gathered(model: nn.Module, make: Callable[[], nn.Module]) -> nn.Module | None:
    """The whole model on rank 0, None on the others; all ranks call it."""
    if not any(isinstance(m, FSDPModule) for m in model.modules()):
        return model if dist.get_rank() == 0 else None
    options = checkpoint.StateDictOptions(full_state_dict=True, cpu_offload=True)
    state = checkpoint.get_model_state_dict(model, options=options)
    if dist.get_rank():
        return None
    whole = make()
    whole.load_state_dict(state)
    return whole


def is_spread(model: nn.Module) -> bool:
    """Whether a model is on several ranks already."""
    return isinstance(model, DistributedDataParallel) or any(isinstance(m, FSDPModule) for m in model.modules())


def _join() -> None:
    """The other processes, if this one was started as one of several."""
    launched = ("WORLD_SIZE", "PMI_SIZE", "OMPI_COMM_WORLD_SIZE", "SLURM_NTASKS", "MPI_LOCALNRANKS", "PMIX_RANK")
    if any(name in os.environ for name in launched):
        dist.init_process_group()
    else:
        dist.init_process_group(store=dist.HashStore(), rank=0, world_size=1)


def _packed(value: Any) -> Any:
    file = io.BytesIO()
    save(value, file)
    return from_array(np.frombuffer(file.getvalue(), np.uint8).copy())


def _unpacked(t: Any) -> Any:
    return load(io.BytesIO(t.numpy().tobytes()))
