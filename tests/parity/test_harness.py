"""The harness finds nothing in torch itself, and finds each fault planted in it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

from .compare import EXACT, Mismatch, Rules, same  # noqa: E402
from .harness import MODES, OPS, OpReport, Settings, check  # noqa: E402
from .subject import torch_subject  # noqa: E402
from .workers import forked  # noqa: E402

pytestmark = pytest.mark.parity

SOUND = [
    "add",
    "exp",
    "sum",
    "cat",
    "topk",
    "max:reduction_with_dim",
    "einsum",
    "where",
    "to",
    "T",
    "squeeze",
    "__getitem__",
    "__rsub__",
    "slice",
    "uniform",
    "empty_strided",
    "linalg.svd",
    "linalg.eigh",
    "nn.functional.dropout",
    "nn.functional.batch_norm",
    "nn.functional.mish",
    "nn.functional.embedding",
    "nn.functional.triplet_margin_with_distance_loss",
]


def run(name: str, *modes: str, settings: dict | None = None, **replaced: Any) -> OpReport:
    """Check torch, with some functions replaced (nn__functional__x for a dotted path)."""
    subject = torch_subject({path.replace("__", "."): fn for path, fn in replaced.items()})
    return check(OPS[name], Settings(modes=modes, max_samples=4, **(settings or {})), subject)


@pytest.mark.parametrize("name", SOUND)
def test_torch_agrees_with_itself(name: str) -> None:
    report = run(name, *MODES)
    assert not report.failures, "\n".join(map(str, report.failures))
    assert report.tallies["forward"].ok


def _offset(x: Any, **kwargs: Any) -> Any:
    return torch.exp(x, **kwargs) + 1e-3


def _wide(x: Any, **kwargs: Any) -> Any:
    return torch.exp(x, **kwargs).to(torch.complex128)


def _flat(x: Any, **kwargs: Any) -> Any:
    return torch.exp(x, **kwargs).reshape(-1)


def _listed(x: Any, **kwargs: Any) -> Any:
    return [torch.exp(x, **kwargs)]


def _raising(x: Any, **kwargs: Any) -> Any:
    raise NotImplementedError("not yet")


def _overwriting(x: Any, **kwargs: Any) -> Any:
    y = torch.exp(x, **kwargs)
    return y if x.requires_grad else (x.zero_(), y)[1]


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        (_offset, "differs in"),
        (_wide, "has dtype complex128, torch's float64"),
        (_flat, "has shape"),
        (_listed, "is list, torch's a tensor"),
        (_raising, "raised NotImplementedError: not yet"),
        (_overwriting, "an argument was overwritten"),
    ],
)
def test_faulty_forward_is_reported(fault: Callable, message: str) -> None:
    report = run("exp", "forward", exp=fault)
    assert any(message in failure.message for failure in report.failures)
    assert "exp(f64[" in report.failures[0].call


def test_renamed_argument_is_reported() -> None:
    renamed = lambda x, dim0, dim1: torch.transpose(x, dim0, dim1)
    report = run("transpose", "forward", "keywords", transpose=renamed)
    assert not report.tallies["forward"].failures
    assert "unexpected keyword argument 'input'" in report.tallies["keywords"].failures[0].message


def test_wrong_gradient_is_reported() -> None:
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return torch.exp(x)

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g

    report = run("exp", "forward", "grad", exp=Wrong.apply)
    assert not report.tallies["forward"].failures
    assert "gradient 0 differs" in report.tallies["grad"].failures[0].message


def test_second_gradient_that_misses_a_term_is_reported() -> None:
    class FirstOrderOnly(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.y = torch.exp(x).detach()
            return ctx.y.clone()

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * ctx.y

    real = {"dtypes": ("float64",)}
    report = run("exp", "grad", "gradgrad", settings=real, exp=FirstOrderOnly.apply)
    assert not report.tallies["grad"].failures
    assert "second gradient 0 is None" in report.tallies["gradgrad"].failures[0].message


def test_output_without_gradient_is_reported() -> None:
    report = run("exp", "grad", exp=lambda x: torch.exp(x.detach()))
    assert "requires_grad is False, torch's True" in report.failures[0].message


def test_faulty_method_and_inplace_form_are_reported() -> None:
    class Broken:
        exp = staticmethod(_offset)
        exp_ = staticmethod(torch.exp)

        def __instancecheck__(self, value: object) -> bool:
            return isinstance(value, torch.Tensor)

    report = run("exp", "method", "inplace", Tensor=Broken())
    assert "differs in" in report.tallies["method"].failures[0].message
    assert "did not return its argument" in report.tallies["inplace"].failures[0].message


def test_missing_alias_and_method_are_reported() -> None:
    report = run("abs", "alias", absolute=None)
    assert report.failures[0].message == "torch has no absolute"


def test_out_that_is_ignored_is_reported() -> None:
    report = run("exp", "out", exp=lambda x, out=None: torch.exp(x))
    assert "what was returned is another tensor" in report.failures[0].message


def test_wrong_kind_of_error_is_reported() -> None:
    def lenient(*args: Any, **kwargs: Any) -> Any:
        try:
            return torch.gather(*args, **kwargs)
        except RuntimeError:
            return None

    def wrong_kind(*args: Any, **kwargs: Any) -> Any:
        raise KeyError("gather")

    silent = run("gather", "errors", gather=lenient)
    assert "returned a result; torch raises RuntimeError" in silent.failures[0].message
    wrong = run("gather", "errors", gather=wrong_kind)
    assert "raised KeyError" in wrong.failures[0].message


def test_missing_operator_is_told_apart_from_a_failing_one() -> None:
    assert run("exp", "forward", exp=None).missing


def test_operator_that_takes_too_long_is_stopped() -> None:
    report = run("exp", "forward", settings={"seconds": 0.2}, exp=lambda x: time.sleep(30))
    assert "took more than 0.2 s" in report.failures[0].message


def test_narrow_result_may_be_closer_to_the_wide_one_than_torchs() -> None:
    want = torch.tensor([1.0, 2.0], dtype=torch.float32)
    better = torch.tensor([1.0, 2.001], dtype=torch.float32)
    with pytest.raises(Mismatch):
        same(torch_subject(), want, better)
    same(torch_subject(), want, better, EXACT, torch.tensor([1.0, 2.001], dtype=torch.float64))


def test_strides_and_views_count_when_asked_for() -> None:
    x = torch.zeros(2, 3)
    with pytest.raises(Mismatch, match="strides"):
        same(torch_subject(), x, torch.zeros(3, 2).t(), Rules(strides=True))
    views = {"views": True}
    assert not run("squeeze", "forward", settings=views).failures
    report = run("squeeze", "forward", settings=views, squeeze=lambda *a: torch.squeeze(*a).clone())
    assert "output is a copy of an argument, torch's a view" in report.failures[0].message


def test_crashed_and_silent_processes_cost_one_job_each() -> None:
    def work(job: str) -> str:
        if job == "crash":
            os._exit(3)
        if job == "raise":
            raise KeyError(job)
        if job == "hang":
            time.sleep(60)
        return job.upper()

    results = dict(forked(["a", "crash", "b", "raise", "hang", "c"], work, processes=1, seconds=0.5))
    assert [results[job] for job in "abc"] == ["A", "B", "C"]
    assert "status 3" in str(results["crash"])
    assert "KeyError" in str(results["raise"])
    assert isinstance(results["hang"], TimeoutError)
