"""Models over several devices: which module lies where, and inputs that follow. Knows modules by their names only.

A map names modules and devices, as `device_map` of transformers does; a module takes the entry with the longest name
it lies below. What is "on the disk" stays mapped from its file, computes on the CPU and is read when it is used.
"""

from __future__ import annotations

import copy
import math
import re
import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import votive
from votive import nn

from ..tensor import Tensor

if TYPE_CHECKING:
    from .pretrained import PreTrainedModel

AUTOMATIC = ("auto", "balanced", "balanced_low_0", "sequential")
_UNITS = {"": 1, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}


def device_of(place: object) -> votive.device:
    """The device that an entry of a map means: a number is that of a GPU, "disk" the CPU.

    >>> from votive.models.placement import device_of
    >>> device_of("disk"), device_of("cpu")
    (device(type='cpu'), device(type='cpu'))
    """
    if isinstance(place, int):
        return votive.device("cuda", place)
    return votive.device("cpu") if place == "disk" else votive.device(str(place))


def bytes_of(size: int | str) -> int:
    """How many bytes a limit means, such as 1000, "10GB" or "2GiB".

    >>> from votive.models.placement import bytes_of
    >>> bytes_of("2GiB") == 2 << 30, bytes_of("1.5MB")
    (True, 1500000)
    """
    found = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]I?)?B?\s*", str(size).upper())
    if found is None:
        raise ValueError(f"max_memory: {size!r} is no size; write bytes, or text such as '10GB' or '2GiB'.")
    return int(float(found[1]) * _UNITS[found[2] or ""])


def place(model: PreTrainedModel, device_map: Mapping[str, Any]) -> PreTrainedModel:
    """Move the modules of a model to the devices that a map names; inputs follow them from then on.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> model = votive.models.placement.place(model, {"model": "cpu", "lm_head": "disk"})
    >>> model.hf_device_map
    {'model': 'cpu', 'lm_head': 'disk'}
    """
    named = dict(model.named_modules())
    unknown = sorted(name for name in device_map if name not in named and not _holds(model, name))
    if unknown:
        known = ", ".join(sorted(name for name, _ in blocks(model))[:6])
        raise ValueError(f"device_map: the model has no module {unknown[0]!r}; it has {known} and others.")
    entries = _tied_together(model, {name: place for name, place in device_map.items() if name in named})
    homeless = [name for name, _ in model.named_parameters() if _entry(name, device_map) is None]
    if homeless:
        raise ValueError(
            f"device_map: no entry says where {homeless[0]!r}{' and others' if len(homeless) > 1 else ''} should be; "
            "an entry '' is for all that no other names."
        )
    # Shorter names first: what lies below with a name of its own goes its own way afterwards.
    for name in sorted(entries, key=len):
        named[name].to(device_of(entries[name]))
    devices = {device_of(place) for place in entries.values()}
    model.__dict__["hf_device_map"] = dict(entries)
    if len(devices) > 1:
        parts = dict.fromkeys([*(name for name, _ in blocks(model)), *(n for n in entries if _inside_block(n))])
        for name in parts:
            _follow(named[name], back=_inside_block(name))
        _follow(model, back=True)
    return model


def automatic(
    model: PreTrainedModel, kind: str = "auto", max_memory: Mapping[Any, int | str] | None = None
) -> dict[str, Any]:
    """A map by what fits: "auto" and "balanced" give each GPU an even part, "sequential" fills one after the other.

    What no GPU has room for is on the CPU, and above its limit on the disk. Without a GPU that is all.

    >>> config = votive.models.LlamaConfig(vocab_size=10, hidden_size=8, intermediate_size=16,
    ...     num_hidden_layers=2, num_attention_heads=2)
    >>> model = votive.models.LlamaForCausalLM(config)
    >>> votive.models.placement.automatic(model, max_memory={"cpu": 4000})
    {'': 'cpu', 'model.layers.1': 'disk', 'model.norm': 'disk', 'lm_head': 'disk'}
    """
    parts = blocks(model)
    seen: set[int] = set()
    sizes = {name: _size(module, seen) for name, module in parts}
    rooms = _rooms(max_memory, kind, sum(sizes.values()), max(sizes.values(), default=0))
    found: dict[str, Any] = {"": rooms[0][0]}
    at, left = 0, rooms[0][1]
    for name, _ in parts:
        while sizes[name] > left and at < len(rooms) - 1:
            at += 1
            left = rooms[at][1]
        left -= sizes[name]
        # What has no weights is where the first is, and needs no entry.
        if rooms[at][0] != found[""] and sizes[name]:
            found[name] = rooms[at][0]
    return found


def blocks(model: nn.Module, prefix: str = "") -> list[tuple[str, nn.Module]]:
    """What is never spread: the layers of a model, and what stands beside them, in their order.

    >>> net = votive.nn.ModuleDict({"stack": votive.nn.ModuleList([votive.nn.Linear(1, 1)]),
    ...     "head": votive.nn.Linear(1, 1)})
    >>> [name for name, _ in votive.models.placement.blocks(net)]
    ['stack.0', 'head']
    """
    out: list[tuple[str, nn.Module]] = []
    for name, child in model.named_children():
        path = f"{prefix}{name}"
        if isinstance(child, nn.ModuleList):
            out += [(f"{path}.{i}", layer) for i, layer in enumerate(child)]
        elif any(isinstance(m, nn.ModuleList) for m in child.modules()):
            out += blocks(child, f"{path}.")
        else:
            out.append((path, child))
    return out


