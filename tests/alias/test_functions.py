"""Functions that only torch has at its top, and legacy methods, give on the alias what torch gives."""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
from functools import cache
from typing import Any

import pytest

from .process import ROOT, run

EXPRESSIONS = [
    "x.dim_order() + x.t().dim_order() + torch.zeros(1, 3, 1).dim_order()",
    "x.nonzero_static(size=7, fill_value=-2)",
    "torch.hash_tensor(x, dim=0)",
    "torch.hash_tensor(torch.tensor([-1, 4], dtype=torch.int8))",
    "torch.native_layer_norm(x, [3], None, None, 1e-5)",
    "torch.native_batch_norm(x, None, None, None, None, True, 0.1, 1e-5)",
    "torch.native_group_norm(x.view(1, 2, 3), None, None, 1, 2, 3, 1, 1e-5)",
    "torch.native_dropout(x, 0.5, False)",
    "torch.batch_norm_update_stats(x, torch.zeros(3), torch.ones(3), 0.1)",
    "torch.norm_except_dim(x, 2, 0), torch.norm_except_dim(x, 1, 1), torch.norm_except_dim(x, 2, -1)",
    "torch.frobenius_norm(x, dim=[0]), torch.nuclear_norm(x)",
    "torch.embedding_bag(x, torch.tensor([0, 1, 1]), torch.tensor([0, 2]), False, 2)",
    "torch.embedding_bag(x, torch.tensor([0, 1, 1]), torch.tensor([0, 2]), False, 1)",
    "torch.binary_cross_entropy_with_logits(x, torch.ones(2, 3), None, None, 2)",
    "torch.kl_div(x, x, 1, log_target=True), torch.kl_div(x, x + 1)",
    "torch.poisson_nll_loss(x, x, True, False, 1e-8, 1)",
    "torch.triplet_margin_loss(x, x + 1, x * 2), torch.margin_ranking_loss(x, x + 1, x, 0.5, 1)",
    "torch.cosine_embedding_loss(x, x + 1, torch.tensor([1.0, -1.0])), torch.hinge_embedding_loss(x, x.sign())",
    "torch.ctc_loss(x.view(2, 1, 3).log_softmax(2), torch.tensor([[1]]), torch.tensor([2]), torch.tensor([1]))",
    "torch.convolution(x.view(1, 2, 3), torch.ones(2, 1, 2), None, [1], [1], [1], False, [0], 2)",
    "torch.convolution(x.view(1, 2, 3), torch.ones(2, 1, 2), None, [2], [0], [1], True, [1], 1)",
    "torch.grid_sampler(x.view(1, 1, 2, 3), torch.zeros(1, 1, 1, 2), 0, 1, True)",
    "torch.fake_quantize_per_tensor_affine(x, 0.3, 1, -2, 3)",
    "torch.fake_quantize_per_channel_affine(x, torch.tensor([0.5, 1.0]), torch.tensor([0, 1]).int(), 0, 0, 5)",
    "torch.range(0, 3), torch.range(1, 2, 0.5)",
    "torch.cond(True, lambda a: a + 1, lambda a: a, (x,))",
    "torch.nn.functional.max_pool2d_with_indices(x.view(1, 2, 3), 2)",
    "torch.zeros(3).map_(torch.ones(3), lambda a, b: a + b), torch.ones(2).apply_(lambda a: a + 2)",
    "torch.lobpcg(torch.diag(torch.arange(1.0, 10)), 1, largest=False)[0]",
    "[d.abbr for d in (torch.float32, torch.int64, torch.bool, torch.uint8, torch.bfloat16, torch.complex64)]",
    "torch.typename(x), torch.typename(torch.FloatTensor), torch.typename(3)",
    "torch.sym_int(-3.7), torch.sym_max(1, 2.0), torch.sym_not(True), torch.sym_sum([1, 2])",
]
PROGRAM = """
import json, sys, torch
x = torch.arange(6.0).view(2, 3)

def plain(value):
    if isinstance(value, torch.Tensor):
        return [str(value.dtype), list(value.shape), value.tolist()]
    return [plain(v) for v in value] if isinstance(value, (list, tuple)) else value

def answer(text):
    try:
        return plain(eval(text))
    except Exception as error:
        return f"{type(error).__name__}: {error}"

print(json.dumps([answer(text) for text in json.loads(sys.argv[1])]))
"""


@cache
def answers() -> tuple[list[Any], list[Any]]:
    given = json.dumps(EXPRESSIONS)
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM, given]
    theirs = subprocess.run(command, cwd=ROOT, env={**os.environ}, check=True, capture_output=True, text=True).stdout
    return json.loads(run(PROGRAM, given)), json.loads(theirs)


def agree(a: Any, b: Any) -> bool:
    if isinstance(a, list):
        return isinstance(b, list) and len(a) == len(b) and all(agree(p, q) for p, q in zip(a, b, strict=True))
    if isinstance(a, float) and isinstance(b, float):
        return math.isclose(a, b, rel_tol=1e-5, abs_tol=1e-5)
    return type(a) is type(b) and bool(a == b)


@pytest.mark.parity
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="There is no torch here to compare with.")
@pytest.mark.parametrize("i", range(len(EXPRESSIONS)), ids=lambda i: EXPRESSIONS[i][:40])
def test_a_function_gives_what_torch_gives(i: int) -> None:
    ours, theirs = answers()
    assert not isinstance(theirs[i], str), theirs[i]
    assert agree(ours[i], theirs[i]), (EXPRESSIONS[i], ours[i], theirs[i])
