"""The view of the compiled model, in a studio where nothing else looks inside."""

from __future__ import annotations

from .client import Page
from .demo_session import MLP, begun


def test_the_compiled_model_is_told_with_its_kernels(page: Page) -> None:
    begun(page)
    found = page.ask("compiled.run")
    assert not found["eager"]
    (graph,) = found["graphs"]
    assert f"# {MLP}" in graph["text"]
    assert graph["runs"] == 1
    assert all(k["calls"] and k["addresses"] for k in found["kernels"])
    assert "product and activation" in {r["name"] for r in found["rules"]}
    assert {"_rms_norm", "_attention"} <= {o["name"] for o in found["operators"]}
    assert "votive.compile(model)" in found["python"]
    lines = page.ask("console.log")["lines"]
    assert any("votive.compiler.explain(fast)" in str(line) for line in lines)
