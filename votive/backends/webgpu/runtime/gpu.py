"""The one class between votive and a WebGPU library: adapters, buffers, pipelines, submitting, mapping.

Knows wgpu-py and nothing of votive's memory or kernels. Whoever runs votive on another WebGPU, such as a browser's,
writes a class with these methods.
"""

from __future__ import annotations

import os
from typing import Any

from ....core.errors import OutOfMemoryError, WebGpuError, size_text

# What is asked of the adapter beyond the defaults of the standard: as much as it has.
_LIMITS = (
    "max-buffer-size",
    "max-storage-buffer-binding-size",
    "max-storage-buffers-per-shader-stage",
    "max-compute-workgroup-storage-size",
    "max-compute-invocations-per-workgroup",
    "max-compute-workgroup-size-x",
    "max-compute-workgroups-per-dimension",
)
# The numbers a kernel is given lie in a slice of one buffer, this many bytes long at most.
NUMBERS = 512
_KINDS = {"DiscreteGPU": 0, "IntegratedGPU": 1, "VirtualGPU": 2, "Unknown": 3, "CPU": 4}
_APIS = {"Vulkan": 0, "Metal": 0, "D3D12": 0, "WebGPU": 0, "OpenGL": 2, "OpenGLES": 2}


def adapters() -> list[dict[str, str]]:
    """The adapters of this machine, the one that is used first; none without wgpu or without a driver."""
    return [{k: str(v) for k, v in a.info.items() if isinstance(v, str)} for a in _sorted()]


def _sorted() -> list[Any]:
    try:
        import wgpu
    except ImportError:
        raise WebGpuError(
            "webgpu: the package wgpu is not installed; install votive[webgpu] (pip install wgpu)."
        ) from None
    os.environ.setdefault("XDG_RUNTIME_DIR", os.environ.get("TMPDIR", "/tmp"))
    try:
        found = wgpu.gpu.enumerate_adapters_sync()
    except Exception as e:
        raise WebGpuError(f"webgpu: the adapters of this machine cannot be listed: {e}") from e
    wanted = os.environ.get("VOTIVE_WEBGPU_ADAPTER", "").lower()
    if wanted:
        found = [a for a in found if wanted in " ".join(str(v) for v in a.info.values()).lower()]
    return sorted(found, key=lambda a: (_KINDS.get(a.info["adapter_type"], 3), _APIS.get(a.info["backend_type"], 1)))


