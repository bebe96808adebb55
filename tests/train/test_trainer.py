"""The trainer does what a loop written by hand does, and what it promises beyond that."""

from __future__ import annotations

import gc
import io
import os
from pathlib import Path
from typing import Any

import pytest

import votive
from votive.data import DataLoader, TensorDataset
from votive.optim import lr_scheduler
from votive.train import Callback, EarlyStopping, Trainer
from votive.train.progress import Live, Report

from .run import make
from .small import line, small

mse = votive.nn.functional.mse_loss

# --- the loop ---------------------------------------------------------------------------------


def test_it_computes_what_a_loop_written_by_hand_computes() -> None:
    data = DataLoader(line(), 2)
    trainer = small(
        data=data,
        max_steps=None,
        epochs=3,
        accumulate=3,
        clip_grad_norm=0.5,
        scheduler=lambda o: lr_scheduler.StepLR(o, 2),
        optimizer=votive.optim.Adam,
    )
    history = trainer.fit()

    votive.manual_seed(0)
    model = votive.nn.Linear(1, 1)
    optimizer = votive.optim.Adam(model.parameters(), lr=0.1)
    scheduler = lr_scheduler.StepLR(optimizer, 2)
    rows = []
    for _ in range(3):
        batches = list(data)
        for group in (batches[:3], batches[3:6], batches[6:]):  # the last has two batches only
            optimizer.zero_grad()
            total = 0.0
            for x, y in group:
                loss = mse(model(x), y) / len(group)
                loss.backward()
                total = total + loss.detach()
            norm = votive.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            rows.append((float(total), scheduler.get_last_lr()[0], float(norm)))
            optimizer.step()
            scheduler.step()
    assert list(zip(history["loss"], history["lr"], history["grad_norm"])) == rows
    assert history["step"] == list(range(1, 10))
    assert history["epoch"] == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert bool((trainer.model.weight == model.weight).all())


def test_accumulated_batches_weigh_as_one_large_batch() -> None:
    apart = small(data=DataLoader(line(), 4), accumulate=4, max_steps=3).fit()
    whole = small(data=DataLoader(line(), 16), max_steps=3).fit()
    assert apart["loss"] == pytest.approx(whole["loss"], rel=1e-6)


def test_steps_end_at_max_steps_or_after_the_epochs_whichever_is_first() -> None:
    assert len(small(max_steps=6, epochs=10).fit()) == 6
    trainer = small(max_steps=100, epochs=2)
    assert trainer.total_steps == 8
    assert len(trainer.fit()) == 8
    assert small(max_steps=None, epochs=2, accumulate=3).total_steps == 4
    assert small(max_steps=None, epochs=2, data=iter([])).total_steps is None


def test_a_step_function_gives_the_loss_and_values_to_record() -> None:
    def step(model: Any, batch: Any) -> Any:
        loss = mse(model(batch["x"]), batch["y"])
        return loss, {"double": 2 * loss.detach()}

    data = [{"x": votive.ones(2, 1), "y": votive.zeros(2, 1)}]
    history = small(step=step, data=data, eval_data=data, max_steps=3).fit()
    assert history["double"] == [2 * x for x in history["loss"]]
    assert history.evals[-1]["double"] == pytest.approx(2 * history.evals[-1]["loss"])


def test_several_inputs_go_to_the_model() -> None:
    class Sum(votive.nn.Linear):
        def forward(self, a: Any, b: Any) -> Any:
            return super().forward(a + b)

    a, b, y = votive.ones(4, 1), votive.ones(4, 1), votive.ones(4, 1)
    data = DataLoader(TensorDataset(a, b, y), 2)
    assert len(small(model=Sum(1, 1), data=data, max_steps=2).fit()) == 2


@pytest.mark.parametrize(("amp", "want"), [(None, None), (True, "bfloat16"), ("half", "float16")])
def test_mixed_precision_covers_forward_and_evaluation_only(amp: Any, want: str | None) -> None:
    seen = set()

    def step(model: Any, batch: Any) -> Any:
        x, y = batch
        out = model(x)
        seen.add(out.dtype.name)
        return mse(out.float(), y)

    def at_step(trainer: Trainer) -> None:
        assert not votive.is_autocast_enabled("cpu")

    chosen = votive.float16 if amp == "half" else amp
    trainer = small(step=step, amp=chosen, eval_data=DataLoader(line(), 4), max_steps=2, callbacks=[at_step])
    trainer.fit()
    assert seen == {want or "float32"}


