"""Short ways through the native module: what a launch does on the host, without Python in between.
Where that module is missing, the long ways serve alone. Knows neither kernels nor tensors.
"""

from __future__ import annotations

from typing import Any

from ...common.native_module import module


class _Launcher:
    """Stands for the native module's where there is none: every launch is a general one."""

    __slots__ = ()

    def __call__(self, grid: tuple[int, ...], *args: Any) -> None:
        self._general(grid, *args)

    def _general(self, grid: tuple[int, ...], *args: Any) -> None:
        raise NotImplementedError

    def _arrange(self, kinds: str) -> None:
        """The kinds of the arguments."""

    def _settle(self, *target: Any) -> None:
        """What is launched from now on."""


class _Product:
    """Likewise for products."""

    def __call__(self, left: int, right: int, out: int, **how: Any) -> None:
        self._general(left, right, out, **how)

    def _general(self, left: int, right: int, out: int, **how: Any) -> None:
        raise NotImplementedError

    def _arrange(self, *settings: Any) -> None:
        """What the library is told with every call."""

    def _settle(self, *way: Any) -> None:
        """How aligned operands are multiplied."""

    def _hold(self, more: int) -> None:
        """The general way begins or ends."""


Launcher: Any = _Launcher if module is None else module.Launcher
Product: Any = _Product if module is None else module.DeviceProduct
new_view: Any = None if module is None else module.new_view


def say(device: int, stream: int, pool: Any) -> None:
    """Tell what is current in this thread."""
    if module is not None:
        module.set_current(device, stream, pool)


def space(address: int) -> None:
    """Tell where products of the current stream keep what they need; a change of stream forgets."""
    if module is not None:
        module.set_space(address)


def forked() -> None:
    """This process is a fork: no memory is its own."""
    if module is not None:
        module.set_forked(True)


def memory(view: Any, storage: Any, block: Any, pool: Any, allocator: Any) -> None:
    """Make and give back memory of these classes, whose fields are slots."""
    if module is not None:
        module.install_device((view, storage, block, pool, allocator))
        storage.__del__ = module.device_give(storage)


def launching(address: int) -> None:
    """Launch by the driver's function at an address; 0: every launch is a general one."""
    if module is not None:
        module.set_launch(address)


def results(run: Any, plan: list[tuple[Any, int, int]], general: Any) -> Any:
    """`run(outs, *values)` with new memory for the results of a plan, as rows make it."""
    return general if module is None else module.DeviceResults(run, tuple(plan))


def formula(
    program: Any, grid: tuple[int, ...], numbers: Any, out: Any, device: int, general: Any, into: Any, over: Any
) -> tuple[Any, Any]:
    """(compute, into) of a formula: `general` and `into` without Python where a launch is as
    planned. `over(values, view)`: where the view overlaps what is read.
    """
    if module is None or not isinstance(program, module.Launcher):
        return general, into
    values = len(program.types) - 1 - len(numbers)
    made = module.DeviceFormula(program, grid, values, tuple(numbers), out, out.nbytes, device, general, into, over)
    return made, made.into


def window(spec: Any) -> Any:
    """How a view looks, for the native module to make it."""
    return module.Window(spec) if module is not None and spec.numel else None
