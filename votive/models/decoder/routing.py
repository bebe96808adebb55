"""The mixture that DeepSeek-V3 began and many families took over. Knows keys of configurations, no modules."""

from __future__ import annotations

from typing import Any

from .design import Experts


def sigmoid_experts(config: Any, count: int | None, shared: int | None, **changes: Any) -> Experts:
    """Experts chosen by sigmoids and a correction, within groups, beside `shared` experts that compute all positions.

    Arguments are the numbers of experts, whose keys differ; the others have the names that DeepSeek-V3 has for them.
    arXiv:2412.19437, section 2.1.2.

    >>> votive.models.Glm4MoeConfig().design.experts.correction
    'e_score_correction_bias'
    """
    inner = config.moe_intermediate_size
    several = (config.n_group or 1) > 1
    told = {
        "count": count or 0,
        "chosen": config.num_experts_per_tok or 0,
        "inner": inner,
        "router": "sigmoid",
        "normed": bool(config.norm_topk_prob),
        "scaled": config.routed_scaling_factor,
        "groups": (config.n_group, config.topk_group or 1) if several else None,
        "correction": "e_score_correction_bias",
        "shared": inner * (shared or 0) or None,
        "shared_path": "shared_experts",
        "balanced": False,
    }
    return Experts(**{**told, **changes})