def _rooms(max_memory: Mapping[Any, int | str] | None, kind: str, total: int, largest: int) -> list[tuple[Any, float]]:
    """Places and how many bytes each takes, in the order in which they are filled."""
    limits = {int(k) if str(k).isdigit() else str(k): bytes_of(v) for k, v in (max_memory or {}).items()}
    known = {*range(votive.cuda.device_count()), "cpu", "disk"}
    unknown = [name for name in limits if name not in known]
    if unknown:
        raise ValueError(f"max_memory: there is no device {unknown[0]!r}; there are {sorted(map(str, known))}.")
    gpus: list[tuple[Any, float]] = []
    for i in range(votive.cuda.device_count()):
        # Some is left for what is computed.
        room = limits.get(i, 0 if limits and "cpu" not in limits else int(0.9 * votive.cuda.mem_get_info(i)[0]))
        gpus.append((i, room))
    if kind != "sequential" and len(gpus) > 1:
        share = total / len(gpus) + largest
        gpus = [(i, min(room, share)) for i, room in gpus]
    return [*gpus, ("cpu", limits.get("cpu", math.inf)), ("disk", math.inf)]


def _size(module: nn.Module, seen: set[int]) -> int:
    """Bytes of the parameters that were not counted before."""
    fresh = [p for p in module.parameters() if id(p) not in seen]
    seen.update(id(p) for p in fresh)
    return sum(p.numel() * p.element_size() for p in fresh)


def _holds(model: nn.Module, name: str) -> bool:
    """Whether a map may name this parameter or buffer."""
    return name in model.state_dict()


def _entry(name: str, device_map: Mapping[str, Any]) -> str | None:
    """The longest name of a map that another lies below."""
    fitting = [key for key in device_map if not key or name == key or name.startswith(f"{key}.")]
    return max(fitting, key=len, default=None)


def _tied_together(model: PreTrainedModel, entries: dict[str, Any]) -> dict[str, Any]:
    """The same with modules that share a parameter in one place."""
    prefix, part = model._tying()
    for name, source in part.ties().items():
        head, first = (prefix + path.rpartition(".")[0] for path in (name, source))
        here, there = _entry(head, entries), _entry(first, entries)
        if here is None or there is None or device_of(entries[here]) == device_of(entries[there]):
            continue
        warnings.warn(
            f"device_map: {head} shares its weight with {first}, so it goes to the same device.", stacklevel=4
        )
        entries = {**entries, head: entries[there]}
    return entries


def _inside_block(name: str) -> bool:
    """Whether a name is that of a part of one layer of many."""
    return any(part.isdigit() for part in name.split(".")[:-1])


def _follow(module: nn.Module, *, back: bool) -> None:
    hook = Follow()
    module.register_forward_pre_hook(hook, with_kwargs=True)
    if back:
        module.register_forward_hook(hook.back)


class Follow:
    """A hook that brings what a module is called with to where its parameters are, and its result back.

    >>> layer, hook = votive.nn.Linear(2, 1), votive.models.placement.Follow()
    >>> hook(layer, (votive.ones(1, 2),), {})[0][0].shape, hook.home
    (votive.Size([1, 2]), device(type='cpu'))
    """

    home: votive.device | None = None  # where the caller has its values

    def __call__(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any]:
        first, own = next(_tensors((args, kwargs)), None), next(module.parameters(), None)
        self.home = None if first is None else first.device
        return (args, kwargs) if own is None else (moved(args, own.device), moved(kwargs, own.device))

    def back(self, module: nn.Module, args: tuple[Any, ...], result: Any) -> Any:
        """What the caller gets: the result, where it has its values."""
        return result if self.home is None else moved(result, self.home)


def _tensors(value: object) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, (tuple, dict)):
        for part in value.values() if isinstance(value, dict) else value:
            yield from _tensors(part)


def moved(value: Any, device: votive.device) -> Any:
    """A value with all tensors in it on a device; itself where nothing is elsewhere.

    Lists stay, as layers add to them, and so do caches, each of whose layers is where its keys are.

    >>> pair = (votive.ones(1), {"mask": None})
    >>> votive.models.placement.moved(pair, votive.device("cpu")) is pair
    True
    """
    if isinstance(value, Tensor):
        return value if value.device == device else value.to(device)
    if isinstance(value, tuple):
        parts = [moved(part, device) for part in value]
        if all(a is b for a, b in zip(parts, value, strict=True)):
            return value
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, dict) and type(value) is dict:
        made = {key: moved(part, device) for key, part in value.items()}
        return value if all(made[key] is value[key] for key in made) else made
    if isinstance(value, (nn.Module, list, type)) or hasattr(value, "get_seq_length") or not hasattr(value, "__dict__"):
        return value
    # Records such as masks, results, and angles that were looked up.
    changes = {name: moved(part, device) for name, part in vars(value).items()}
    changes = {name: part for name, part in changes.items() if part is not vars(value)[name]}
    if not changes:
        return value
    out = copy.copy(value)
    for name, part in changes.items():
        object.__setattr__(out, name, part)
    return out
