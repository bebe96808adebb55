"""Optimizers whose states take eight bits, with bitsandbytes' names and arguments. Knows rules by their classes."""

from __future__ import annotations

from typing import Any, ClassVar

from ..core import dtype as dt
from ..core.errors import UnsupportedError
from ..ops.registry import F
from ..tensor import Tensor
from .adam import Adam
from .adamw import AdamW
from .dynamic_map import decode, encode_, zeros
from .group_step import GroupOptimizer, State
from .lion import Lion
from .optimizer import Params
from .sgd import SGD

# Numbers whose states are float32 at a time, while a step is made.
_PART = 1 << 22
_FLOATS = (dt.float32, dt.bfloat16, dt.float16)


class EightBit(GroupOptimizer):
    """A rule whose states are kept in eight bits: `_kept` names them and says whether they have a sign.

    They are named as bitsandbytes does, `state1` and `state2`, with the scales of blocks of 256 in `absmax1` and
    `absmax2`. Parameters of fewer than `min_8bit_size` numbers keep states of float32.
    """

    _scales = False
    _kept: ClassVar[dict[str, bool]] = {}
    _begins = True  # whether a state begins as zeros; if not, the rule makes it

    def _start(self, p: Tensor, group: dict[str, Any]) -> State:
        if p.dtype not in _FLOATS:
            raise TypeError(f"{type(self).__name__}: parameters are float32, bfloat16 or float16, got {p.dtype}.")
        return {name: v for name, v in super()._start(p, group).items() if name not in self._kept}

    def _update(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        start = 0
        while start < len(params):
            stop, size = start + 1, params[start].numel()
            while stop < len(params) and size + params[stop].numel() <= _PART:
                size += params[stop].numel()
                stop += 1
            self._some(group, params[start:stop], grads[start:stop], states[start:stop])
            start = stop

    def _some(self, group: dict[str, Any], params: list[Tensor], grads: list[Tensor], states: list[State]) -> None:
        if params[0].dtype not in _FLOATS:
            raise TypeError(
                f"{type(self).__name__}: parameters are float32, bfloat16 or float16, got {params[0].dtype}."
            )
        wide = [self._opened(p, s) for p, s in zip(params, states)]
        # In float32 whatever the parameters are, as their states.
        ours = [F.to(p, dt.float32) for p in params]
        super()._update(group, ours, [F.to(g, dt.float32) for g in grads], wide)
        for p, mine, state, opened in zip(params, ours, states, wide):
            self._close(p, state, opened, group)
            if mine is not p:
                p.copy_(mine)

    def _opened(self, p: Tensor, state: State) -> State:
        """The state as the rule knows it."""
        found = {n: v for n, v in state.items() if not n.startswith(("state", "absmax"))}
        for i, (name, signed) in enumerate(self._kept.items(), 1):
            have = state.get(f"state{i}")
            if have is None:
                if self._begins:
                    found[name] = F.zeros(tuple(p.shape), dtype=dt.float32, device=p.device)
            elif have.dtype is dt.uint8:
                found[name] = decode(have, state[f"absmax{i}"], signed)
            else:
                found[name] = have
        return found

    def _close(self, p: Tensor, state: State, opened: State, group: dict[str, Any]) -> None:
        """Keep what the rule left, in eight bits where there are enough numbers."""
        for i, (name, signed) in enumerate(self._kept.items(), 1):
            made = opened.pop(name, None)
            if made is None:
                continue
            if p.numel() < group["min_8bit_size"]:
                state[f"state{i}"] = made
                continue
            if f"state{i}" not in state:
                state[f"state{i}"], state[f"absmax{i}"] = zeros(p, signed)
            encode_(state[f"state{i}"], state[f"absmax{i}"], made, signed)
        state.update(opened)


def _options(optimizer: EightBit, args: object, size: int, clipping: int, block_wise: bool, paged: bool) -> None:
    """Check what bitsandbytes takes; what would not be honoured is refused."""
    name = type(optimizer).__name__
    if args is not None:
        raise UnsupportedError(f"{name}: args= is not read; pass the options themselves.")
    if clipping != 100:
        raise UnsupportedError(f"{name}: percentile_clipping is not offered; use votive.nn.utils.clip_grad_norm_.")
    if not block_wise:
        raise UnsupportedError(f"{name}: one scale for a whole state is not offered; leave block_wise=True.")
    if not isinstance(size, int) or size < 0:
        raise ValueError(f"{name}: min_8bit_size is a number of elements, got {size!r}.")
    optimizer.defaults["min_8bit_size"] = size
    for group in optimizer.param_groups:
        group.setdefault("min_8bit_size", size)
        away = next((p for p in group["params"] if p.device.type != "cpu"), None)
        if paged and away is not None:
            raise UnsupportedError(
                f"{name}: is_paged keeps states in the host's memory, where those of parameters on the CPU are "
                f"anyway; a parameter is on {away.device}, whose states are not moved there. Leave it out."
            )


class Adam8bit(EightBit, Adam):
    """Adam whose running means are kept in eight bits: 2 bytes for each number instead of 8.

    Between steps the means are codes of a dynamic map with a scale for each 256 (Dettmers et al. 2022); steps are those
    of `Adam` in float32. Names and arguments are bitsandbytes'; what is not offered is refused by name.

    >>> w = votive.ones(64, 64, requires_grad=True)
    >>> opt = votive.optim.Adam8bit([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> w[0, :2], opt.state[w]["state1"].dtype, opt.state[w]["absmax1"].shape
    (tensor([0.9000, 0.9000], grad_fn=<WindowBackward0>), votive.uint8, votive.Size([16]))
    """

    _kept: ClassVar[dict[str, bool]] = {"exp_avg": True, "exp_avg_sq": False}
    _exact = ("state1", "state2", "absmax1", "absmax2")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        optim_bits: int = 32,
        args: object = None,
        min_8bit_size: int = 4096,
        percentile_clipping: int = 100,
        block_wise: bool = True,
        is_paged: bool = False,
    ) -> None:
        _plain_adam(self, amsgrad, optim_bits)
        super().__init__(params, lr, betas, eps, weight_decay)
        _options(self, args, min_8bit_size, percentile_clipping, block_wise, is_paged)


