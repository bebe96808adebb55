"""What schedulers are asked beside plain runs: own timesteps, noise over samples, options of steps, files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive

from .reference import agree, drawn, follow, ours, pair, set_both, theirs, torch

pytestmark = [
    pytest.mark.parity,
    # Of diffusers' own code.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
]
SD = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
NAMES = [n for n in ours.__all__ if n not in ("Scheduler", "AlphaScheduler")]
FLOW = "FlowMatchEulerDiscreteScheduler"
OWN = [999, 801, 555, 320, 111, 20]


@pytest.mark.parametrize(
    "name, config, how",
    [
        ("DDPMScheduler", {}, {"timesteps": OWN}),
        ("EulerDiscreteScheduler", SD, {"timesteps": OWN}),
        ("EulerDiscreteScheduler", SD, {"sigmas": [14.0, 7.0, 3.0, 1.0, 0.3, 0.0]}),
        ("HeunDiscreteScheduler", SD, {"timesteps": OWN}),
        ("HeunDiscreteScheduler", SD, {"num_inference_steps": 6, "num_train_timesteps": 900}),
        ("DPMSolverMultistepScheduler", SD, {"timesteps": OWN}),
        ("LCMScheduler", {}, {"timesteps": [999, 759, 499, 259]}),
        ("LCMScheduler", {}, {"num_inference_steps": 4, "original_inference_steps": 100}),
        ("LCMScheduler", {}, {"num_inference_steps": 4, "strength": 0.5}),
        (
            "UniPCMultistepScheduler",
            {"use_flow_sigmas": True, "prediction_type": "flow_prediction"},
            {"sigmas": np.array([1.0, 0.8, 0.5, 0.2])},
        ),
        (
            "UniPCMultistepScheduler",
            {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "use_dynamic_shifting": True},
            {"num_inference_steps": 5, "mu": 0.8},
        ),
        (
            "DPMSolverMultistepScheduler",
            {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "use_dynamic_shifting": True},
            {"num_inference_steps": 5, "mu": 0.8},
        ),
        (FLOW, {}, {"sigmas": [1.0, 0.8, 0.5, 0.2]}),
        (FLOW, {"shift": 2.0}, {"timesteps": [900.0, 500.0, 100.0]}),
        (FLOW, {"use_dynamic_shifting": True}, {"num_inference_steps": 5, "mu": 0.9}),
        (FLOW, {"use_dynamic_shifting": True, "time_shift_type": "linear"}, {"num_inference_steps": 5, "mu": 1.2}),
    ],
)
def test_a_run_over_own_timesteps_goes_the_same_way(name: str, config: dict[str, Any], how: dict[str, Any]) -> None:
    both = pair(name, **config)
    set_both(both, **how)
    follow(both)


@pytest.mark.parametrize(
    "name, config, options",
    [
        ("DDIMScheduler", {"clip_sample": True}, {"eta": 0.6}),
        ("DDIMScheduler", {"clip_sample": True}, {"eta": 1.0, "use_clipped_model_output": True}),
        ("DDIMScheduler", {"prediction_type": "v_prediction"}, {"use_clipped_model_output": True}),
        ("EulerDiscreteScheduler", SD, {"s_churn": 3.0, "s_noise": 1.1}),
        ("EulerDiscreteScheduler", SD, {"s_churn": 3.0, "s_tmin": 0.5, "s_tmax": 5.0}),
        ("EulerDiscreteScheduler", {**SD, "prediction_type": "v_prediction"}, {"s_churn": 3.0}),
        ("LMSDiscreteScheduler", SD, {"order": 2}),
    ],
)
def test_options_of_steps_mean_the_same(name: str, config: dict[str, Any], options: dict[str, Any]) -> None:
    both = pair(name, **config)
    set_both(both, num_inference_steps=8)
    follow(both, **options)


@pytest.mark.parametrize("kind", ["learned", "learned_range"])
def test_variances_that_the_network_predicts_are_taken(kind: str) -> None:
    both = pair("DDPMScheduler", variance_type=kind)
    set_both(both, num_inference_steps=6)
    follow(both, channels=8)
    with pytest.raises(ValueError, match="twice the channels"):
        both[1].step(votive.ones(1, 4, 2, 2), both[1].timesteps[0], votive.ones(1, 4, 2, 2))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("set_first", [True, False])
def test_noise_over_clean_samples_is_the_same(name: str, set_first: bool) -> None:
    reference, scheduler = both = pair(name)
    if set_first:
        set_both(both, num_inference_steps=7)
        at = reference.timesteps[[1, 4]]
    else:
        at = reference.timesteps[[10, 700]] if name == FLOW else torch.tensor([989, 299])
    if not set_first and name in ("DPMSolverMultistepScheduler", "UniPCMultistepScheduler"):
        # Without a schedule diffusers takes the levels of these in the wrong order; they are those of training.
        reference = theirs.DDPMScheduler()
    clean, noise = drawn(3), drawn(4)
    own = votive.from_numpy(at.numpy())
    if name == FLOW:
        expected = reference.scale_noise(torch.from_numpy(clean), at, torch.from_numpy(noise))
        got = scheduler.scale_noise(votive.from_numpy(clean), own, votive.from_numpy(noise))
    else:
        expected = reference.add_noise(torch.from_numpy(clean), torch.from_numpy(noise), at)
        got = scheduler.add_noise(votive.from_numpy(clean), votive.from_numpy(noise), own)
    agree(got, expected)


@pytest.mark.parametrize("name", [n for n in NAMES if hasattr(getattr(theirs, n), "get_velocity")])
def test_velocities_are_the_same(name: str) -> None:
    reference, scheduler = pair(name)
    clean, noise = drawn(3), drawn(4)
    at = reference.timesteps[[10, 700]]
    expected = reference.get_velocity(torch.from_numpy(clean), torch.from_numpy(noise), at)
    got = scheduler.get_velocity(votive.from_numpy(clean), votive.from_numpy(noise), votive.from_numpy(at.numpy()))
    agree(got, expected)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("PNDMScheduler",)])
def test_a_run_may_begin_in_the_middle(name: str) -> None:
    reference, scheduler = both = pair(name)
    set_both(both, num_inference_steps=8)
    first = 4 if name == "HeunDiscreteScheduler" else 3
    if hasattr(reference, "set_begin_index"):
        reference.set_begin_index(first)
        scheduler.set_begin_index(first)
        assert scheduler.begin_index == reference.begin_index == first
    follow(both, first=first)
    if hasattr(reference, "step_index"):
        assert scheduler.step_index == reference.step_index


@pytest.mark.parametrize("name", NAMES)
def test_a_run_after_another_is_as_the_first(name: str) -> None:
    both = pair(name)
    for steps in (6, 9, 6):
        set_both(both, num_inference_steps=steps)
        follow(both)


@pytest.mark.parametrize("name", NAMES)
def test_files_are_read_and_written_as_diffusers_does(name: str, tmp_path: Path) -> None:
    own = {"shift": 2.5} if name == FLOW else {"num_train_timesteps": 300}
    reference, scheduler = pair(name, **own)
    reference.save_pretrained(tmp_path / "theirs")
    scheduler.save_pretrained(tmp_path / "ours")
    read = getattr(ours, name).from_pretrained(tmp_path / "theirs")
    back = getattr(theirs, name).from_pretrained(tmp_path / "ours")
    for key, value in reference.config.items():
        if not key.startswith("_"):
            assert read.config[key] == back.config[key] == value, key
    found = json.loads((tmp_path / "ours" / "scheduler_config.json").read_text())
    assert found["_class_name"] == name
    set_both((back, read), num_inference_steps=5)
    follow((back, read))


@pytest.mark.parametrize("name", [n for n in NAMES if n != FLOW])
@pytest.mark.parametrize("other", ["DDIMScheduler", "EulerDiscreteScheduler", "DPMSolverMultistepScheduler"])
def test_one_is_made_from_the_configuration_of_another(name: str, other: str) -> None:
    values = {**SD, "prediction_type": "v_prediction", "timestep_spacing": "trailing"}
    there, here = pair(name, **values)
    reference = getattr(theirs, other).from_config(there.config)
    scheduler = getattr(ours, other).from_config(here.config)
    for key, value in reference.config.items():
        if not key.startswith("_") and key in scheduler.defaults:
            assert scheduler.config[key] == value, key
    set_both((reference, scheduler), num_inference_steps=6)
    follow((reference, scheduler))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float64"])
def test_samples_keep_their_type(name: str, dtype: str) -> None:
    _, scheduler = pair(name)
    scheduler.set_timesteps(5)
    kind = getattr(votive, dtype)
    x = votive.from_numpy(drawn(2)).to(kind)
    for t in scheduler.timesteps:
        seen = scheduler.scale_model_input(x, t)
        assert seen.dtype == kind
        x = scheduler.step(seen * 0.5, t, x).prev_sample
        assert x.dtype == kind


@pytest.mark.parametrize("name", NAMES)
def test_a_generator_repeats_a_run(name: str) -> None:
    _, scheduler = pair(name, **({"stochastic_sampling": True} if name == FLOW else {}))
    runs = []
    for seed in (1, 1, 2):
        generator = votive.Generator().manual_seed(seed)
        scheduler.set_timesteps(5)
        x = votive.from_numpy(drawn(2))
        for t in scheduler.timesteps:
            seen = scheduler.scale_model_input(x, t)
            options = {"generator": generator} if "generator" in scheduler.step.__code__.co_varnames else {}
            options |= {"eta": 0.7} if name == "DDIMScheduler" else {}
            options |= {"s_churn": 2.0} if name == "EulerDiscreteScheduler" else {}
            x = scheduler.step(seen.tanh(), t, x, **options).prev_sample
        runs.append(x.numpy())
    assert (runs[0] == runs[1]).all()
    draws = "generator" in scheduler.step.__code__.co_varnames and name not in ("DPMSolverMultistepScheduler",)
    assert (runs[0] == runs[2]).all() != draws


@pytest.mark.parametrize("name", NAMES)
def test_a_run_goes_on_from_a_snapshot(name: str) -> None:
    _, scheduler = pair(name)
    scheduler.set_timesteps(8)
    draws = drawn(5, len(scheduler.timesteps))
    takes = "variance_noise" in scheduler.step.__code__.co_varnames

    def advance(x: Any, first: int, last: int) -> Any:
        for i in range(first, last):
            t = scheduler.timesteps[i]
            seen = scheduler.scale_model_input(x, t)
            more = {"variance_noise": votive.from_numpy(draws[i])} if takes else {}
            x = scheduler.step(seen.tanh(), t, x, **more).prev_sample
        return x

    middle = advance(votive.from_numpy(drawn(2)), 0, 4)
    state = scheduler.snapshot()
    end = advance(middle, 4, len(draws))
    scheduler.restore(state)
    assert votive.equal(advance(middle, 4, len(draws)), end)


@pytest.mark.parametrize(
    "name, config, match",
    [
        ("DDIMScheduler", {"beta_schedule": "cosine"}, "beta_schedule='cosine' is not known"),
        ("DDIMScheduler", {"prediction_type": "flow"}, "prediction_type='flow' is not known"),
        ("EulerDiscreteScheduler", {"timestep_spacing": "log"}, "timestep_spacing='log' is not known"),
        ("EulerDiscreteScheduler", {"use_karras_sigmas": True, "use_beta_sigmas": True}, "only one of"),
        ("DPMSolverMultistepScheduler", {"algorithm_type": "dpmsolver"}, "use 'sigma_min'"),
        ("DPMSolverMultistepScheduler", {"solver_order": 4}, "solver_order=4 is not known"),
        ("UniPCMultistepScheduler", {"solver_p": "DDIM"}, "solver_p='DDIM' is not supported"),
        ("UniPCMultistepScheduler", {"shift_terminal": 0.1}, "goes with use_flow_sigmas"),
    ],
)
def test_what_is_not_known_is_refused(name: str, config: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        getattr(ours, name)(**config)


def test_a_misspelled_key_names_the_right_one() -> None:
    with pytest.raises(TypeError, match="did you mean 'beta_schedule'"):
        ours.DDIMScheduler(beta_shedule="linear")


# DDPM's steps go through all timesteps of training then.
@pytest.mark.parametrize("name", [n for n in NAMES if n != "DDPMScheduler"])
def test_a_step_needs_timesteps_before(name: str) -> None:
    _, scheduler = pair(name)
    with pytest.raises(ValueError, match="set_timesteps"):
        scheduler.step(votive.ones(1, 4, 2, 2), votive.tensor(999.0), votive.ones(1, 4, 2, 2))


@pytest.mark.parametrize(
    "how, match",
    [
        ({}, "got none"),
        ({"num_inference_steps": 3, "timesteps": OWN}, "got num_inference_steps and timesteps"),
        ({"timesteps": [1, 2, 3]}, "must go down"),
        ({"timesteps": [1200, 3]}, "must begin below 1000"),
        ({"num_inference_steps": 1001}, "more than the 1000"),
        ({"num_inference_steps": 0}, "1 or more"),
    ],
)
def test_timesteps_that_cannot_be_are_refused(how: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        ours.DDPMScheduler().set_timesteps(**how)
