"""Files of low-rank adaptations of pipelines: names of diffusers, old and new, and of kohya's trainer. Knows no layer.

A file holds pairs of matrices, for layers of a denoiser ("unet") and of readers of texts ("text_encoder",
"text_encoder_2"). Hu et al. 2021, arXiv:2106.09685.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...io import open_weights
from ...tensor import Tensor
from ..config import StrPath

FILE = "pytorch_lora_weights.safetensors"
PARTS = ("unet", "text_encoder", "text_encoder_2")
_KOHYA = {"lora_unet": "unet", "lora_te": "text_encoder", "lora_te1": "text_encoder", "lora_te2": "text_encoder_2"}
# Ends of names, and which matrix they mean.
_ENDS = (
    (r"\.lora_A(\.[^.]+)?\.weight$", "down"),
    (r"\.lora_B(\.[^.]+)?\.weight$", "up"),
    (r"\.(lora_linear_layer|lora)\.down\.weight$", "down"),
    (r"\.(lora_linear_layer|lora)\.up\.weight$", "up"),
    (r"(?<=_lora)\.down\.weight$", "down"),
    (r"(?<=_lora)\.up\.weight$", "up"),
    (r"\.lora_down\.weight$", "down"),
    (r"\.lora_up\.weight$", "up"),
    (r"\.alpha$", "alpha"),
)
# Names of layers in the first code of Stable Diffusion, which XL's adaptations have, and diffusers'.
_RESNET = (
    ("in_layers_2", "conv1"), ("out_layers_3", "conv2"), ("emb_layers_1", "time_emb_proj"),
    ("skip_connection", "conv_shortcut"),
)  # fmt: skip
_ENDS_OF_NET = {
    "time_embed_0": "time_embedding_linear_1", "time_embed_2": "time_embedding_linear_2",
    "label_emb_0_0": "add_embedding_linear_1", "label_emb_0_2": "add_embedding_linear_2",
    "input_blocks_0_0": "conv_in", "out_2": "conv_out",
}  # fmt: skip


@dataclass
class LowRank:
    """The two matrices of a layer, and what their product is scaled by, before it is divided by their rank."""

    down: Tensor
    up: Tensor
    alpha: float

    @property
    def rank(self) -> int:
        """The rank of the product."""
        return int(self.down.shape[0])


def find_file(source: StrPath, weight_name: str | None) -> Path:
    """The file of adaptations in a folder, or the file itself."""
    path = Path(source).expanduser()
    if path.is_dir():
        there = sorted(p.name for p in path.glob("*.safetensors"))
        name = weight_name or (FILE if FILE in there or len(there) != 1 else there[0])
        path = path / name
        if not path.is_file():
            raise FileNotFoundError(f"{path} is not there; the folder has {', '.join(there) or 'no safetensors'}.")
    if not path.is_file():
        raise FileNotFoundError(f"{source} is no file or folder of adaptations here; download it and give its path.")
    return path


def read_file(path: Path, layers: Mapping[str, Iterable[str]]) -> dict[str, dict[str, LowRank]]:
    """The adaptations in a file by part and path; `layers` are the paths that each part's network has."""
    source = open_weights(path)
    found: dict[tuple[str, str], dict[str, Tensor]] = {}
    flat = {part: {plain(p).replace(".", "_"): p for p in paths} for part, paths in layers.items()}
    dotted = {part: {plain(p): p for p in paths} for part, paths in layers.items()}
    strange = []
    for name in source.names():
        end = next((e for e in _ENDS if re.search(e[0], name)), None)
        if end is None:
            strange.append(name)
            continue
        part, layer = _place(re.sub(end[0], "", name))
        known = flat if name.startswith("lora_") else dotted
        path_there = known.get(part, {}).get(layer)
        if path_there is None:
            strange.append(name)
            continue
        found.setdefault((part, path_there), {})[end[1]] = source.tensor(name)
    if strange:
        raise ValueError(
            f"{path}: {len(strange)} entries are of no adaptation that is known here, such as {strange[0]!r}; pairs of "
            "LoRA for layers of this pipeline's networks are."
        )
    told = json.loads(source.metadata.get("lora_adapter_metadata") or "{}")
    made: dict[str, dict[str, LowRank]] = {}
    for (part, layer), pair in found.items():
        if "down" not in pair or "up" not in pair:
            raise ValueError(f"{path}: {part}.{layer} has only one of its two matrices.")
        alpha = float(pair["alpha"]) if "alpha" in pair else _told_alpha(path, told, part, layer, pair["down"].shape[0])
        made.setdefault(part, {})[layer] = LowRank(pair["down"], pair["up"], alpha)
    return made


