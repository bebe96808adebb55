"""CUDA graphs: launches recorded once and replayed as a whole, without Python in between.

What a graph reads and writes lies at fixed addresses: its memory comes from a pool of its own, and
new inputs are copied over the old ones.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from ..backends.cuda import runtime as rt
from ..backends.cuda.runtime.allocator import Pool
from ..backends.cuda.runtime.faults import faults
from ..core.errors import CudaError
from . import _here
from .devices import device_of
from .graph_arguments import checked, fill, tensors
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

    def __init__(self, keep_graph: bool = False) -> None:
        _here()
        self._keeps = keep_graph
        self._graph = self._exec = 0
        self._pool: Pool | None = None
        self._kept: list[Any] = []
        self._generator: Any = None
        self._repeats: CUDAGraph | None = None  # whose random numbers this one needs again

    def capture_begin(self, pool: Pool | None = None, capture_error_mode: str = "relaxed") -> None:
        """Begin to record the current stream, which must not be the default one.

        What other threads do meanwhile does not disturb: that is what "relaxed" says, the only
        mode there is.
        """
        here = _here()
        if self._graph:
            raise RuntimeError("capture_begin: the graph has already been captured; call reset() first.")
        if here.stream == 0:
            raise RuntimeError("capture_begin: the default stream cannot be captured; use another.")
        if capture_error_mode != "relaxed":
            raise NotImplementedError(
                f"capture_begin: capture_error_mode={capture_error_mode!r} is not supported; "
                "leave it out, or write 'relaxed'."
            )
        if here.capturing:
            raise RuntimeError("capture_begin: this thread is already capturing a graph.")
        self.reset()  # what a capture that failed has left
        self._pool = _shared_pool(pool, here)
        self._device = here.device
        _forget_casts()  # a graph makes its own: those of before are gone when autocast ends
        from ..backends.cuda.programs.generator_state import GraphGenerator, RepeatedGenerator

        first = self._repeats and self._repeats._generator
        self._generator = RepeatedGenerator(first) if first and first.taken else GraphGenerator(here.device)
        here.set_pool(self._pool)
        here.begin_capture()
        here._generator = self._generator
        try:
            rt.runtime.driver.begin_capture(here.stream)
        except BaseException:
            here.end_capture()
            raise

    def capture_end(self) -> None:
        """End recording and make the graph ready to run, unless it was made with `keep_graph`."""
        self._end()
        if not self.nodes():
            warnings.warn(
                "The CUDA Graph is empty. This usually means that the graph was attempted to be "
                "captured on wrong device or stream.",
                stacklevel=3,
            )

    def _end(self) -> None:
        here = _here()
        if not here.capturing:
            raise RuntimeError("capture_end: this thread is not capturing a graph.")
        try:
            self._graph = rt.runtime.driver.end_capture(here.stream)
        finally:
            self._kept = here.end_capture()
            _forget_casts()  # which nobody computes before a replay
        if not self._keeps:
            self.instantiate()

    def instantiate(self) -> None:
        """Make the graph ready to run; `replay` does it where nobody did."""
        if not self._graph:
            raise RuntimeError("instantiate: nothing has been captured yet.")
        with rt.runtime.driver.on(self._device):
            before, self._exec = self._exec, rt.runtime.driver.instantiate(self._graph)
            if before:
                rt.runtime.driver.synchronize()
                rt.runtime.driver.end_executable(before)

    def replay(self) -> None:
        """Run what was recorded, on the current stream."""
        if not self._graph:
            raise RuntimeError("replay: nothing has been captured yet.")
        if not self._exec:
            self.instantiate()
        if _gone:
            _bury()
        with rt.on(self._device):
            self._generator.advance()
            rt.runtime.driver.launch_graph(self._exec, rt.here.stream)

    def pool(self) -> Pool | None:
        """The graph's memory, to be shared with another graph that never runs at the same time."""
        return self._pool

    def nodes(self) -> int:
        """How many launches and copies the graph holds."""
        if not self._graph:
            raise RuntimeError("nodes: nothing has been captured yet.")
        return int(rt.runtime.driver.graph_size(self._graph))

    def raw_cuda_graph(self) -> int:
        """The driver's handle of the graph; of one that was made with `keep_graph`."""
        if not (self._keeps and self._graph):
            raise RuntimeError("raw_cuda_graph: needs a graph captured with CUDAGraph(keep_graph=True), and not reset.")
        return int(self._graph)

    def raw_cuda_graph_exec(self) -> int:
        """The driver's handle of what runs."""
        if not self._exec:
            raise RuntimeError("raw_cuda_graph_exec: the graph is not instantiated yet.")
        return int(self._exec)

    def enable_debug_mode(self) -> None:
        """Nothing: `debug_dump` always works here. torch asks for it before a capture."""

    def debug_dump(self, debug_path: str) -> None:
        """Write the graph as a DOT file, for Graphviz."""
        if not self._graph:
            raise RuntimeError("debug_dump: nothing has been captured yet.")
        rt.runtime.driver.draw_graph(self._graph, str(debug_path))

    def reset(self) -> None:
        """Forget the graph and let go of its memory."""
        kept = [self._kept, self._generator]
        held = (getattr(self, "_device", 0), self._graph, self._exec, self._pool, kept)
        self._graph = self._exec = 0
        self._pool, self._kept, self._generator = None, [], None
        if held[1] or held[3] is not None:
            _gone.append(held)
            _bury()

    def __del__(self) -> None:
        if getattr(self, "_pool", None) is not None and rt is not None and not rt.runtime.forked:
            self.reset()


