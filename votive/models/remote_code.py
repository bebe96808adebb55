"""What to say of folders that bring code of their own: it is not run. Knows configurations only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def brings_code(values: Mapping[str, Any]) -> bool:
    """Whether a configuration names classes in files beside it.

    >>> from votive.models.remote_code import brings_code
    >>> brings_code({"auto_map": {"AutoModel": "modeling_mine.MineModel"}}), brings_code({"model_type": "llama"})
    (True, False)
    """
    return bool(values.get("auto_map"))


def not_run(values: Mapping[str, Any]) -> str:
    """Why such a model does not load, and how one adds its class.

    >>> from votive.models.remote_code import not_run
    >>> print(not_run({"model_type": "mine", "auto_map": {"AutoModel": "modeling_mine.MineModel"}})[:75])
    unknown model_type 'mine': its folder brings Python code of its own for it
    """
    told = values.get("auto_map")
    classes = told if isinstance(told, Mapping) else {"auto_map": told}
    named = ", ".join(f"{use}: {where}" for use, where in classes.items())
    kind = values.get("model_type") or "its_name"
    title = "".join(part.capitalize() for part in str(kind).replace("-", "_").split("_"))
    return (
        f"unknown model_type {values.get('model_type')!r}: its folder brings Python code of its own for it ({named}). "
        "Code that comes with a model is never run here, with trust_remote_code=True neither. Write the model as a "
        "class of votive (docs/models.md, 'A family of your own', shows one) and add it before you load: "
        f"votive.models.register({kind!r}, {title}Config, causal={title}ForCausalLM). Where it is a family that is "
        "known by another name (votive.models.families()), pass config= with that family's configuration to its class."
    )
