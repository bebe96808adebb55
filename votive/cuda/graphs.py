"""CUDA graphs: launches recorded once and replayed as a whole, without Python in between.

What a graph reads and writes lies at fixed addresses: its memory comes from a pool of its own, and
new inputs are copied over the old ones.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..backends.cuda import runtime as rt
from ..backends.cuda.faults import faults
from . import _here
from .streams import Stream, StreamContext, current_stream


class CUDAGraph:
    """A recorded sequence of launches.

    >>> if votive.cuda.is_available():
    ...     x, g = votive.ones(3, device="cuda"), votive.cuda.CUDAGraph()
    ...     with votive.cuda.graph(g):
    ...         y = x * 2
    ...     g.replay()
    ...     assert y.tolist() == [2.0, 2.0, 2.0]
    """

    def __init__(self) -> None:
        _here()
        self._graph = self._exec = 0
        self._pool: Any = None
        self._kept: list[Any] = []
        self._draws: Any = None

    def capture_begin(self, pool: Any = None, capture_error_mode: str = "relaxed") -> None:
        """Begin to record the current stream, which must not be the default one."""
        here = _here()
        if self._exec:
            raise RuntimeError("capture_begin: the graph was captured already; call reset() first.")
        if here.stream == 0:
            raise RuntimeError("capture_begin: the default stream cannot be captured; use another.")
        if capture_error_mode != "relaxed":
            raise NotImplementedError("capture_begin: only capture_error_mode='relaxed'.")
        allocator = rt.runtime.allocator(here.device)
        self._pool = pool or allocator.private_pool(here.stream)
        self._pool.users += 1
        self._device = here.device
        here.set_pool(self._pool)
        here.begin_capture()
        from ..backends.cuda.draws import GraphDraws

        here._draws = self._draws = GraphDraws(here.device)
        try:
            rt.runtime.driver.begin_capture(here.stream)
        except BaseException:
            here.end_capture()
            raise

    def capture_end(self) -> None:
        """End recording and make the graph ready to run."""
        here = _here()
        driver = rt.runtime.driver
        try:
            self._graph = driver.end_capture(here.stream)
        finally:
            self._kept = here.end_capture()
        self._exec = driver.instantiate(self._graph)

    def replay(self) -> None:
        """Run what was recorded, on the current stream."""
        if not self._exec:
            raise RuntimeError("replay: nothing was captured yet.")
        from ..backends.cuda.draws import before_replay

        with rt.on(self._device):
            before_replay(self)
            rt.runtime.driver.launch_graph(self._exec, rt.here.stream)

    def pool(self) -> Any:
        """The graph's memory, to be shared with another graph that never runs at the same time."""
        return self._pool

    def nodes(self) -> int:
        """How many launches and copies the graph holds."""
        return int(rt.runtime.driver.graph_size(self._graph))

    def reset(self) -> None:
        """Forget the graph and let go of its memory."""
        held = (getattr(self, "_device", 0), self._graph, self._exec, self._pool, self._kept)
        self._graph = self._exec = 0
        self._pool, self._kept, self._draws = None, [], None
        if held[2] or held[3] is not None:
            _gone.append(held)
            _bury()

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None and rt is not None and not rt.runtime.forked:
            self.reset()


_gone: list[tuple[Any, ...]] = []  # graphs that nobody replays any more


def _bury() -> None:
    """End graphs that are gone. While one is captured nobody may wait: they are left for later."""
    while _gone and not rt.here.capturing:
        index, made, executable, pool, _ = _gone.pop()
        if executable:
            with rt.runtime.driver.on(index):
                rt.runtime.driver.synchronize()
                rt.runtime.driver.end_graph(made, executable)
        if pool is not None:
            rt.runtime.allocator(index).drop(pool)


def graph_pool_handle() -> Any:
    """A pool that several graphs may share.

    >>> if votive.cuda.is_available():
    ...     pool = votive.cuda.graph_pool_handle()
    """
    here = _here()
    return rt.runtime.allocator(here.device).private_pool(here.stream)