_gone: list[tuple[Any, ...]] = []  # graphs that nobody replays any more


def _bury() -> None:
    """End graphs that are gone. While one is captured nobody may wait, and a graph may be collected
    as garbage while an allocator changes its lists: then they are left for later.
    """
    if rt.here.capturing or any(a.busy for a in rt.runtime.allocators.values()):
        return
    while _gone:
        try:
            index, made, executable, pool, _ = _gone.pop()
        except IndexError:  # another thread was faster
            return
        with rt.runtime.driver.on(index):
            if executable:
                rt.runtime.driver.synchronize()
                rt.runtime.driver.end_executable(executable)
            if made:
                rt.runtime.driver.end_graph(made)
        if pool is not None:
            allocator = rt.runtime.allocator(index)
            with allocator.lock:
                allocator.busy += 1  # what garbage gives back meanwhile waits
                try:
                    allocator.drop(pool)
                finally:
                    allocator.busy -= 1


def _forget_casts() -> None:
    from ..dispatch.autocast import settings

    settings.cache = None


def _shared_pool(pool: object, here: rt.Here) -> Pool:
    """The pool that a graph takes its memory from, which has one user more now."""
    allocator = rt.runtime.allocator(here.device)
    if pool is None:
        pool = allocator.private_pool(here.stream)
    if not isinstance(pool, Pool):
        raise TypeError(
            f"capture_begin: pool must come from graph_pool_handle() or CUDAGraph.pool(), got {type(pool).__name__}."
        )
    if pool.allocator is not allocator:
        raise RuntimeError(
            f"capture_begin: the pool is of cuda:{pool.allocator.device}, the graph of "
            f"cuda:{here.device}; use a pool for each device."
        )
    with allocator.lock:
        if pool not in allocator.private:  # its last graph is gone
            allocator.private.append(pool)
        pool.users += 1
    return pool


def graph_pool_handle() -> Pool:
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
        pool: Pool | None = None,
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
        try:
            self.graph.capture_begin(self.pool, self.mode)
        except BaseException:
            self._context.__exit__()
            raise

    def __exit__(self, *exc: object) -> None:
        try:
            if exc[0] is None and not self.graph._repeats:
                self.graph.capture_end()
            else:  # where it does not matter that nothing was recorded
                self.graph._end()
        except CudaError:
            # An error inside the block has often ended the capture: it is the one to be told.
            if exc[0] is None:
                raise
        finally:
            self._context.__exit__(*exc)


class Graphed:
    """A function as a graph: inputs are copied in, the graph runs, the same outputs come back."""

    def __init__(self, fn: Callable[..., Any], args: tuple[Any, ...], warmup: int) -> None:
        self.fn, self.args = fn, args
        self.inputs = tensors(args)
        with device_of(next((t for t in self.inputs if t.is_cuda), None)):
            self._record(warmup)

    def _record(self, warmup: int) -> None:
        fn, args, side = self.fn, self.args, Stream()
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
        given = checked("graphed function", args, self.args)
        for mine, new in zip(self.inputs, given, strict=True):
            fill("graphed function", mine, new)
        self.graph.replay()
        return self.outputs


def make_graphed(fn: Callable[..., Any], args: tuple[Any, ...] = (), *, warmup: int = 3) -> Graphed:
    """`fn(*args)` as a graph that is replayed by each call.

    The tensors of later calls are copied over those given here, other arguments must stay the
    same; the outputs are the same tensors each time. `fn` must not read values on the host. It runs
    `warmup` times before it is recorded. A whole training step can be graphed, from the forward
    pass to `optimizer.zero_grad()`; gradients from before must not be left for it to add to.

    >>> if votive.cuda.is_available():
    ...     double = votive.cuda.make_graphed(lambda x: x * 2, (votive.ones(3, device="cuda"),))
    ...     assert double(votive.full((3,), 4.0, device="cuda")).tolist() == [8.0, 8.0, 8.0]
    """
    _here()
    return Graphed(fn, tuple(args), warmup)