class AdamW8bit(EightBit, AdamW):
    """AdamW whose running means are kept in eight bits; see `Adam8bit`.

    >>> w = votive.ones(64, 64, requires_grad=True)
    >>> opt = votive.optim.AdamW8bit([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> float(w[0, 0]), opt.state[w]["state2"].dtype
    (0.8990000486373901, votive.uint8)
    """

    _kept: ClassVar[dict[str, bool]] = {"exp_avg": True, "exp_avg_sq": False}
    _exact = ("state1", "state2", "absmax1", "absmax2")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        optim_bits: int = 32,
        args: object = None,
        min_8bit_size: int = 4096,
        percentile_clipping: int = 100,
        block_wise: bool = True,
        is_paged: bool = False,
    ) -> None:
        _plain_adam(self, amsgrad, optim_bits)
        super().__init__(params, lr, betas, eps, weight_decay)
        _options(self, args, min_8bit_size, percentile_clipping, block_wise, is_paged)


def _plain_adam(optimizer: EightBit, amsgrad: bool, optim_bits: int) -> None:
    name = type(optimizer).__name__
    if amsgrad:
        raise ValueError(f"{name} does not support amsgrad=True")
    if optim_bits != 32:
        raise ValueError(f"{name} only supports optim_bits=32 (default value for compatibility)")


class Lion8bit(EightBit, Lion):
    """Lion whose momentum is kept in eight bits; see `Adam8bit`.

    >>> w = votive.ones(64, 64, requires_grad=True)
    >>> opt = votive.optim.Lion8bit([w], lr=0.1)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> round(float(w[0, 0]), 4), sorted(opt.state[w])
    (0.9, ['absmax1', 'state1'])
    """

    _kept: ClassVar[dict[str, bool]] = {"exp_avg": True}
    _exact = ("state1", "absmax1")

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-4,
        betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0,
        args: object = None,
        min_8bit_size: int = 4096,
        percentile_clipping: int = 100,
        block_wise: bool = True,
        is_paged: bool = False,
    ) -> None:
        super().__init__(params, lr, betas, weight_decay)
        _options(self, args, min_8bit_size, percentile_clipping, block_wise, is_paged)


class SGD8bit(EightBit, SGD):
    """SGD whose momentum is kept in eight bits; see `Adam8bit`. Without momentum there is nothing to keep.

    >>> w = votive.ones(64, 64, requires_grad=True)
    >>> opt = votive.optim.SGD8bit([w], lr=0.1, momentum=0.9)
    >>> (w * w).sum().backward()
    >>> opt.step()
    >>> round(float(w[0, 0]), 4), opt.state[w]["state1"].dtype
    (0.8, votive.uint8)
    """

    _kept: ClassVar[dict[str, bool]] = {"momentum_buffer": True}
    _exact = ("state1", "absmax1")
    _begins = False

    def __init__(
        self,
        params: Params,
        lr: float | Tensor,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        args: object = None,
        min_8bit_size: int = 4096,
        percentile_clipping: int = 100,
        block_wise: bool = True,
    ) -> None:
        if momentum == 0:
            raise NotImplementedError("SGD8bit: SGD without momentum is not supported; there is nothing to keep.")
        super().__init__(params, lr, momentum, dampening, weight_decay, nesterov)
        _options(self, args, min_8bit_size, percentile_clipping, block_wise, False)
