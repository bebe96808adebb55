"""`import torch` leads to votive, wherever a program looks for it, and only as long as it was asked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .process import ROOT, run


def test_names_modules_and_metadata_are_votives() -> None:
    run(
        """
        import importlib.metadata, importlib.util, pickle, types
        import votive
        import torch, torch.nn as nn, torch.nn.functional as F, torchvision, torchaudio
        import torch.optim.lr_scheduler as sched
        from torch.utils.data import DataLoader, Dataset
        from torch.nn.modules.linear import Linear
        from torch.nn.modules.loss import CrossEntropyLoss
        from torch.optim.adamw import AdamW
        from torch.distributions.normal import Normal
        from torch.autograd.variable import Variable
        from torch.nn.parameter import Parameter
        from torch.cuda.amp.grad_scaler import GradScaler
        assert torch.Tensor is votive.Tensor and nn.Linear is Linear is votive.nn.Linear
        assert torch.optim.AdamW is AdamW and torch.distributions.Normal is Normal
        assert isinstance(torch, types.ModuleType) and torch.nn.functional is F
        assert torch.__version__ == "2.13.0" and torch.__version__ >= (2, 4) and torch.__version__ < "2.14"
        assert importlib.metadata.version("torch") == "2.13.0"
        assert importlib.metadata.distribution("torch").metadata["Name"] == "torch"
        assert importlib.util.find_spec("torch") is not None
        assert importlib.util.find_spec("torch.nothing") is None
        assert not hasattr(torch, "glass") and not hasattr(torch, "nothing")
        assert torch.version.cuda is None and torch.version.hip is None
        x = torch.zeros(2, 3, dtype=torch.float64)
        assert repr(x.shape) == "torch.Size([2, 3])" and str(x.dtype) == "torch.float64"
        assert repr(x[0, :1]) == "tensor([0.], dtype=torch.float64)" and x.type() == "torch.DoubleTensor"
        assert pickle.loads(pickle.dumps(nn.Linear(1, 1))).in_features == 1
        scope = {}
        exec("from torch import *", scope)
        assert scope["tensor"] is torch.tensor and "annotations" not in scope
        """
    )


def test_what_a_program_replaces_is_replaced_in_votive() -> None:
    run(
        """
        import torch, votive
        before = torch.nn.init.kaiming_uniform_
        calls = []
        torch.nn.init.kaiming_uniform_ = lambda x, **options: calls.append(x.shape)
        torch.nn.Linear(2, 3)
        assert calls == [(3, 2)] and votive.nn.init.kaiming_uniform_ is not before
        torch.nn.init.kaiming_uniform_ = before
        torch.mine = 3
        assert torch.mine == 3 and not hasattr(votive, "mine")
        """
    )


def test_what_is_refused_says_why_and_counts_as_absent() -> None:
    run(
        """
        import torch, torch.distributed.rpc
        assert not hasattr(torch, "choose_qparams_optimized")
        try:
            torch.choose_qparams_optimized
        except AttributeError as error:
            assert "engine" in str(error) and "torch.ao" in str(error), error
        try:
            from torch.distributed.rpc import rpc_sync
        except ImportError as error:
            assert "do not call one another's functions" in str(error), error
        else:
            raise AssertionError
        assert isinstance(torch.distributed.fsdp.FSDPModule, type)
        try:
            torch.distributed.fsdp.FSDPModule()
        except NotImplementedError as error:
            assert "torch.distributed.fsdp.FSDPModule is not part of votive" in str(error), error
        """
    )


def test_the_alias_comes_and_goes_and_leaves_nothing() -> None:
    code = """
import sys, votive
before = {n for n in sys.modules if n.startswith("torch")}
with votive.torch.as_torch():
    import torch, torch.nn
    assert hasattr(votive.Tensor, "storage") and repr(votive.float32) == "torch.float32"
    with votive.torch.as_torch():
        pass
    assert votive.torch.installed()
    kept = torch
assert not votive.torch.installed() and before == {n for n in sys.modules if n.startswith("torch")}
assert not hasattr(votive.Tensor, "storage") and repr(votive.float32) == "votive.float32"
assert kept.ones(1).tolist() == [1.0]
sys.modules["torch"] = type(sys)("torch")
try:
    votive.torch.install()
except RuntimeError as error:
    assert "torch is imported already" in str(error)
else:
    raise AssertionError
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("how", ["script", "module"])
def test_programs_get_their_arguments_and_the_files_beside_them(how: str, tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("import torch\nVALUE = torch.tensor([1.0, 2.0]).sum().item()\n")
    program = "import sys, beside, torch\nprint(sys.argv[1:], beside.VALUE, __name__, torch.zeros(1).dtype)\n"
    (tmp_path / "program.py").write_text(program)
    what = [str(tmp_path / "program.py")] if how == "script" else ["-m", "program"]
    done = subprocess.run(
        [sys.executable, "-m", "votive.torch", *what, "a", "--b"],
        env={**__import__("os").environ, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == "['a', '--b'] 3.0 __main__ torch.float32\n", done.stderr


def test_processes_start_together_and_fail_together() -> None:
    run(
        """
        import torch
        import torch.multiprocessing as mp

        def work(rank, queue):
            queue.put((rank, torch.ones(2).sum().item()))

        def fail(rank):
            if rank == 1:
                raise ValueError("rank 1 fails")

        queue = mp.get_context("fork").SimpleQueue()
        mp.spawn(work, args=(queue,), nprocs=2)
        assert sorted(queue.get() for _ in range(2)) == [(0, 2.0), (1, 2.0)]
        try:
            mp.spawn(fail, nprocs=2)
        except mp.ProcessRaisedException as error:
            assert "rank 1 fails" in str(error) and error.error_index == 1
        else:
            raise AssertionError
        assert mp.get_sharing_strategy() in mp.get_all_sharing_strategies() and mp.cpu_count() > 0
        """
    )


def test_importing_votive_does_not_import_the_alias() -> None:
    code = "import sys, votive; assert not [n for n in sys.modules if n.startswith('votive.torch')]"
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0
