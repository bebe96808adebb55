"""Coders in files: SAELens' folders (cfg.json and sae_weights.safetensors) and Gemma Scope's params.npz.

Knows formats, no model. What a file does not say in a way that is understood is refused: a coder that computes
something else than its authors' looks right and is not.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import votive

from ...io import FileFormatError, WeightSource, open_weights
from ...io.npy import savez
from ...io.safetensors import save_file
from ...serialization.atomic import replacing
from ...tensor import Tensor
from ..site_names import translated
from .coder import SAE
from .config import SAEConfig

CFG, WEIGHTS = "cfg.json", "sae_weights.safetensors"
_LONGEST = 1 << 20
# What architectures of SAELens are here: the kind, and whether it is a transcoder and has a way around.
_ARCHITECTURES = {
    "standard": ("relu", False, False),
    "topk": ("topk", False, False),
    "jumprelu": ("jumprelu", False, False),
    "gated": ("gated", False, False),
    "transcoder": ("relu", True, False),
    "skip_transcoder": ("relu", True, True),
    "jumprelu_transcoder": ("jumprelu", True, False),
    "jumprelu_skip_transcoder": ("jumprelu", True, True),
}
_NAMES = {v: k for k, v in _ARCHITECTURES.items()}
# What would change the result and is not done here.
_ONLY = {
    "normalize_activations": "none",
    "reshape_activations": "none",
    "finetuning_scaling_factor": False,
    "rescale_acts_by_decoder_norm": False,
}


def load(name: str | os.PathLike[str], part: str = "sae") -> SAE:
    """A coder of a bundled model, or from a folder of SAELens or a params.npz of Gemma Scope.

    Of the bundled "tales", `part` is "sae" (of the residual stream) or "transcoder" (of an MLP).

    >>> sae = votive.glass.features.load("tales")
    >>> sae.config.site, sae.config.kind
    ('model.layers.4', 'topk')
    """
    from ...models.checkpoint import BUNDLED

    path = Path(name)
    if not path.exists() and path.name == str(name) and (BUNDLED / path.name).is_dir():
        path = BUNDLED / path.name / "features" / part
        if not path.is_dir():
            there = sorted(p.name for p in path.parent.iterdir()) if path.parent.is_dir() else []
            raise FileNotFoundError(f"load: {name} has no {part!r}; there is {', '.join(there) or 'nothing'}.")
    elif part != "sae":
        raise ValueError("load: part= is for bundled models; a file or folder holds one coder.")
    return load_gemma_scope(path) if path.suffix == ".npz" else load_saelens(path)


# --- SAELens --------------------------------------------------------------------------------------


def load_saelens(folder: str | os.PathLike[str], *, dtype: votive.dtype = votive.float32) -> SAE:
    """A coder from a folder with cfg.json and sae_weights.safetensors.

    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> sae = votive.glass.features.SAE(4, 8, "jumprelu", site="layers.1")
    >>> votive.glass.features.save_saelens(sae, folder)
    >>> again = votive.glass.features.load_saelens(folder)
    >>> x = votive.randn(3, 4)
    >>> votive.allclose(again(x), sae(x), atol=1e-6), again.config.site
    (True, 'layers.1')
    """
    folder = Path(folder)
    cfg = _read_cfg(folder / CFG)
    try:
        config = _config(cfg)
    except (TypeError, ValueError) as e:
        raise FileFormatError(f"load_saelens: {folder / CFG}: {e}") from None
    with open_weights(folder / WEIGHTS) as source:
        return _filled(config, source, dtype, f"load_saelens: {folder / WEIGHTS}")


def save_saelens(sae: SAE, folder: str | os.PathLike[str], *, dtype: votive.dtype | None = None) -> None:
    """Write a coder as SAELens does; scales are folded in, and a batch's top-k becomes a threshold, as there.

    What SAELens has no name for (crosscoders, prefixes, a transcoder with top-k) stands in cfg.json under
    "votive", and is read back here.

    >>> import json, pathlib, tempfile
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> votive.glass.features.save_saelens(votive.glass.features.SAE(4, 8, "topk", k=2), folder)
    >>> json.loads((folder / "cfg.json").read_text())["architecture"]
    'topk'
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    tensors, config = _tensors(sae)
    kept = sae.W_enc.dtype if dtype is None else dtype
    with votive.no_grad():
        tensors = {n: t.detach().to(device="cpu", dtype=kept).contiguous() for n, t in tensors.items()}
    cfg = _cfg(config, kept)
    with replacing(folder / CFG) as f:
        f.write(json.dumps(cfg, indent=1).encode())
    save_file(tensors, folder / WEIGHTS)