def test_a_gradient_scaler_is_used_saved_and_resumed(tmp_path: Path) -> None:
    def run(steps: int, folder: Path | None) -> Trainer:
        scaler = votive.amp.GradScaler("cpu", init_scale=1024.0, growth_interval=3)
        trainer = small(scaler=scaler, clip_grad_norm=1.0, max_steps=steps, folder=folder, checkpoint_every=2)
        trainer.fit()
        return trainer

    whole = run(8, None)
    assert whole.scaler.get_scale() == 4096
    run(4, tmp_path)
    resumed = run(8, tmp_path)
    assert resumed.scaler.get_scale() == 4096
    assert resumed.history == whole.history
    plain = small(max_steps=8, clip_grad_norm=1.0).fit()
    assert whole.history["loss"] == pytest.approx(plain["loss"], rel=1e-6)


# --- evaluation -------------------------------------------------------------------------------


def test_metrics_are_means_over_items_in_evaluation_mode() -> None:
    modes = []

    def count(output: Any, target: Any) -> int:
        modes.append(trainer.model.training)
        return int(output.shape[0])

    data = DataLoader(line(5), 4)  # four rows, then one
    trainer = small(metrics={"rows": count}, eval_data=data, eval_every=2, max_steps=4)
    history = trainer.fit()
    assert [e["step"] for e in history.evals] == [2, 4]
    assert history.evals[0]["rows"] == (4 * 4 + 1 * 1) / 5
    assert not any(modes)
    assert trainer.model.training


def test_evaluating_more_often_does_not_change_training() -> None:
    def losses(every: int) -> Any:
        return make(None, "plain", eval_every=every, max_steps=8).fit()["loss"]

    assert losses(1) == losses(5)


def test_without_a_number_evaluation_follows_each_epoch_and_the_end() -> None:
    history = small(max_steps=10, eval_data=DataLoader(line(), 16)).fit()
    assert [e["step"] for e in history.evals] == [4, 8, 10]


def test_a_plateau_scheduler_steps_on_the_metric() -> None:
    trainer = small(
        lr=0.0,
        scheduler=lambda o: lr_scheduler.ReduceLROnPlateau(o, patience=0, min_lr=0),
        eval_data=DataLoader(line(), 16),
        eval_every=1,
        max_steps=3,
    )
    trainer.optimizer.param_groups[0]["lr"] = 1e-12
    history = trainer.fit()
    assert history["lr"] == pytest.approx([1e-12, 1e-12, 1e-13], rel=1e-6)


# --- along the way ----------------------------------------------------------------------------


def test_callbacks_hear_of_everything_in_order(tmp_path: Path) -> None:
    class Log(Callback):
        def __init__(self) -> None:
            self.seen: list[str] = []

        def on_start(self, trainer: Any) -> None:
            self.seen.append("start")

        def on_step(self, trainer: Any) -> None:
            self.seen.append(f"step {trainer.step}")
            assert trainer.loss > 0

        def on_eval(self, trainer: Any, metrics: dict[str, float]) -> None:
            self.seen.append(f"eval {sorted(metrics)}")

        def on_epoch(self, trainer: Any) -> None:
            self.seen.append(f"epoch {trainer.epoch}")

        def on_checkpoint(self, trainer: Any, path: Path) -> None:
            self.seen.append(path.name)

        def on_end(self, trainer: Any) -> None:
            self.seen.append("end")

    log = Log()
    small(
        data=DataLoader(line(), 8),
        eval_data=DataLoader(line(), 16),
        callbacks=[log],
        max_steps=None,
        epochs=1,
        folder=tmp_path,
    ).fit()
    assert log.seen == ["start", "step 1", "step 2", "eval ['loss']", "epoch 1", "step-00000002.safetensors", "end"]


def test_early_stopping_remembers_over_a_resume(tmp_path: Path) -> None:
    def run(steps: int) -> Trainer:
        trainer = small(
            lr=0.0,
            max_steps=steps,
            eval_data=DataLoader(line(), 16),
            eval_every=1,
            callbacks=[EarlyStopping(patience=4)],
            folder=tmp_path,
            checkpoint_every=1,
        )
        trainer.fit()
        return trainer

    run(3)
    assert run(100).step == 5


