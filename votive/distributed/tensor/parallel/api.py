"""`parallelize_module`: a plan of styles for the parts of a module."""

from __future__ import annotations

import warnings
from fnmatch import fnmatch

from ....nn.module import Module
from ...device_mesh import DeviceMesh, current_mesh
from .style import ParallelStyle


def parallelize_module(
    module: Module,
    device_mesh: DeviceMesh | None = None,
    parallelize_plan: ParallelStyle | dict[str, ParallelStyle] | None = None,
    *,
    src_data_rank: int | None = 0,
) -> Module:
    """Spread a module over a mesh of one dimension: by one style, or by those of a plan for its parts. Names of parts
    may have wildcards, each between dots: `"layers.*.attention.wq"`.

    >>> from votive.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
    >>> def train():
    ...     votive.manual_seed(0)
    ...     model = votive.nn.Sequential(votive.nn.Linear(4, 8), votive.nn.ReLU(), votive.nn.Linear(8, 2))
    ...     mesh = votive.distributed.init_device_mesh("cpu", (2,))
    ...     parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    ...     return tuple(model[0].weight.to_local().shape), tuple(model(votive.ones(3, 4)).shape)
    >>> votive.distributed.simulate(train, 2)[0]
    ((4, 4), (3, 2))
    """
    mesh = device_mesh or current_mesh()
    if mesh.ndim != 1:
        raise ValueError(
            f"Tensor Parallel only accepts a 1D DeviceMesh, but found {mesh.ndim}D! If you have a 2-D or N-D "
            'device_mesh, consider passing in device_mesh["tp"]'
        )
    if parallelize_plan is None:
        warnings.warn(
            "No parallelize_plan is provided and auto-parallel is not supported at the moment, so this "
            "parallelize_module call will do nothing.",
            stacklevel=2,
        )
        return module
    if isinstance(parallelize_plan, ParallelStyle):
        parallelize_plan.src_data_rank = src_data_rank
        return parallelize_plan._apply(module, mesh)
    if not isinstance(parallelize_plan, dict):
        raise TypeError(
            "Expect Union[ParallelStyle, Dict[str, ParallelStyle]] for parallelize_plan, "
            f"{type(parallelize_plan)} found!"
        )
    for path, style in parallelize_plan.items():
        if path == "":
            parallelize_module(module, mesh, style, src_data_rank=src_data_rank)
            continue
        first, _, rest = path.partition(".")
        parts = [(name, part) for name, part in module.named_children() if fnmatch(name, first)]
        if not parts:
            warnings.warn(
                f"Parallelize plan key '{path}' could not be resolved: no submodule matching token '{first}' in module "
                f"{module}, skipping this plan entry.",
                stacklevel=2,
            )
            continue
        for _, part in parts:
            inner = {rest: style} if rest else style
            parallelize_module(part, mesh, inner, src_data_rank=src_data_rank)
    return module
