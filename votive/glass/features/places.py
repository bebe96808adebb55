"""Which module of a decoder gives, or is given, the value at a named place: there a coder can be put. Runs nothing."""

from __future__ import annotations

import re

from ...nn import Module
from ..head_weights import Weights
from ..site_names import means_site, translated

_LAYER = re.compile(r"\^?layers\.(\d+)\.(.+)")
_KNOWN = ("resid_pre", "attn_in", "attn.z", "attn_out", "mlp_in", "mlp.post", "mlp_out", "resid_post")


def module_at(model: Module, text: str) -> tuple[Module, str] | None:
    """The module at a named place, with the side on which the value is; None for a text that names no place.

    Heads stand one behind the other at `attn.z`, as the module behind attention is given them.

    >>> config = votive.models.GPT2Config(vocab_size=9, n_positions=8, n_embd=8, n_layer=1, n_head=2)
    >>> from votive.glass.features.places import module_at
    >>> module, side = module_at(votive.models.GPT2LMHeadModel(config), "blocks.0.hook_resid_pre")
    >>> type(module).__name__, side
    ('GPT2DecoderLayer', 'in')
    """
    text = translated(text)
    if not means_site(text):
        return None
    found = _LAYER.fullmatch(text)
    if found is None or found[2] not in _KNOWN:
        raise ValueError(
            f"splice: {text!r} is not the input or output of one module; in layer 3, those at "
            f"{', '.join(f'layers.3.{n}' for n in _KNOWN)} are."
        )
    layer, name = int(found[1]), found[2]
    of = Weights(model)
    if layer >= of.layers:
        raise IndexError(f"splice: {text!r} is behind the last layer, {of.layers - 1}.")
    before, behind, before_net, behind_net = of._norms(layer)
    attention, net, whole = of._attention(layer), of._net(layer), of.parts.layers[layer]
    if name == "mlp.post" and hasattr(net, "nets"):
        raise ValueError(f"splice: each expert at {text!r} has neurons of its own; name a module in one of them.")
    if name in ("attn.z", "mlp.post"):
        return (attention.product if name == "attn.z" else net.halves()[2]), "in"
    found_at = {
        "resid_pre": (whole, "in"),
        "attn_in": (before, "in"),
        "attn_out": (attention if behind is None else behind, "out"),
        "mlp_in": (before_net, "in"),
        "mlp_out": (net if behind_net is None else behind_net, "out"),
        "resid_post": (whole, "out"),
    }[name]
    if found_at[0] is None or (name in ("attn_out", "mlp_out") and whole.residual_scale != 1.0):
        raise ValueError(f"splice: in {type(model).__name__} no module gives, or is given, just what is at {text!r}.")
    return found_at
