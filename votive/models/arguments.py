"""What users of transformers pass to `from_pretrained`, in the words of this package.

What has a meaning here is honoured, what asks for something that is so anyway is taken, and the
rest is refused with what to do instead. Knows no files and no weights.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import votive

from ..core.similar import similar
from .placement import AUTOMATIC, device_of
from .quantizing import Quantization, quantization_of

# Passed on to where files are looked for.
PLACES = ("revision", "local_files_only", "subfolder", "token", "cache_dir", "force_download")
# Asked for in vain: the value with which nothing is asked, and what to do.
_REFUSED: dict[str, tuple[tuple[Any, ...], str]] = {
    "output_attentions": ((None, False), "pass output_attentions=True when you call the model"),
    "output_hidden_states": ((None, False), "pass output_hidden_states=True to the model's call"),
    "return_dict": ((None, True), "results are records and tuples at once: out[0], out.logits"),
    "tp_plan": ((None,), "layers are not cut; device_map spreads whole ones"),
    "tp_size": ((None,), "layers are not cut; device_map spreads whole ones"),
    "device_mesh": ((None,), "layers are not cut; device_map spreads whole ones"),
    "proxies": ((None,), "set the environment variable HTTPS_PROXY"),
    "state_dict": ((None,), "load the model and then call model.load_weights(source)"),
    "from_tf": ((None, False), "only weights of PyTorch, GGUF, NumPy and safetensors are read"),
    "from_flax": ((None, False), "only weights of PyTorch, GGUF, NumPy and safetensors are read"),
}
# Of no consequence here whatever they say: it is so, or cannot be. Weights are mapped from their files and read when
# they are used, so there is nothing to write elsewhere; code that comes with a model is never run.
_TAKEN = (
    *("low_cpu_mem_usage", "trust_remote_code", "resume_download", "weights_only"),
    *("offload_folder", "offload_state_dict", "offload_buffers"),
)
# All are the one kernel that sums as it goes, as FlashAttention does, and gives weights when they are asked for.
_ATTENTIONS = (None, "sdpa", "eager", "flash_attention_2", "flash_attention_3", "flex_attention")


@dataclass(frozen=True)
class Options:
    """What a call of `from_pretrained` asks for."""

    places: dict[str, Any]
    changes: dict[str, Any]  # of the configuration
    dtype: Any = None
    device: Any = None
    device_map: Any = None  # where there are several
    max_memory: dict[Any, int | str] | None = None
    strict: bool | None = None
    ignore_mismatched_sizes: bool = False
    variant: str | None = None
    use_safetensors: bool | None = None
    output_loading_info: bool = False
    dequantize: bool | None = None
    gguf_file: str | None = None
    use_cache: bool | None = None
    quantization: Quantization | None = None


def parse_options(op: str, options: dict[str, Any]) -> Options:
    """Sort the keyword arguments of `from_pretrained`; what is left are fields of a configuration.

    >>> from votive.models.arguments import parse_options
    >>> parse_options("Model.from_pretrained", {"torch_dtype": "float16", "num_labels": 3}).changes
    {'num_labels': 3}
    """
    rest = dict(options)
    for name in _TAKEN:
        rest.pop(name, None)
    for name, (harmless, advice) in _REFUSED.items():
        if name in rest:
            value = rest.pop(name)
            if not any(value is h for h in harmless):
                raise ValueError(f"{op}: {name}={value!r} is not supported; {advice}.")
    asked = rest.pop("attn_implementation", None)
    for attention in asked.values() if isinstance(asked, dict) else [asked]:
        if attention not in _ATTENTIONS:
            raise ValueError(
                f"{op}: attn_implementation={attention!r} is not known; leave it out: attention is "
                "always one fused kernel, and gives weights when they are asked for."
            )
    rest.setdefault("token", rest.pop("use_auth_token", None))
    places = {name: rest.pop(name) for name in PLACES if name in rest}
    own = {f.name: rest.pop(f.name) for f in fields(Options) if f.name in rest}
    own["dtype"] = _dtype(op, own.get("dtype"), rest.pop("torch_dtype", None))
    own["device"], own["device_map"] = _devices(op, own.get("device"), own.pop("device_map", None))
    wanted = (rest.pop(name, None) for name in ("quantization_config", "load_in_8bit", "load_in_4bit"))
    own["quantization"] = quantization_of(op, *wanted)
    return Options(places=places, changes=rest, **own)


def _dtype(op: str, dtype: Any, old: Any) -> Any:
    if dtype is not None and old is not None and str(dtype) != str(old):
        raise TypeError(f"{op}: dtype={dtype} and torch_dtype={old} differ; pass one of them.")
    dtype = old if dtype is None else dtype
    # torch's own types, for those who come from there.
    return str(dtype).removeprefix("torch.") if type(dtype).__module__ == "torch" else dtype


def _devices(op: str, device: votive.device | str | None, device_map: Any) -> tuple[Any, Any]:
    """The one device that a `device_map` means, or the map where it may be several."""
    if device_map is None:
        return device, None
    if device is not None:
        raise TypeError(f"{op}: pass device or device_map, not both.")
    if isinstance(device_map, dict):
        if len({str(place) for place in device_map.values()}) != 1:
            return None, device_map
        device_map = next(iter(device_map.values()))
    if device_map in AUTOMATIC:
        return (None, device_map) if votive.cuda.is_available() else ("cpu", None)
    return device_of(device_map), None


def changed(op: str, config: Any, changes: dict[str, Any]) -> Any:
    """A configuration with some of its fields changed; unknown ones are refused by name.

    >>> from votive.models.arguments import changed
    >>> changed("from_pretrained", votive.models.BertConfig(), {"num_labels": 3}).num_labels
    3
    """
    if not changes:
        return config
    values = config.to_dict()
    known = {f.name for f in fields(config)} - {"extra"} | set(config.extra) | {"label2id"}
    known |= set(config.head_fields)
    unknown = sorted(set(changes) - known)
    if unknown:
        near = similar(unknown[0], [*known, *_KNOWN], 1)
        raise TypeError(
            f"{op}: unexpected argument {unknown[0]!r}, which is no field of "
            f"{type(config).__name__} either" + (f"; did you mean {near[0]!r}?" if near else ".")
        )
    if "id2label" in changes:  # names count more than a number that was there before
        values.pop("num_labels", None)
    elif "num_labels" in changes and changes["num_labels"] != values.get("num_labels"):
        values.pop("id2label", None)
    return type(config).from_dict({**values, **changes})


_KNOWN = (
    *PLACES,
    *_REFUSED,
    *_TAKEN,
    *("attn_implementation", "torch_dtype", "quantization_config", "load_in_8bit", "load_in_4bit"),
    *(f.name for f in fields(Options) if f.name not in ("places", "changes", "quantization")),
)
