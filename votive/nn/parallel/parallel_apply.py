"""Modules called side by side, a thread each."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from ...autograd.modes import is_grad_enabled, set_grad_enabled


def parallel_apply(
    modules: Sequence[Any],
    inputs: Sequence[Any],
    kwargs_tup: Sequence[dict[str, Any]] | None = None,
    devices: Sequence[Any] | None = None,
) -> list[Any]:
    """Call each module with its own arguments, several at once if they are on several devices.

    >>> net = votive.nn.Identity()
    >>> votive.nn.parallel.parallel_apply([net, net], [votive.ones(1), votive.zeros(1)])
    [tensor([1.]), tensor([0.])]
    """
    if len(modules) != len(inputs):
        raise AssertionError(f"The number of modules {len(modules)} is not equal to the number of inputs {len(inputs)}")
    kwargs = kwargs_tup if kwargs_tup is not None else [{} for _ in modules]
    if len(kwargs) != len(modules) or (devices is not None and len(devices) != len(modules)):
        raise AssertionError(f"{len(modules)} modules need as many keyword arguments and devices.")
    results: list[Any] = [None] * len(modules)
    errors: list[BaseException] = []
    grad = is_grad_enabled()

    def work(i: int) -> None:
        given = inputs[i] if isinstance(inputs[i], (list, tuple)) else (inputs[i],)
        try:
            with set_grad_enabled(grad):
                results[i] = modules[i](*given, **kwargs[i])
        except BaseException as e:
            errors.append(e)

    if len(modules) == 1:
        work(0)
    else:
        threads = [threading.Thread(target=work, args=(i,)) for i in range(len(modules))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if errors:
        raise errors[0]
    return results