def test_a_loss_that_is_not_finite_stops_before_it_is_saved(tmp_path: Path) -> None:
    trainer = small(lr=1e30, folder=tmp_path, checkpoint_every=1)
    with pytest.raises(FloatingPointError, match=r"the loss is (inf|nan) at step \d"):
        trainer.fit()
    assert trainer.checkpoints is not None
    assert max(trainer.checkpoints.steps()) == trainer.step - 1
    assert len(small(lr=1e30, allow_nonfinite=True).fit()) == 12


def test_lines_tell_loss_rate_and_time_when_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    small(progress=None, log_every=4, eval_data=DataLoader(line(), 16), unit="tokens").fit()
    lines = capsys.readouterr().out.splitlines()
    shown = [x for x in lines if "/12" in x]
    assert [x.split()[1] for x in shown] == ["4/12", "8/12", "12/12"]
    for part in ("loss ", "lr 0.1", "tokens/s", "eta 0:00", "mem "):
        assert all(part in x for x in shown), part
    assert sum("eval  loss" in x for x in lines) == 3
    assert "█" in lines[-1]


def test_a_terminal_shows_a_bar() -> None:
    from rich.console import Console

    out = io.StringIO()
    live = Live(Console(file=out, force_terminal=True, width=120))
    small(progress=live, log_every=3, eval_data=DataLoader(line(), 16)).fit()
    text = out.getvalue()
    for part in ("epoch", "12/12", "items/s", "eta", "eval  loss"):
        assert part in text, part
    assert "\x1b[" in text


def test_rates_count_items_or_tokens() -> None:
    reports: list[Report] = []

    class Collect:
        def start(self, total: int | None, done: int) -> None:
            pass

        def update(self, report: Report) -> None:
            reports.append(report)

        def note(self, text: str) -> None:
            pass

        def stop(self) -> None:
            pass

    tokens = votive.zeros(6, 50, dtype=votive.int64)
    data = [(tokens, votive.zeros(6))]
    step = lambda model, batch: model.weight.sum()
    for unit in ("items", "tokens"):
        small(step=step, data=data, max_steps=1, log_every=1, unit=unit, progress=Collect()).fit()
    # The rate is count / time, and only the count differs by the length of a row.
    assert all(r.rate > 0 for r in reports)
    from votive.train.feed import size_of

    assert [size_of(data[0], u) for u in ("items", "tokens")] == [6, 300]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"loss_fn": None}, "either loss_fn or step"),
        ({"step": lambda m, b: 0, "loss_fn": mse}, "either loss_fn or step"),
        ({"max_steps": None}, "max_steps= or epochs="),
        ({"accumulate": 0}, "accumulate"),
        ({"eval_every": 0}, "eval_every"),
        ({"schedule": "never"}, "schedule"),
        ({"best": "loss"}, "needs eval_data"),
        ({"best": "loss", "eval_data": [1], "best_mode": "most"}, "best_mode"),
        ({"step": lambda m, b: 0, "metrics": {"a": print}}, "eval_step"),
    ],
)
def test_wrong_arguments_are_refused_at_once(options: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        small(**options)


def test_wrong_data_is_refused_clearly() -> None:
    for data in ([], iter(DataLoader(line(), 8)), DataLoader([])):
        with pytest.raises(ValueError, match="train_data gave no batch"):
            small(data=data).fit()
    with pytest.raises(TypeError, match=r"\(input, \.\.\., target\)"):
        small(data=[votive.zeros(2)]).fit()
    with pytest.raises(ValueError, match="evaluate: the data gave no batch"):
        small(eval_data=[], eval_every=1).fit()
    with pytest.raises(ValueError, match="not a checkpoint"):
        small().load_state_dict({"version": 0})


def resident() -> int:
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no /proc on this system")
def test_two_thousand_steps_leave_memory_flat() -> None:
    marks: list[tuple[int, int]] = []

    def look(trainer: Trainer) -> None:
        if trainer.step in (500, 2500):
            gc.collect()
            marks.append((votive.cpu.memory_allocated(), resident()))

    model = votive.nn.Sequential(votive.nn.Linear(1, 64), votive.nn.Tanh(), votive.nn.Linear(64, 1))
    small(
        model=model,
        optimizer=votive.optim.AdamW,
        data=DataLoader(line(64), 16, shuffle=True),
        max_steps=2500,
        callbacks=[look],
        clip_grad_norm=1.0,
    ).fit()
    (held, before), (held_after, after) = marks
    assert held_after <= held + 4096
    assert after - before < 4 << 20
