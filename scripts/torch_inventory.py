"""Write down the public names of the installed torch, namespace by namespace, for the page of coverage.

    python scripts/torch_inventory.py > tests/alias/inventory.txt

A namespace that says `__all__` has those names; another has what it defines itself. Functions and classes without a
word of documentation are left out: they are torch's insides. Only this script needs torch.
"""

from __future__ import annotations

import importlib
import types
import warnings

# The namespaces that torch documents, in the order of its pages.
NAMESPACES = """
torch torch.nn torch.nn.functional torch.nn.init torch.nn.attention torch.nn.attention.bias
torch.nn.attention.flex_attention torch.nn.attention.varlen torch.nn.modules torch.nn.parallel torch.nn.parameter
torch.nn.utils torch.nn.utils.fusion torch.nn.utils.parametrizations torch.nn.utils.parametrize torch.nn.utils.prune
torch.nn.utils.rnn torch.nn.utils.stateless torch.amp torch.autograd torch.autograd.anomaly_mode
torch.autograd.forward_ad torch.autograd.function torch.autograd.functional torch.autograd.grad_mode
torch.autograd.gradcheck torch.autograd.graph torch.autograd.profiler torch.autograd.variable torch.library
torch.accelerator torch.cpu torch.cpu.amp torch.cuda torch.cuda.amp torch.cuda.comm torch.cuda.gds torch.cuda.graphs
torch.cuda.green_contexts torch.cuda.jiterator torch.cuda.memory torch.cuda.nvtx torch.cuda.random torch.cuda.sparse
torch.cuda.streams torch.cuda.tunable torch.mps torch.xpu torch.mtia torch.backends.cpu torch.backends.cuda
torch.backends.cudnn torch.backends.cusparselt torch.backends.mha torch.backends.mkl torch.backends.mkldnn
torch.backends.mps torch.backends.nnpack torch.backends.openmp torch.backends.opt_einsum torch.export torch.distributed
torch.distributed.checkpoint torch.distributed.device_mesh torch.distributed.fsdp torch.distributed.optim
torch.distributed.pipelining torch.distributed.rpc torch.distributed.tensor torch.distributions
torch.distributions.constraint_registry torch.distributions.constraints torch.distributions.kl
torch.distributions.transforms torch.compiler torch.fft torch.func torch.futures torch.fx torch.hub torch.jit
torch.linalg torch.masked torch.monitor torch.multiprocessing torch.nested torch.onnx torch.optim
torch.optim.lr_scheduler torch.optim.swa_utils torch.overrides torch.package torch.profiler torch.quasirandom
torch.random torch.serialization torch.signal.windows torch.sparse torch.special torch.storage torch.testing
torch.torch_version torch.types torch.functional torch.return_types torch.ao.quantization torch.utils
torch.utils.benchmark torch.utils.checkpoint torch.utils.cpp_extension torch.utils.data torch.utils.data.dataloader
torch.utils.data.dataset torch.utils.data.distributed torch.utils.data.sampler torch.utils.deterministic
torch.utils.dlpack torch.utils.flop_counter torch.utils.hooks torch.utils.mobile_optimizer torch.utils.model_zoo
torch.utils.module_tracker torch.utils.tensorboard torch.utils.weak torch.version torch.__config__ torch.__future__
torch._logging
"""
# Where a namespace is made by an object instead of a module, its names are said here.
SAID = {
    "torch.backends.cudnn": "allow_tf32 benchmark benchmark_limit deterministic enabled flags fp32_precision "
    "is_acceptable is_available rnn set_flags version",
    "torch.backends.mkldnn": "deterministic enabled flags is_available set_flags verbose",
    "torch.backends.opt_einsum": "enabled flags get_opt_einsum is_available set_flags strategy",
    "torch.utils.deterministic": "fill_uninitialized_memory",
    "torch.utils.tensorboard": "FileWriter RecordWriter SummaryWriter",
    "torch.cuda.jiterator": "",
}
CLASSES = """
torch.Tensor torch.Generator torch.Size torch.dtype torch.device torch.finfo torch.iinfo torch.UntypedStorage
torch.TypedStorage torch.nn.Module torch.optim.Optimizer torch.autograd.Function torch.distributions.Distribution
torch.distributions.Transform
"""


def reach(path: str) -> object:
    """The module or class at a path."""
    try:
        return importlib.import_module(path)
    except ImportError:
        parent, _, name = path.rpartition(".")
        return getattr(reach(parent), name)


def documented(value: object) -> bool:
    """Whether torch says anything about a function or class; of plain values nothing is asked."""
    return not callable(value) or bool(getattr(value, "__doc__", None))


def names(path: str) -> list[str]:
    """The public names of a namespace."""
    if path in SAID:
        return sorted(SAID[path].split())
    space = reach(path)
    said = getattr(space, "__all__", None)
    if isinstance(said, list | tuple | set):
        return sorted({n for n in said if hasattr(space, n) and documented(getattr(space, n))})
    found = []
    for name in dir(space):
        value = getattr(space, name, None)
        if name.startswith("_") or isinstance(value, types.ModuleType):
            continue
        home = getattr(value, "__module__", None)
        if (home is None or str(home).startswith("torch")) and documented(value):
            found.append(name)
    return found


def main() -> None:
    warnings.simplefilter("ignore")
    torch = importlib.import_module("torch")
    print(
        f"# torch {torch.__version__.partition('+')[0]}: public names by namespace; classes with their public members."
    )
    for path in NAMESPACES.split():
        print(f"{path}: {' '.join(names(path))}")
    for path in CLASSES.split():
        members = [n for n in dir(reach(path)) if not n.startswith("_") and documented(getattr(reach(path), n))]
        print(f"{path}: {' '.join(members)}")


if __name__ == "__main__":
    main()