def _tensors(sae: SAE) -> tuple[dict[str, Tensor], SAEConfig]:
    """The weights with scales folded in, under SAELens' names."""
    c = sae.config
    sae.check_scales()
    with votive.no_grad():
        found = {
            "W_enc": sae.W_enc * sae.scale_in,
            "W_dec": sae.W_dec / sae.scale_out,
            "b_dec": sae.b_dec / sae.scale_out,
        }
        names = ("b_gate", "b_mag", "r_mag") if c.kind == "gated" else ("b_enc",)
        found |= {n: getattr(sae, n) for n in names}
        if c.kind == "jumprelu":
            found["threshold"] = sae.log_threshold.exp()
        if c.kind == "batchtopk":
            found["threshold"] = sae.threshold.clamp(min=1e-30).expand(c.d_sae)
            c = SAEConfig.from_dict({**c.to_dict(), "kind": "jumprelu", "k": None})
        if c.skip:
            found["W_skip"] = sae.W_skip * (sae.scale_in / sae.scale_out)
    return found, c


def _cfg(c: SAEConfig, dtype: votive.dtype) -> dict[str, Any]:
    name = _NAMES.get((c.kind, c.role == "transcoder", c.skip))
    cfg: dict[str, Any] = {
        "architecture": name if name and c.role != "crosscoder" else f"votive_{c.role}",
        "d_in": c.d_in,
        "d_sae": c.d_sae,
        "dtype": str(dtype).removeprefix("votive."),
        "device": "cpu",
        "apply_b_dec_to_input": bool(c.center),
        "normalize_activations": "none",
        "reshape_activations": "none",
        "metadata": {"model_name": c.model, "hook_name": c.site, "hook_name_out": c.writes},
        "votive": c.to_dict(),
    }
    if c.kind == "topk":
        cfg |= {"k": c.k, "rescale_acts_by_decoder_norm": False}
    if c.d_out is not None:
        cfg["d_out"] = c.d_out
    return cfg


