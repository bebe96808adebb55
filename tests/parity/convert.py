"""Makes torch's and the subject's copy of the arguments in one OpInfo sample. Runs nothing."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import torch

from .resolve import translate
from .subject import Subject, Unsupported, torch_to_numpy

_NUMPY_MAX_DIMS = 64  # NPY_MAXDIMS of NumPy 2


@dataclass
class Call:
    """Arguments of one call."""

    input: Any
    args: tuple
    kwargs: dict

    def run(self, fn: Any, **more: Any) -> Any:
        return fn(self.input, *self.args, **self.kwargs, **more)


@dataclass
class Twin:
    """Both sides' private copies of one sample: same values, strides, offsets and aliasing."""

    subject: Subject
    grad: bool = False
    torch: Call = field(init=False)
    votive: Call = field(init=False)
    tensors: list[tuple[torch.Tensor, Any]] = field(default_factory=list)
    leaves: list[tuple[torch.Tensor, Any]] = field(default_factory=list)
    blocks: list[tuple[np.ndarray, torch.Tensor, np.ndarray]] = field(default_factory=list)
    _seen: dict[int, tuple[torch.Tensor, Any]] = field(default_factory=dict)
    _storages: dict[tuple, tuple] = field(default_factory=dict)

    @classmethod
    def of(cls, subject: Subject, sample: Any, grad: bool = False) -> Twin:
        """Copy a SampleInput for both sides, with requires_grad if asked; raises `Unsupported`."""
        twin = cls(subject, grad)
        parts = [twin.pair(part) for part in (sample.input, sample.args, sample.kwargs)]
        twin.torch, twin.votive = (Call(*side) for side in zip(*parts, strict=True))
        return twin

    def pair(self, value: Any) -> tuple[Any, Any]:
        """The value as torch takes it, and as the subject takes it."""
        if isinstance(value, torch.Tensor):
            return self._tensor(value)
        if value is None or type(value) in (bool, int, float, complex, str, type(...), range):
            return value, value
        if isinstance(value, dict):
            pairs = [(key, *self.pair(item)) for key, item in value.items()]
            return {k: t for k, t, _ in pairs}, {k: v for k, _, v in pairs}
        if isinstance(value, torch.Size):
            return value, tuple(value)
        if type(value) in (list, tuple):
            pairs = [self.pair(item) for item in value]
            return type(value)(t for t, _ in pairs), type(value)(v for _, v in pairs)
        if isinstance(value, slice):
            ends = [self.pair(end) for end in (value.start, value.stop, value.step)]
            return slice(*(t for t, _ in ends)), slice(*(v for _, v in ends))
        if isinstance(value, (np.generic, np.ndarray)):
            return value, value.copy()
        return value, self._torch_object(value)

    def _torch_object(self, value: Any) -> Any:
        if isinstance(value, (torch.dtype, torch.memory_format, torch.layout)):
            name = str(value).removeprefix("torch.")
            found = self.subject.find(name)
            if found is None:
                raise Unsupported(f"{self.subject.name} has no {name}")
            return found
        if isinstance(value, torch.device):
            if value.type != "cpu":
                raise Unsupported(f"device {value}")
            return self.subject.root.device(str(value))
        if isinstance(value, torch.Generator):
            return self.subject.root.Generator().manual_seed(value.initial_seed())
        if isinstance(value, torch.nn.PairwiseDistance):
            distance = self.subject.find("nn.functional.pairwise_distance")
            return partial(distance, p=value.norm, eps=value.eps, keepdim=value.keepdim)
        if callable(value) and not isinstance(value, torch.nn.Module):
            found = translate(self.subject, value)
            if found is not None:
                return found
        raise Unsupported(f"argument of type {type(value).__name__}")

    def _tensor(self, t: torch.Tensor) -> tuple[torch.Tensor, Any]:
        if id(t) in self._seen:
            return self._seen[id(t)][1]
        if t.layout != torch.strided or t.is_quantized or t.device.type != "cpu" or t.is_nested:
            raise Unsupported(f"{t.layout}, {t.dtype}, {t.device} tensor")
        if t.ndim > _NUMPY_MAX_DIMS:
            raise Unsupported(f"{t.ndim} dimensions")
        wants_grad = self.grad and t.requires_grad
        plain = t.detach().resolve_conj().resolve_neg()
        flat, array, base = self._storage(plain)
        theirs = flat.as_strided(plain.shape, plain.stride(), plain.storage_offset())
        if plain.numel() == array.size and theirs.stride() == flat.view(plain.shape).stride():
            ours = self.subject.from_numpy(array.reshape(plain.shape))
        elif (view := self.subject.find("as_strided")) is not None:
            ours = view(base, tuple(plain.shape), plain.stride(), plain.storage_offset())
        else:
            raise Unsupported(f"{self.subject.name} has no as_strided")
        both = theirs.requires_grad_(wants_grad), ours.requires_grad_() if wants_grad else ours
        self._seen[id(t)] = (t, both)  # held, so that its id names no other tensor
        self.tensors.append(both)
        if wants_grad:
            self.leaves.append(both)
        return both

    def _storage(self, t: torch.Tensor) -> tuple[torch.Tensor, np.ndarray, Any]:
        storage = t.untyped_storage()
        key = storage.data_ptr() or id(t), t.dtype
        if key not in self._storages:
            whole = torch.empty(0, dtype=t.dtype).set_(storage)
            original = torch_to_numpy(whole)
            array = original.copy()
            copy = whole.clone()
            self.blocks.append((original, copy, array))
            self._storages[key] = copy, array, self.subject.from_numpy(array)
        return self._storages[key]

    def overwritten(self) -> tuple[bool, bool]:
        """Whether torch, and whether the subject, changed an argument's memory."""
        before = [original.tobytes() for original, _, _ in self.blocks]
        theirs = [torch_to_numpy(copy).tobytes() for _, copy, _ in self.blocks]
        return theirs != before, [array.tobytes() for _, _, array in self.blocks] != before
