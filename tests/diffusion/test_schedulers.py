"""Schedulers go the way that diffusers' go, over their options."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from .reference import follow, pair, set_both

pytestmark = [
    pytest.mark.parity,
    # Of diffusers' own code.
    pytest.mark.filterwarnings("ignore:__array__ implementation:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:`algorithm_types dpmsolver:FutureWarning"),
]

SPACINGS = ("linspace", "leading", "trailing")
SD = {"beta_start": 0.00085, "beta_end": 0.012, "beta_schedule": "scaled_linear"}
END = {"final_sigmas_type": "sigma_min"}
KINDS = ("epsilon", "sample", "v_prediction")
LEVELS = ({}, {"use_karras_sigmas": True}, {"use_exponential_sigmas": True}, {"use_beta_sigmas": True})


def over(**values: Any) -> list[dict[str, Any]]:
    """All combinations of values of keys."""
    return [dict(zip(values, found)) for found in itertools.product(*values.values())]


# What most of them share, one by one; each with what the name before says.
SHARED: list[dict[str, Any]] = [
    {},
    SD,
    {**SD, "steps_offset": 1, "timestep_spacing": "leading"},
    {"beta_schedule": "squaredcos_cap_v2"},
    {"trained_betas": [0.001 * (i + 1) for i in range(100)], "num_train_timesteps": 100},
    {"num_train_timesteps": 250, "beta_end": 0.05},
]
LEADING = [{"timestep_spacing": s, **SD} for s in SPACINGS]
THRESHOLDS: list[dict[str, Any]] = [
    {"thresholding": True, **SD},
    {"thresholding": True, "dynamic_thresholding_ratio": 0.8, "sample_max_value": 1.5},
]
CLIPS: list[dict[str, Any]] = [{"clip_sample": False}, {"clip_sample": True, "clip_sample_range": 2.0}]
ZERO: list[dict[str, Any]] = [
    {"rescale_betas_zero_snr": True, "timestep_spacing": "trailing", "prediction_type": "v_prediction", **SD}
]

ROWS: dict[str, list[dict[str, Any]]] = {
    "DDPMScheduler": [
        *SHARED,
        *LEADING,
        *THRESHOLDS,
        *CLIPS,
        *ZERO,
        *({"beta_schedule": s} for s in ("sigmoid",)),
        *over(prediction_type=KINDS, variance_type=("fixed_small", "fixed_small_log", "fixed_large")),
    ],
    "DDIMScheduler": [
        *SHARED,
        *LEADING,
        *THRESHOLDS,
        *CLIPS,
        *ZERO,
        *over(prediction_type=KINDS, set_alpha_to_one=(True, False), clip_sample=(False,)),
    ],
    "EulerDiscreteScheduler": [
        *SHARED,
        *ZERO,
        *over(prediction_type=KINDS, timestep_spacing=SPACINGS),
        *({**SD, **a, **b} for a in LEVELS for b in ({}, END)),
        {**SD, "use_karras_sigmas": True, "sigma_min": 0.05, "sigma_max": 12.0},
        {**SD, "interpolation_type": "log_linear"},
        {**SD, "timestep_type": "continuous", "prediction_type": "v_prediction", "use_karras_sigmas": True},
        {"timestep_type": "continuous", "prediction_type": "v_prediction", "sigma_min": 0.002, "sigma_max": 700.0},
    ],
    "EulerAncestralDiscreteScheduler": [
        *SHARED,
        *ZERO,
        *over(prediction_type=("epsilon", "v_prediction"), timestep_spacing=SPACINGS),
    ],
    "DPMSolverMultistepScheduler": [
        *SHARED,
        *THRESHOLDS,
        *ZERO,
        *LEADING,
        *(
            {**SD, **row}
            for row in over(
                algorithm_type=("dpmsolver++", "sde-dpmsolver++"),
                solver_order=(1, 2, 3),
                solver_type=("midpoint", "heun"),
            )
        ),
        *(
            {**SD, **row, "final_sigmas_type": "sigma_min"}
            for row in over(algorithm_type=("dpmsolver", "sde-dpmsolver"), solver_order=(1, 2))
        ),
        {**SD, "algorithm_type": "dpmsolver", "solver_order": 3, "final_sigmas_type": "sigma_min"},
        {**SD, "algorithm_type": "dpmsolver", "final_sigmas_type": "sigma_min", "thresholding": True},
        *({**SD, "prediction_type": k} for k in KINDS),
        *({"algorithm_type": "dpmsolver", "final_sigmas_type": "sigma_min", "prediction_type": k} for k in KINDS),
        *({**SD, **level, **end} for level in LEVELS for end in ({}, END)),
        {**SD, "use_lu_lambdas": True},
        {"beta_schedule": "squaredcos_cap_v2", "lambda_min_clipped": -5.1},
        {**SD, "euler_at_final": True, "final_sigmas_type": "sigma_min"},
        {**SD, "lower_order_final": False},
        {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "flow_shift": 3.0},
    ],
    "HeunDiscreteScheduler": [
        *SHARED,
        *CLIPS,
        {"beta_schedule": "exp"},
        *over(prediction_type=KINDS, timestep_spacing=SPACINGS),
        *({**SD, **level} for level in LEVELS),
    ],
    "LCMScheduler": [
        *SHARED[:4],
        *THRESHOLDS,
        *CLIPS,
        *over(prediction_type=KINDS),
        {"set_alpha_to_one": False},
        {"timestep_scaling": 2.0},
        {"original_inference_steps": 100},
    ],
    "LMSDiscreteScheduler": [
        *SHARED,
        *over(prediction_type=KINDS, timestep_spacing=SPACINGS),
        *({**SD, **level} for level in LEVELS),
    ],
    "PNDMScheduler": [
        *SHARED,
        *over(
            prediction_type=("epsilon", "v_prediction"),
            skip_prk_steps=(True, False),
            set_alpha_to_one=(True, False),
            timestep_spacing=SPACINGS,
        ),
        {**SD, "skip_prk_steps": True, "steps_offset": 1},
    ],
    "UniPCMultistepScheduler": [
        *SHARED,
        *THRESHOLDS,
        *ZERO,
        *LEADING,
        *({**SD, "solver_order": order} for order in (1, 2, 3, 4)),
        # Where these end without noise, diffusers divides by zero.
        *({**SD, **END, **row} for row in over(solver_order=(1, 2, 3, 4), solver_type=("bh1", "bh2"))),
        *({**SD, **END, **row} for row in over(predict_x0=(True, False), prediction_type=KINDS)),
        *({**SD, **level, **end} for level in LEVELS for end in ({}, END)),
        {**SD, "use_karras_sigmas": True, "sigma_min": 0.1, "sigma_max": 9.0},
        {**SD, "disable_corrector": [0, 1]},
        {**SD, **END, "lower_order_final": False},
        {"use_flow_sigmas": True, "prediction_type": "flow_prediction", "flow_shift": 3.0},
    ],
    "FlowMatchEulerDiscreteScheduler": [
        {},
        {"shift": 3.0},
        {"shift_terminal": 0.1},
        {"invert_sigmas": True},
        {"stochastic_sampling": True},
        *LEVELS[1:],
    ],
}
CASES = [(name, config) for name, rows in ROWS.items() for config in rows]


def _id(case: Any) -> str:
    own = [f"{k}={'…' if isinstance(v, list) else v}" for k, v in case.items() if case.get(k) != SD.get(k)]
    return ",".join(["sd"] * (SD.items() <= case.items()) + own) or "default"


@pytest.mark.parametrize("steps", [5, 17])
@pytest.mark.parametrize("name, config", CASES, ids=lambda x: x if isinstance(x, str) else _id(x))
def test_a_run_goes_the_same_way(name: str, config: dict[str, Any], steps: int) -> None:
    both = pair(name, **config)
    set_both(both, num_inference_steps=steps)
    follow(both)
