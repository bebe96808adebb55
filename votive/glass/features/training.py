"""Training of sparse coders: steps, dead features, checkpoints that go on bit by bit. Knows rows, no model."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any

import votive

from ...nn.utils import clip_grad_norm_
from ...optim import Adam
from ...tensor import Tensor
from ...train.checkpoints import Checkpoints
from ...train.interruption import Deferred
from ...train.progress import Display, Pace, Report, display
from .coder import SAE
from .losses import Losses, losses
from .store import Rows


@dataclass(frozen=True)
class SAETraining:
    """How a coder is trained.

    `sparsity` is the weight of L1 or L0, which rises over `sparsity_warmup` steps. A feature is dead when it has not
    fired for `dead_after` rows: then `auxiliary` weighs a loss by which it learns what the others miss, and every
    `resample_every` steps (0: never) it begins anew at a row that is explained badly. `normalize` scales what is read
    to a mean norm of the square root of its width, `unit_decoder` keeps the decoder's rows at length 1.

    >>> votive.glass.features.SAETraining(steps=100).lr
    0.001
    """

    steps: int
    batch_size: int = 2048
    lr: float = 1e-3
    betas: tuple[float, float] = (0.9, 0.999)
    warmup: int = 0
    decay: int = 0
    sparsity: float = 1.0
    sparsity_warmup: int = 0
    dead_after: int = 100_000
    auxiliary: float = 1 / 32
    k_aux: int | None = None
    resample_every: int = 0
    normalize: bool = True
    unit_decoder: bool = True
    max_grad_norm: float = 1.0
    seed: int = 0
    log_every: int = 10
    checkpoint_every: int = 0

    def __post_init__(self) -> None:
        for name in ("steps", "batch_size", "log_every"):
            if getattr(self, name) < 1:
                raise ValueError(f"SAETraining: {name} must be at least 1, got {getattr(self, name)}.")
        for name in ("warmup", "decay", "sparsity", "sparsity_warmup", "auxiliary", "resample_every", "lr"):
            if getattr(self, name) < 0:
                raise ValueError(f"SAETraining: {name} must not be negative, got {getattr(self, name)}.")


class SAETrainer:
    """Trains a coder on rows: `SAETrainer(sae, store, SAETraining(steps=1000)).fit()`.

    `data` gives one tensor per site: what is read, and of a transcoder what it shall give; of a crosscoder one for
    each layer, or one of (rows, layers, numbers). With a `folder` it writes checkpoints, and goes on from the last one
    as if it had never stopped. Ctrl-C ends after a step, and writes one.

    >>> _ = votive.manual_seed(0)
    >>> sae = votive.glass.features.SAE(4, 8, "topk", k=2)
    >>> plan = votive.glass.features.SAETraining(steps=50, batch_size=64, lr=0.01)
    >>> history = votive.glass.features.SAETrainer(sae, votive.randn(64, 4), plan).fit()
    >>> history[-1]["step"], history[-1]["loss"] < history[0]["loss"]
    (50, True)
    """

    def __init__(
        self,
        sae: SAE,
        data: Rows | Tensor | tuple[Tensor, ...],
        training: SAETraining,
        *,
        folder: str | os.PathLike[str] | None = None,
        keep_last: int | None = 2,
        progress: bool | Display | None = False,
    ) -> None:
        self.sae, self.training = sae, training
        self.data = data if isinstance(data, Rows) else Rows(*((data,) if isinstance(data, Tensor) else data))
        self.optimizer = Adam(sae.parameters(), lr=training.lr, betas=training.betas)
        self.step, self.history = 0, list[dict[str, float]]()
        self.since = votive.zeros(
            sae.config.d_sae, dtype=votive.int64, device=sae.W_enc.device
        )  # rows since each fired
        self.checkpoints = None if folder is None else Checkpoints(folder, keep_last)
        self.display = display(progress)
        if self.checkpoints is not None:
            found = self.checkpoints.latest()
            if found is not None:
                self.load_state_dict(found)
        if not self.step:
            self._begin()

    # --- state -----------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next steps depend on but the data."""
        return {
            "sae": self.sae.state_dict(),
            "config": self.sae.config.to_dict(),
            "training": asdict(self.training),
            "optimizer": self.optimizer.state_dict(),
            "since": self.since,
            "step": self.step,
            "history": self.history,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Go on from what `state_dict` gave; another plan or configuration is refused."""
        now = self.state_dict()
        for name in ("config", "training"):
            there, here = dict(state[name]), dict(now[name])
            differ = sorted(k for k in here if _plain(there.get(k)) != _plain(here[k]))
            if differ:
                raise ValueError(f"SAETrainer: the checkpoint was made with another {', '.join(differ)}; give its own.")
        self.sae.load_state_dict(state["sae"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.since = state["since"].clone().to(self.since.device)
        self.step, self.history = int(state["step"]), [dict(r) for r in state["history"]]

    def _begin(self) -> None:
        """Scales and the decoder's bias from the first batch."""
        x, target = self._tensors(next(self.data.batches(self.training.batch_size, seed=self.training.seed)))
        with votive.no_grad():
            if self.training.normalize:
                self.sae.scale_in.fill_(_scale(x))
                self.sae.scale_out.fill_(_scale(x if target is None else target))
            self.sae.b_dec.copy_(self.sae.targets(x if target is None else target).mean(0))

    # --- steps -----------------------------------------------------------------------------------

    def fit(self, steps: int | None = None) -> list[dict[str, float]]:
        """Train to the end of the plan, or so many steps; gives the history, a row every `log_every` steps."""
        t = self.training
        end = t.steps if steps is None else min(self.step + steps, t.steps)
        pace, batches = Pace(), self._batches()
        self.display.start(t.steps, self.step)
        with Deferred() as stop:
            while self.step < end and stop.signal is None:
                x, target = self._tensors(next(batches))
                found = self._learn(x, target)
                pace.count(len(x))
                if self.step % t.log_every == 0 or self.step == t.steps:
                    self._log(found, pace)
                if t.checkpoint_every and self.step % t.checkpoint_every == 0:
                    self.save()
            if stop.signal is not None:
                self.save()
            self.display.stop()
            stop.deliver()
        if self.step == t.steps:
            self.save()
        return self.history

    def save(self) -> None:
        """Write a checkpoint, where there is a folder for them."""
        if self.checkpoints is not None:
            self.checkpoints.write(self.step, self.state_dict())

    def _batches(self) -> Iterator[tuple[Tensor, ...]]:
        return self.data.batches(self.training.batch_size, seed=self.training.seed, start=self.step)

    def _tensors(self, batch: tuple[Tensor, ...]) -> tuple[Tensor, Tensor | None]:
        c = self.sae.config
        dtype, device = self.sae.W_enc.dtype, self.sae.W_enc.device
        moved = [t.to(device=device, dtype=dtype) for t in batch]
        if c.role == "transcoder":
            if len(moved) != 2:
                raise ValueError(f"SAETrainer: a transcoder needs what it reads and what it gives, got {len(moved)}.")
            return moved[0], moved[1]
        if c.role == "crosscoder" and len(moved) == c.layers:
            return votive.stack(moved, 1), None
        if len(moved) != 1:
            raise ValueError(f"SAETrainer: {c.role} of {c.layers} layers got {len(moved)} tensors a batch.")
        return moved[0], None

    def _learn(self, x: Tensor, target: Tensor | None) -> Losses:
        t, sae = self.training, self.sae
        for group in self.optimizer.param_groups:
            group["lr"] = t.lr * self._factor()
        thin = t.sparsity * (min((self.step + 1) / t.sparsity_warmup, 1.0) if t.sparsity_warmup else 1.0)
        dead = self.dead if t.auxiliary else None
        self.optimizer.zero_grad()
        found = losses(sae, x, target, sparsity=thin, auxiliary=t.auxiliary, dead=dead, k_aux=t.k_aux)
        found.total.backward()
        if t.unit_decoder:
            self._level_gradient()
        clip_grad_norm_(sae.parameters(), t.max_grad_norm)
        self.optimizer.step()
        with votive.no_grad():
            if t.unit_decoder:
                sae.W_dec.div_(sae.W_dec.norm(dim=-1, keepdim=True).clamp(min=1e-12))
            fired = (found.features != 0).any(0)
            self.since = votive.where(fired, 0, self.since + len(x))
            if sae.config.kind == "batchtopk":
                least = found.features[found.features > 0]
                if least.numel():
                    old = sae.threshold
                    sae.threshold.copy_(least.min() if not self.step else 0.99 * old + 0.01 * least.min())
        self.step += 1
        if t.resample_every and self.step % t.resample_every == 0 and bool(self.dead.any()):
            self._resample(x, found)
        return found

    @property
    def dead(self) -> Tensor:
        """Which features have not fired for `dead_after` rows."""
        return self.since >= self.training.dead_after

    def _factor(self) -> float:
        t = self.training
        up = min((self.step + 1) / t.warmup, 1.0) if t.warmup else 1.0
        down = min((t.steps - self.step) / t.decay, 1.0) if t.decay else 1.0
        return min(up, down)

    def _level_gradient(self) -> None:
        """Leave out of the decoder's gradient what only changes lengths, which are put back to 1."""
        g, w = self.sae.W_dec.grad, self.sae.W_dec.detach()
        if g is not None:
            with votive.no_grad():
                unit = w / w.norm(dim=-1, keepdim=True).clamp(min=1e-12)
                g.sub_((g * unit).sum(-1, keepdim=True) * unit)

    def _resample(self, x: Tensor, found: Losses) -> None:
        """Dead features begin anew at rows that are explained badly (Bricken et al. 2023)."""
        sae, dead = self.sae, self.dead.nonzero().flatten()
        generator = votive.Generator().manual_seed(self.training.seed + self.step)
        with votive.no_grad():
            weights = found.residual.square().sum(-1).square().to("cpu")
            if not float(weights.sum()) > 0:
                return
            chosen = votive.multinomial(weights, len(dead), replacement=True, generator=generator)
            wanted = found.residual[chosen.to(x.device)]
            wanted = wanted / wanted.norm(dim=-1, keepdim=True).clamp(min=1e-12)
            alive = (~self.dead).nonzero().flatten()
            size = sae.W_enc[:, alive].norm(dim=0).mean() if len(alive) else wanted.new_ones(())
            sae.W_dec[dead] = wanted
            rows = sae.rows(x)[chosen.to(x.device)]
            rows = rows - sae.b_dec if sae.config.center else rows
            rows = rows / rows.norm(dim=-1, keepdim=True).clamp(min=1e-12)
            sae.W_enc[:, dead] = (0.2 * size * rows).t()
            biases = [sae.b_gate, sae.b_mag] if sae.config.kind == "gated" else [sae.b_enc]
            for bias in biases:
                bias[dead] = 0.0
            for p, place in ((sae.W_dec, 0), (sae.W_enc, 1), *((b, 0) for b in biases)):
                for value in self.optimizer.state.get(p, {}).values():
                    if isinstance(value, Tensor) and value.shape == p.shape:
                        value.index_fill_(place, dead, 0.0)
            self.since[dead] = 0

    def _log(self, found: Losses, pace: Pace) -> None:
        pace.lap()
        row = {
            "step": self.step,
            "loss": float(found.total.detach()),
            "error": float(found.error.detach()),
            "l0": float((found.features != 0).sum(-1).float().mean()),
            "dead": float(self.dead.float().mean()),
        }
        self.history.append(row)
        left = None if pace.step_seconds is None else pace.step_seconds * (self.training.steps - self.step)
        rate = self.optimizer.param_groups[0]["lr"]
        self.display.update(Report(self.step, self.training.steps, 0, row["loss"], rate, pace.rate, "rows", left, None))


def _scale(x: Tensor) -> float:
    flat = x.float().flatten(1)
    norm = float(flat.norm(dim=-1).mean())
    return math.sqrt(flat.shape[-1]) / norm if norm > 0 else 1.0


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