def _told_alpha(path: Path, told: Mapping[str, Any], part: str, layer: str, rank: int) -> float:
    """What a layer's product is scaled by, as a file's header says; the rank where it says nothing."""
    if told.get(f"{part}.use_dora"):
        raise ValueError(f"{path}: the adaptation of {part} is a DoRA, which is not read here.")
    alpha = told.get(f"{part}.lora_alpha", rank)
    for pattern, value in (told.get(f"{part}.alpha_pattern") or {}).items():
        if re.fullmatch(rf"(.*\.)?({plain(pattern)})", plain(layer)):
            alpha = value
    return float(alpha) * (math.sqrt(rank) if told.get(f"{part}.use_rslora") else 1.0)


def plain(path: str) -> str:
    """A layer's path as files have it: without the model around a reader of texts.

    >>> from votive.models.diffusion.lora_files import plain
    >>> plain("text_model.encoder.layers.0.mlp.fc1")
    'encoder.layers.0.mlp.fc1'
    """
    return path.removeprefix("text_model.")


def _place(name: str) -> tuple[str, str]:
    """The part and the layer of a name without its end."""
    if name.startswith("lora_"):
        prefix = next((p for p in sorted(_KOHYA, key=len, reverse=True) if name.startswith(f"{p}_")), "")
        layer = name.removeprefix(f"{prefix}_")
        part = _KOHYA.get(prefix, prefix)
        return part, _renamed(layer) if part == "unet" else layer.removeprefix("text_model_")
    part, _, layer = name.partition(".")
    if part not in PARTS:
        part, layer = "unet", name
    # The first files name the processor of an attention in place of its layers.
    layer = re.sub(r"\.processor\.(to_[qkv])_lora$", r".\1", layer)
    layer = re.sub(r"\.processor\.to_out_lora$", ".to_out.0", layer)
    return part, plain(layer)


def _renamed(layer: str) -> str:
    """A layer of the first code by diffusers' name, with underscores; others as they are."""
    for old, new in _ENDS_OF_NET.items():
        if layer == old:
            return new
    match = re.match(r"(input|output)_blocks_(\d+)_(\d+)_(.*)$", layer)
    if match is None:
        match = re.match(r"middle_block_(\d+)_(.*)$", layer)
        if match is None:
            return layer
        place, rest = int(match[1]), match[2]
        inner = "attentions_0" if place == 1 else f"resnets_{place // 2}"
        return f"mid_block_{inner}_{_inner(rest)}"
    side, block, place, rest = match[1], int(match[2]), int(match[3]), match[4]
    if side == "input":
        at = f"down_blocks_{(block - 1) // 3}"
        if rest == "op":
            return f"{at}_downsamplers_0_conv"
        layer_at = (block - 1) % 3
    else:
        at, layer_at = f"up_blocks_{block // 3}", block % 3
        if rest == "conv":
            return f"{at}_upsamplers_0_conv"
    return f"{at}_{'attentions' if place else 'resnets'}_{layer_at}_{_inner(rest)}"


def _inner(rest: str) -> str:
    return next((new for old, new in _RESNET if rest == old), rest)