def _read_cfg(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise FileNotFoundError(f"load_saelens: there is no {path}.")
    if path.stat().st_size > _LONGEST:
        raise FileFormatError(f"load_saelens: {path} is too long for a configuration.")
    try:
        found = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as e:
        raise FileFormatError(f"load_saelens: {path} is no JSON: {e}.") from None
    if not isinstance(found, dict):
        raise FileFormatError(f"load_saelens: {path} holds no object.")
    return found


def _config(cfg: Mapping[str, Any]) -> SAEConfig:
    """The configuration that a cfg.json describes, of SAELens' versions before and after 6."""
    if isinstance(cfg.get("votive"), dict):
        return SAEConfig.from_dict(cfg["votive"])
    for name, only in _ONLY.items():
        given = cfg.get(name, only)
        if given not in (only, None):
            raise ValueError(f"{name} is {given!r}, which would be ignored here; fold it in before.")
    kwargs = cfg.get("activation_fn_kwargs") or {}
    architecture = cfg.get("architecture", "standard")
    if architecture == "standard" and str(cfg.get("activation_fn_str", cfg.get("activation_fn", "relu"))) == "topk":
        architecture = "topk"
    if architecture not in _ARCHITECTURES:
        raise ValueError(f"architecture {architecture!r} is unknown; known are {', '.join(_ARCHITECTURES)}.")
    kind, transcoder, skip = _ARCHITECTURES[architecture]
    about = cfg.get("metadata") or cfg
    if not isinstance(about, Mapping) or not isinstance(kwargs, Mapping):
        raise ValueError("metadata and activation_fn_kwargs must be objects.")
    return SAEConfig(
        cfg.get("d_in"),  # type: ignore[arg-type]  # it says what came if it is none
        cfg.get("d_sae"),  # type: ignore[arg-type]
        kind,
        k=cfg.get("k", kwargs.get("k")) if kind == "topk" else None,
        d_out=cfg.get("d_out", cfg.get("d_in")) if transcoder else None,
        skip=skip,
        center=bool(cfg.get("apply_b_dec_to_input", True)) and not transcoder,
        site=address_of(str(about.get("hook_name") or "")),
        writes=address_of(str(about.get("hook_name_out") or cfg.get("hook_name_out") or "")),
        model=str(about.get("model_name") or ""),
    )


def address_of(hook: str) -> str:
    """Where a hook of TransformerLens is in a decoder here; what has no such place stays as it is.

    >>> from votive.glass.features.formats import address_of
    >>> address_of("blocks.3.hook_resid_post"), address_of("blocks.3.hook_resid_pre")
    ('layers.3.resid_post', 'layers.3.resid_pre')
    """
    first, _, rest = hook.partition(".")
    number, _, name = rest.partition(".")
    if first != "blocks" or not number.isdigit():
        return hook
    if name == "ln2.hook_normalized":
        return f"layers.{number}.mlp:in"
    # The rest are called alike in every family; some are not what a module of the same name gives.
    return translated(hook)


# --- Gemma Scope ----------------------------------------------------------------------------------


def load_gemma_scope(
    path: str | os.PathLike[str], *, site: str = "", writes: str = "", transcoder: bool = False, model: str = ""
) -> SAE:
    """A coder from Gemma Scope's params.npz: JumpReLU, its bias not taken from what is read.

    The file says neither where its values are, nor whether it is a transcoder of equal widths: say it here.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/params.npz"
    >>> votive.glass.features.save_gemma_scope(votive.glass.features.SAE(4, 8, "jumprelu", center=False), path)
    >>> votive.glass.features.load_gemma_scope(path, site="layers.20").config.kind
    'jumprelu'
    """
    with open_weights(path) as source:
        label = f"load_gemma_scope: {path}"
        enc, dec = _shape(source, "W_enc", label), _shape(source, "W_dec", label)
        if len(enc) != 2 or len(dec) != 2 or 0 in (*enc, *dec):
            raise FileFormatError(f"{label}: W_enc {enc} and W_dec {dec} are not the matrices of a coder.")
        wider = transcoder or dec[1] != enc[0]
        config = SAEConfig(
            enc[0],
            enc[1],
            "jumprelu",
            d_out=dec[1] if wider else None,
            center=False,
            site=site,
            writes=writes,
            model=model,
            skip=False,
        )
        return _filled(config, source, votive.float32, label)


def save_gemma_scope(sae: SAE, path: str | os.PathLike[str]) -> None:
    """Write a JumpReLU (or a batch's top-k) as Gemma Scope does; what that format cannot say is refused.

    >>> import tempfile
    >>> path = tempfile.mkdtemp() + "/params.npz"
    >>> votive.glass.features.save_gemma_scope(votive.glass.features.SAE(2, 4, "jumprelu", center=False), path)
    >>> sorted(votive.io.open_weights(path).names())
    ['W_dec', 'W_enc', 'b_dec', 'b_enc', 'threshold']
    """
    tensors, c = _tensors(sae)
    if c.kind != "jumprelu" or c.skip or c.role == "crosscoder":
        raise ValueError(
            f"save_gemma_scope: the format holds JumpReLU coders, not {c.kind} {c.role}; use save_saelens."
        )
    if c.center:
        # (x - b) W + e is x W + (e - b W).
        tensors["b_enc"] = tensors["b_enc"] - tensors["b_dec"] @ tensors["W_enc"]
    savez(path, **{n: t.detach().float().cpu() for n, t in tensors.items()})


# --- weights --------------------------------------------------------------------------------------


def _shape(source: WeightSource, name: str, label: str) -> tuple[int, ...]:
    if name not in source.names():
        raise FileFormatError(f"{label}: there is no {name}; there are {', '.join(sorted(source.names())[:8])}.")
    return tuple(source.info(name).shape)


def _wanted(c: SAEConfig) -> dict[str, tuple[int, ...]]:
    shapes: dict[str, tuple[int, ...]] = {"W_enc": (c.reads, c.d_sae), "W_dec": (c.d_sae, c.gives), "b_dec": (c.gives,)}
    names = ["b_gate", "b_mag", "r_mag"] if c.kind == "gated" else ["b_enc"]
    if c.kind in ("jumprelu", "batchtopk"):
        names.append("threshold")
    shapes |= dict.fromkeys(names, (c.d_sae,))
    if c.skip:
        shapes["W_skip"] = (c.gives, c.reads)
    return shapes


def _filled(config: SAEConfig, source: WeightSource, dtype: votive.dtype, label: str) -> SAE:
    """A coder with the weights of a file, whose shapes are compared before anything is made."""
    if config.kind == "batchtopk":
        raise FileFormatError(f"{label}: a batch's top-k is stored as jumprelu, with its threshold.")
    wanted = _wanted(config)
    for name, shape in wanted.items():
        there = _shape(source, name, label)
        if there != shape:
            raise FileFormatError(f"{label}: {name} is {there}, but the configuration says {shape}.")
    unknown = sorted(set(source.names()) - set(wanted))
    if unknown:
        raise FileFormatError(f"{label}: {', '.join(unknown)} would be ignored; a {config.kind} coder has none.")
    with votive.no_grad():
        tensors = {n: source.tensor(n).to(dtype) for n in wanted}
        threshold = tensors.pop("threshold", None)
        for name, t in tensors.items():
            if not bool(t.isfinite().all()):
                raise FileFormatError(f"{label}: {name} has numbers that are not finite.")
        sae = SAE(config).to(dtype)
        if threshold is not None:
            if not bool(((threshold >= 0) & threshold.isfinite()).all()):
                raise FileFormatError(f"{label}: thresholds must be finite and not negative.")
            tensors["log_threshold"] = threshold.clamp(min=math.exp(-80)).log()
        for name, t in tensors.items():
            getattr(sae, name).copy_(t)
    return sae.eval()
