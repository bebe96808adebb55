"""`local_map`: a function of plain tensors, run on the parts of distributed ones."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ....tensor import Tensor
from ...device_mesh import DeviceMesh
from ..dtensor import DTensor
from ..placement_types import Placement


def local_map(
    func: Callable[..., Any],
    out_placements: Any,
    in_placements: Sequence[Sequence[Placement] | None] | None = None,
    in_grad_placements: Sequence[Sequence[Placement] | None] | None = None,
    device_mesh: DeviceMesh | None = None,
    *,
    redistribute_inputs: bool = False,
) -> Callable[..., Any]:
    """A function that takes distributed tensors, runs `func` on each rank's parts, and gives distributed results.

    `out_placements` says how results lie, one sequence for all or a tuple with one for each (None: no tensor);
    `in_placements` how arguments must lie, to which they are brought with `redistribute_inputs`.

    >>> from votive.distributed.tensor import distribute_tensor, Replicate, Shard
    >>> from votive.distributed.tensor.experimental import local_map
    >>> def run():
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     double = local_map(lambda x: x * 2, out_placements=[Shard(0)], in_placements=([Shard(0)],))
    ...     return double(distribute_tensor(votive.arange(4.0), mesh, [Shard(0)])).full_tensor().tolist()
    >>> votive.distributed.simulate(run, 2)[0]
    [0.0, 2.0, 4.0, 6.0]
    """

    @functools.wraps(func)
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if in_placements is not None and len(in_placements) != len(args):
            raise AssertionError(
                f"in_placements length {len(in_placements)} does not match the number of input args {len(args)}!"
            )
        mesh, seen, local = device_mesh, False, []
        for i, x in enumerate(args):
            wanted = None if in_placements is None else in_placements[i]
            if not isinstance(x, DTensor):
                if wanted is not None:
                    raise TypeError(
                        f"Got input {i} of type {type(x)}, but in_placements says {wanted}; pass a DTensor."
                    )
                local.append(x)
                continue
            mesh, seen = mesh or x.device_mesh, True
            if in_placements is not None and wanted is None:
                raise TypeError(f"Got a DTensor for input {i}, but its in_placements is None.")
            if wanted is not None and x.placements != tuple(wanted):
                if not redistribute_inputs:
                    raise ValueError(
                        f"arg {i} in local_map has a mismatched placements: arg placements is {x.placements} but the "
                        f"input placements is {tuple(wanted)}! If redistribute_inputs is wanted, set "
                        "redistribute_inputs=True to local_map."
                    )
                x = x.redistribute(placements=wanted)
            grads = None if in_grad_placements is None else in_grad_placements[i]
            local.append(x.to_local(grad_placements=grads))
        out = func(*local, **kwargs)
        if not seen:
            return out
        assert mesh is not None
        given = out if isinstance(out, tuple) else (out,)
        one = not isinstance(out_placements, tuple) or all(isinstance(p, Placement) for p in out_placements)
        lies = (out_placements,) * len(given) if one else out_placements
        if len(lies) != len(given):
            raise AssertionError(
                f"local_map requires one PlacementType be provided for each output value, got {len(lies)} "
                f"out_placements but {len(given)} outputs!"
            )
        made = []
        for x, placements in zip(given, lies, strict=True):
            if isinstance(x, Tensor) and not isinstance(x, DTensor) and placements is not None:
                made.append(DTensor.from_local(x, mesh, placements, run_check=False))
            elif isinstance(x, Tensor) != (placements is not None):
                raise AssertionError(f"local_map: a result is {type(x).__name__}, and its out_placements {placements}.")
            else:
                made.append(x)
        return tuple(made) if isinstance(out, tuple) else made[0]

    return wrapped