def is_current_stream_capturing() -> bool:
    """Whether this thread's work is being recorded.

    >>> votive.cuda.is_current_stream_capturing()
    False
    """
    return rt.here is not None and bool(rt.here.capturing)


class graph:
    """`with votive.cuda.graph(g):` records the work inside into `g` instead of running it.

    >>> if votive.cuda.is_available():
    ...     x, g = votive.ones(3, device="cuda"), votive.cuda.CUDAGraph()
    ...     with votive.cuda.graph(g):
    ...         y = x + 1
    """

    _sides: dict[int, Stream] = {}  # device -> the stream that is recorded when none is given

    def __init__(
        self,
        cuda_graph: CUDAGraph,
        pool: Any = None,
        stream: Stream | None = None,
        capture_error_mode: str = "relaxed",
    ) -> None:
        if stream is None:
            index = _here().device
            stream = graph._sides.get(index) or graph._sides.setdefault(index, Stream(index))
        self.graph, self.pool, self.stream, self.mode = cuda_graph, pool, stream, capture_error_mode

    def __enter__(self) -> None:
        _bury()
        with rt.runtime.driver.on(self.stream.device_index):
            rt.runtime.driver.synchronize()
        faults.check()
        self._context = StreamContext(self.stream)
        self._context.__enter__()
        self.graph.capture_begin(self.pool, self.mode)

    def __exit__(self, *exc: object) -> None:
        try:
            self.graph.capture_end()
        except Exception:
            if exc[0] is None:
                raise
        finally:
            self._context.__exit__(*exc)


def _tensors(value: Any) -> list[Any]:
    from ..tensor import Tensor

    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, (tuple, list)):
        return [t for v in value for t in _tensors(v)]
    if isinstance(value, dict):
        return [t for v in value.values() for t in _tensors(v)]
    return []


class Graphed:
    """A function as a graph: inputs are copied in, the graph runs, the same outputs come back."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], warmup: int) -> None:
        self.fn, self.args = fn, args
        self.inputs = _tensors(args)
        side = Stream()
        side.wait_stream(current_stream())
        with StreamContext(side):
            # Plans are made, kernels compiled and algorithms chosen before anything is recorded.
            for _ in range(warmup):
                fn(*args)
        current_stream().wait_stream(side)
        self.graph = CUDAGraph()
        with graph(self.graph, stream=side):
            self.outputs = fn(*args)

    def __call__(self, *args: Any) -> Any:
        given = _tensors(args)
        if len(given) != len(self.inputs):
            raise TypeError(
                f"graphed function: takes {len(self.inputs)} tensors, got {len(given)}."
            )
        for mine, new in zip(self.inputs, given, strict=True):
            if new is not mine:
                if new.shape != mine.shape or new.dtype is not mine.dtype:
                    raise ValueError(
                        f"graphed function: captured for {tuple(mine.shape)} {mine.dtype}, got "
                        f"{tuple(new.shape)} {new.dtype}; graph it again for other shapes."
                    )
                from ..autograd import no_grad

                with no_grad():
                    mine.copy_(new)
        self.graph.replay()
        return self.outputs


def make_graphed(fn: Callable[..., Any], args: tuple[Any, ...] = (), *, warmup: int = 3) -> Graphed:
    """`fn(*args)` as a graph that is replayed by each call.

    The tensors of later calls are copied over those given here; the outputs are the same tensors
    each time. `fn` must not read values on the host. A whole training step can be graphed: its
    gradients must exist before (they are made while warming up) and be zeroed, not dropped.

    >>> if votive.cuda.is_available():
    ...     double = votive.cuda.make_graphed(lambda x: x * 2, (votive.ones(3, device="cuda"),))
    ...     assert double(votive.full((3,), 4.0, device="cuda")).tolist() == [8.0, 8.0, 8.0]
    """
    _here()
    return Graphed(fn, tuple(args), warmup)