class Gpu:
    """A device of WebGPU with its queue. Handles of buffers, pipelines and groups are opaque to the caller."""

    def __init__(self) -> None:
        found = _sorted()
        import wgpu

        self._wgpu = wgpu
        if not found:
            wanted = os.environ.get("VOTIVE_WEBGPU_ADAPTER")
            if wanted:
                raise WebGpuError(f"webgpu: no adapter is called {wanted!r}, as VOTIVE_WEBGPU_ADAPTER asks.")
            raise WebGpuError(
                "webgpu: no adapter was found; install a driver for Vulkan, Metal or Direct3D 12 "
                "(software ones exist: on Debian and Ubuntu, apt install mesa-vulkan-drivers)."
            )
        adapter = found[0]
        self.info = {k: str(v) for k, v in adapter.info.items() if isinstance(v, str)}
        self.features = frozenset(str(f) for f in adapter.features)
        try:
            asked = {name: adapter.limits[name] for name in _LIMITS if name in adapter.limits}
            self._device = adapter.request_device_sync(required_limits=asked)
        except Exception as e:
            raise WebGpuError(f"webgpu: the adapter {self.info.get('device')} gives no device: {e}") from e
        limits = self._device.limits
        self.max_binding = int(min(limits["max-storage-buffer-binding-size"], limits["max-buffer-size"]))
        self.max_buffers = int(limits["max-storage-buffers-per-shader-stage"])
        self.max_groups = int(limits["max-compute-workgroups-per-dimension"])
        self.alignment = max(256, int(limits["min-uniform-buffer-offset-alignment"]))
        self.limits = {str(k): int(v) for k, v in limits.items()}
        use = wgpu.BufferUsage
        self._usage = use.STORAGE | use.COPY_SRC | use.COPY_DST
        self._encoder: Any = None
        self._pass: Any = None
        self._layouts: dict[str, tuple[Any, Any]] = {}
        self._staging: dict[int, list[Any]] = {}
        self.lost = ""

    def buffer(self, nbytes: int, numbers: bool = False) -> Any:
        """New memory, a multiple of 4 bytes."""
        usage = self._wgpu.BufferUsage.UNIFORM | self._wgpu.BufferUsage.COPY_DST if numbers else self._usage
        try:
            return self._device.create_buffer(size=nbytes, usage=usage)
        except self._wgpu.GPUError as e:
            if isinstance(e, self._wgpu.GPUOutOfMemoryError) or "memory" in str(e).lower():
                raise OutOfMemoryError(f"webgpu: the device has no {size_text(nbytes)} left.") from e
            raise self._failed(e) from e

    def free(self, buffer: Any) -> None:
        """Give memory back to the driver; nothing that was submitted uses it."""
        buffer.destroy()

    def write(self, buffer: Any, data: Any, offset: int = 0) -> None:
        """Put bytes of the host into memory, before whatever is submitted next."""
        try:
            self._device.queue.write_buffer(buffer, offset, data)
        except self._wgpu.GPUError as e:
            raise self._failed(e) from e

    def read(self, parts: list[tuple[Any, int, int]]) -> list[memoryview]:
        """The bytes of (buffer, offset, size) each, multiples of 4, after all that was submitted. The one place that
        waits for the device.
        """
        total = sum(size for _, _, size in parts)
        room = 4096
        while room < total:
            room *= 2
        pool = self._staging.setdefault(room, [])
        use = self._wgpu.BufferUsage
        try:
            staging = pool.pop() if pool else self._device.create_buffer(size=room, usage=use.MAP_READ | use.COPY_DST)
            encoder, at = self._device.create_command_encoder(), 0
            for buffer, offset, size in parts:
                encoder.copy_buffer_to_buffer(buffer, offset, staging, at, size)
                at += size
            self._device.queue.submit([encoder.finish()])
            staging.map_sync(self._wgpu.MapMode.READ, 0, total)
            data = bytes(staging.read_mapped(0, total, copy=False))
            staging.unmap()
        except (self._wgpu.GPUError, RuntimeError) as e:
            raise self._failed(e) from e
        if room <= 1 << 24 and len(pool) < 4:
            pool.append(staging)
        else:
            staging.destroy()
        found, at = [], 0
        for _, _, size in parts:
            found.append(memoryview(data)[at : at + size])
            at += size
        return found

    def _layout(self, signature: str) -> tuple[Any, Any]:
        """The layouts of kernels that take the numbers and buffers: 'w' is written, 'r' only read."""
        found = self._layouts.get(signature)
        if found is None:
            stage = self._wgpu.ShaderStage.COMPUTE
            numbers = {"type": "uniform", "has_dynamic_offset": True, "min_binding_size": NUMBERS}
            entries: list[dict[str, Any]] = [{"binding": 0, "visibility": stage, "buffer": numbers}]
            for k, mode in enumerate(signature):
                kind = "storage" if mode == "w" else "read-only-storage"
                entries.append({"binding": k + 1, "visibility": stage, "buffer": {"type": kind}})
            group = self._device.create_bind_group_layout(entries=entries)
            found = group, self._device.create_pipeline_layout(bind_group_layouts=[group])
            self._layouts[signature] = found
        return found

    def pipeline(self, code: str, signature: str, name: str) -> Any:
        """A compiled kernel; an error shows its text."""
        try:
            module = self._device.create_shader_module(code=code, label=name)
            how = {"module": module, "entry_point": "main"}
            return self._device.create_compute_pipeline(layout=self._layout(signature)[1], compute=how, label=name)
        except self._wgpu.GPUError as e:
            lines = "\n".join(f"{k + 1:>4} {line}" for k, line in enumerate(code.split("\n")))
            raise WebGpuError(f"webgpu: the shader {name} does not compile: {e}\nIts text:\n{lines}") from e

    def group(self, signature: str, numbers: Any, buffers: tuple[Any, ...]) -> Any:
        """The numbers and buffers of a kernel, as `dispatch` takes them."""
        entries: list[dict[str, Any]] = [{"binding": 0, "resource": {"buffer": numbers, "offset": 0, "size": NUMBERS}}]
        entries += [
            {"binding": k + 1, "resource": {"buffer": b, "offset": 0, "size": b.size}} for k, b in enumerate(buffers)
        ]
        try:
            return self._device.create_bind_group(layout=self._layout(signature)[0], entries=entries)
        except self._wgpu.GPUError as e:
            raise self._failed(e) from e

    def dispatch(self, pipeline: Any, group: Any, offset: int, grid: tuple[int, int, int]) -> None:
        """Record a kernel; the numbers lie at an offset of their buffer. It runs after `submit`."""
        recording = self._pass
        if recording is None:
            self._encoder = self._device.create_command_encoder()
            recording = self._pass = self._encoder.begin_compute_pass()
        recording.set_pipeline(pipeline)
        recording.set_bind_group(0, group, [offset])
        recording.dispatch_workgroups(*grid)

    def submit(self) -> None:
        """Hand what was recorded to the device, without waiting."""
        if self._pass is None:
            return
        encoder, self._encoder, recording, self._pass = self._encoder, None, self._pass, None
        try:
            recording.end()
            self._device.queue.submit([encoder.finish()])
        except self._wgpu.GPUError as e:
            raise self._failed(e) from e

    def wait(self) -> None:
        """Let the host wait for all that was submitted."""
        self._device.queue.on_submitted_work_done_sync()

    def _failed(self, e: BaseException) -> WebGpuError:
        text = str(e)
        if "lost" in text.lower():
            self.lost = text
            return WebGpuError(
                f"webgpu: the device was lost ({text.splitlines()[0]}); its tensors are gone. Start the program again."
            )
        return WebGpuError(f"webgpu: {text}")
