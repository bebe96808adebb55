"""What a WebGPU device promises beside values: exact integers, errors, memory, texts of shaders, clear words."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import votive
from votive.core import dtype as dt
from votive.core.errors import WebGpuError

from .device import REASON, cpu_fallbacks

HERE = "webgpu"


def test_integers_of_64_bits_are_exact() -> None:
    rng = np.random.default_rng(0)
    a = rng.integers(-(2**63), 2**63 - 1, 500)
    b = np.where(rng.random(500) < 0.5, rng.integers(-9, 9, 500), rng.integers(-(2**40), 2**40, 500))
    b[b == 0] = 7
    x, y = votive.from_numpy(a), votive.from_numpy(b)
    with cpu_fallbacks() as left:
        for fn in (
            "add",
            "sub",
            "mul",
            "floor_divide",
            "remainder",
            "fmod",
            "gcd",
            "bitwise_xor",
            "maximum",
            "lt",
            "ge",
        ):
            ours, theirs = getattr(votive, fn)(x.to(HERE), y.to(HERE)), getattr(votive, fn)(x, y)
            assert (ours.cpu() == theirs).all(), fn
        shifts = votive.from_numpy(rng.integers(0, 64, 500))
        assert ((x.to(HERE) >> shifts.to(HERE)).cpu() == (x >> shifts)).all()
        assert ((x.to(HERE) << shifts.to(HERE)).cpu() == (x << shifts)).all()
        assert (x.to(HERE).sum().cpu() == x.sum()).all()
        assert (x.to(HERE).cumsum(0).cpu() == x.cumsum(0)).all()
        assert (x.to(HERE).float().cpu() == x.float()).all()
        assert (x.to(HERE).sort().values.cpu() == x.sort().values).all()
    assert not left


def test_half_types_round_as_on_the_cpu() -> None:
    rng = np.random.default_rng(1)
    x = votive.from_numpy((rng.normal(size=4000) * 10.0 ** rng.integers(-9, 6, 4000)).astype(np.float32))
    for kind in (votive.float16, votive.bfloat16):
        assert (x.to(HERE).to(kind).cpu().view(votive.int16) == x.to(kind).view(votive.int16)).all()
        assert (x.to(kind).to(HERE).float().cpu() == x.to(kind).float()).all()


@pytest.mark.parametrize("kind", [votive.bool, votive.uint8, votive.int8, votive.float16])
def test_neighbours_of_narrow_elements_are_left_alone(kind: Any) -> None:
    for start in range(5):
        x = votive.ones(23, dtype=kind)
        y = x.to(HERE)
        x[start : start + 7] = 0
        y[start : start + 7] = 0
        x[start + 9 :: 3] = 0
        y[start + 9 :: 3] = 0
        assert (y.cpu() == x).all()


def test_doubles_keep_their_digits_by_way_of_the_cpu() -> None:
    x = votive.full((3,), 1 / 3, dtype=votive.float64, device=HERE)
    with cpu_fallbacks() as left:
        y = (x * 3).cpu()
        z = x[1:].clone().cpu()
    assert left["mul"] == 1
    assert y.tolist() == [1.0] * 3
    assert z.tolist() == [1 / 3] * 2


def test_a_fallback_warns_once_and_is_counted() -> None:
    code = (
        "import warnings, votive\n"
        "x = votive.ones(2, 2, device='webgpu')\n"
        "with warnings.catch_warnings(record=True) as found:\n"
        "    warnings.simplefilter('always')\n"
        "    votive.linalg.qr(x), votive.linalg.qr(x)\n"
        "print(len(found), found[0].category.__name__, votive.webgpu.cpu_fallbacks())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "1 WebGpuFallbackWarning {'_qr': 2}", done.stderr


def test_an_index_out_of_range_is_told_when_the_host_waits() -> None:
    table = votive.ones(5, 2, device=HERE)
    found = table[votive.tensor([0, 7], device=HERE)]
    with pytest.raises(IndexError, match=r"index 7 is out of bounds for dimension 0 with size 5"):
        found.cpu()
    assert votive.nn.functional.embedding(votive.tensor([4], device=HERE), table).tolist() == [[1.0, 1.0]]
    wild = table[votive.tensor([2**40], device=HERE)]
    with pytest.raises(IndexError):
        wild.cpu()


def test_a_shader_that_does_not_compile_shows_its_text() -> None:
    from votive.backends.webgpu.shaders.program import Program

    wrong = Program("wrong", [("y", dt.float32, "w")], [], "  y_set(index, no_such_function());")
    with pytest.raises(WebGpuError, match=r"(?s)wrong does not compile.*no_such_function\(\)"):
        wrong(1, [votive.zeros(1, device=HERE)._data])
    assert votive.ones(2, device=HERE).sum().item() == 2


def test_a_tensor_larger_than_a_binding_is_refused_with_the_limit() -> None:
    from votive.backends.webgpu.runtime import runtime

    before = runtime.gpu.max_binding
    runtime.gpu.max_binding = 1 << 20
    try:
        with pytest.raises(NotImplementedError, match=r"4\.0 MiB is more than .* \(1\.0 MiB\)"):
            votive.zeros(1 << 20, device=HERE)
    finally:
        runtime.gpu.max_binding = before


def test_memory_that_the_driver_has_not_is_an_out_of_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.webgpu.runtime import runtime

    def nothing(nbytes: int, numbers: bool = False) -> Any:
        raise votive.webgpu.OutOfMemoryError("webgpu: the device has nothing left.")

    votive.webgpu.empty_cache()
    monkeypatch.setattr(runtime.gpu, "buffer", nothing)
    with pytest.raises(votive.webgpu.OutOfMemoryError, match=r"out of memory on the WebGPU device: it takes 64\.0 KiB"):
        votive.empty(1 << 14, device=HERE)


def test_memory_is_counted_by_the_module_that_made_it_and_used_again() -> None:
    class Keeper(votive.nn.Module):
        def forward(self, x: votive.Tensor) -> votive.Tensor:
            self.kept = x * 2
            return self.kept

    model = votive.nn.Sequential(Keeper())
    x = votive.ones(1024, device=HERE)
    before = votive.webgpu.memory_allocated()
    model(x)
    assert votive.webgpu.memory_allocated() - before == 4096
    model[0].kept = None
    assert votive.webgpu.memory_allocated() == before
    hits = votive.webgpu.memory_stats()["hits"]
    assert (x * 2).numel() == 1024
    assert votive.webgpu.memory_stats()["hits"] > hits
    votive.webgpu.empty_cache()
    assert votive.webgpu.memory_stats()["cached_bytes"] == 0


def test_writing_into_memory_that_is_read_at_another_place_reads_first() -> None:
    x = votive.arange(10.0)
    y = x.to(HERE)
    for t in (x, y):
        t[1:].copy_(t[:-1].clone())
        t[:-1].add_(t[1:])
        votive.add(t[2:], t[:-2], out=t[1:-1])
    assert (x == y.cpu()).all()


def test_other_devices_are_named_where_a_tensor_cannot_go() -> None:
    x = votive.ones(2, device=HERE)
    with pytest.raises(RuntimeError, match="two devices"):
        x + votive.ones(2)
    assert (x + votive.tensor(1.0)).tolist() == [2.0, 2.0]
    with pytest.raises(RuntimeError, match="there is one"):
        votive.webgpu.memory_stats("webgpu:3")


def test_explain_shows_the_text_of_formulas_and_shaders_are_listed() -> None:
    assert "fn tanh(v_input: f32) -> f32" in votive.explanation("tanh")
    votive.ones(3, device=HERE).tanh()
    assert any("fn f_tanh(" in text for text in votive.webgpu.get_shaders("tanh")["tanh"])


@pytest.mark.anywhere
def test_switched_off_or_without_wgpu_it_says_what_to_do() -> None:
    code = (
        "import sys, votive\n"
        "{}\n"
        "print(votive.webgpu.is_available(), votive.webgpu.why_not())\n"
        "try: votive.ones(2, device='webgpu')\n"
        "except RuntimeError as e: print(e)\n"
    )

    def said(setup: str, **env: str) -> str:
        import os

        done = subprocess.run(
            [sys.executable, "-c", code.format(setup)],
            capture_output=True,
            text=True,
            timeout=120,
            env={**{k: v for k, v in os.environ.items() if not k.startswith("VOTIVE_WEBGPU")}, **env},
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert "False switched off by VOTIVE_WEBGPU=0" in said("", VOTIVE_WEBGPU="0")
    assert "install votive[webgpu]" in said("sys.modules['wgpu'] = None")
    if not REASON:
        assert "no adapter is called 'nobody'" in said("", VOTIVE_WEBGPU_ADAPTER="nobody")
