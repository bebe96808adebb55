"""The mixture that DeepSeek-V3 began and many families took over. Knows keys of configurations, no modules."""

from __future__ import annotations

from typing import Any

from .design import Experts


def check_groups(config: Any, count: int | None) -> None:
    """Raise for groups of experts that are not there, or that hold too few; `count` is that of all experts.

    >>> from votive.models.decoder.routing import check_groups
    >>> check_groups(votive.models.DeepseekV3Config(), 256)
    """
    groups, kept, chosen = config.n_group, config.topk_group, config.num_experts_per_tok
    key = next((k for k in ("n_routed_experts", "num_experts") if hasattr(config, k)), None)
    count = count or 0
    told = count if key is None else f"{key}={count}"
    fits = groups and kept and not count % groups and kept <= groups and (chosen or 1) <= kept * (count // groups)
    if not fits:
        raise ValueError(
            f"{type(config).__name__}: of {told} experts in n_group={groups} groups, num_experts_per_tok={chosen} "
            f"cannot be chosen in topk_group={kept} of them."
        )


def sigmoid_experts(config: Any, count: int | None, shared: int | None, **changes: Any) -> Experts:
    """Experts chosen by sigmoids and a correction, within groups, beside `shared` experts that compute all positions.

    Arguments are the numbers of experts, whose keys differ; the others have the names that DeepSeek-V3 has for them.
    arXiv:2412.19437, section 2.1.2.

    >>> votive.models.Glm4MoeConfig().design.experts.correction
    'e_score_correction_bias'
    """
    inner = config.moe_intermediate_size
    several = (config.n_group or 1) > 1
    if several:
        check_groups(config, count)
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
