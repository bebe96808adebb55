"""An argument that is accepted is honoured: no public function has a parameter it never reads."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import votive

ROOT = Path(votive.__file__).parent
# Rows of kernels, and what ONNX's operators mean, all have their operator's signature and read what they need.
HIDDEN = ("backends", "formula", "onnx.rules_", "onnx.read_", "onnx.recurrent")
# Called by the language, not by name.
CALLED = {"__init__", "__call__", "__new__"}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def _parameters(function: Function) -> list[str]:
    a = function.args
    rest = [x for x in (a.vararg, a.kwarg) if x is not None]
    return [x.arg for x in (*a.posonlyargs, *a.args, *a.kwonlyargs, *rest)]


def _abstract(function: Function) -> bool:
    """Whether a body only says what others do: nothing, `...`, or raising."""
    body = [s for s in function.body if not (isinstance(s, ast.Expr) and isinstance(s.value, ast.Constant))]
    return all(isinstance(s, ast.Raise) for s in body) and len(body) <= 1


def _unread(function: Function) -> list[str]:
    names = [n for s in function.body for n in ast.walk(s) if isinstance(n, ast.Name)]
    read = {n.id for n in names if isinstance(n.ctx, ast.Load)}
    if "locals" in read or _abstract(function):
        return []
    own = ("self", "cls")
    return [p for p in _parameters(function) if p not in (*own, *read) and not p.startswith("_")]


def _public(name: str) -> bool:
    return name in CALLED or not name.startswith("_")


class Package:
    """The classes and public functions of the source files."""

    def __init__(self) -> None:
        self.bases: dict[str, set[str]] = {}
        self.methods: dict[str, dict[str, set[str]]] = {}
        self.functions: list[tuple[str, str | None, Function]] = []
        for path in sorted(ROOT.rglob("*.py")):
            parts = path.relative_to(ROOT).with_suffix("").parts
            self._visit(".".join(parts), ast.parse(path.read_text()), ".".join(parts).startswith(HIDDEN))

    def _visit(self, module: str, tree: ast.Module, hidden: bool) -> None:
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found = {ast.unparse(b).split("[")[0].rpartition(".")[2] for b in node.bases}
                self.bases.setdefault(node.name, set()).update(found)
                own = self.methods.setdefault(node.name, {})
                for child in node.body:
                    if isinstance(child, Function):
                        own.setdefault(child.name, set()).update(_parameters(child))
        if hidden:
            return
        for node in tree.body:
            if isinstance(node, Function):
                self.functions.append((module, None, node))
            elif isinstance(node, ast.ClassDef):
                methods = [c for c in node.body if isinstance(c, Function)]
                self.functions += [(module, node.name, c) for c in methods]

    def inherited(self, cls: str, method: str, parameter: str) -> bool:
        """Whether a base has the parameter: those who call it do not know which class it is."""
        seen, left = {cls}, list(self.bases.get(cls, ()))
        while left:
            base = left.pop()
            if base in seen:
                continue
            seen.add(base)
            if parameter in self.methods.get(base, {}).get(method, ()):
                return True
            left += self.bases.get(base, ())
        return False

    def unread(self) -> Iterator[str]:
        for module, cls, function in self.functions:
            if not _public(function.name) or (cls or "").startswith("_"):
                continue
            where = ".".join(x for x in (module, cls, function.name) if x)
            for parameter in _unread(function):
                inherited = cls is not None and self.inherited(cls, function.name, parameter)
                if not inherited or function.name == "__init__":
                    yield f"{where}: {parameter}"


# What is accepted and not read, and why that loses nothing. A pattern covers what begins with it.
KNOWN = {
    "ao.nn.quantized.functions.ReLU6.from_float": "there is no weight that could keep its scale",
    "ao.nn.quantized.functions.Dropout.from_float": "there is no weight",
    "ao.nn.quantized.stubs.": "there is no weight",
    # Defaults that derived classes narrow.
    "glass.probe.Probe.reads:": "a probe that does not say more looks at everything",
    # How something is computed, where there is one way here and the result is the same.
    "autograd.gradcheck.gradcheck: check_undefined_grad": "False asks for less than is checked",
    "autograd.gradcheck.gradcheck: fast_mode": "asks for less than is checked",
    "nn.utils.clip_grad.get_total_norm: foreach": "one way of computing",
    "nn.utils.clip_grad.clip_grads_with_norm_: foreach": "one way of computing",
    "nn.utils.clip_grad.clip_grad_value_: foreach": "one way of computing",
    "ops.batch_norm.torch_batch_norm: cudnn_enabled": "one way of computing",
    "ops.batch_norm.torch_instance_norm: cudnn_enabled": "one way of computing",
    "ops.group_norm.torch_group_norm: cudnn_enabled": "one way of computing",
    "ops.normalization.torch_layer_norm: cudnn_enable": "one way of computing",
    "distributed.collectives.barrier: device_ids": "there are no streams to wait for: tensors are there before they go",
    "distributed.collectives.monitored_barrier: wait_all_ranks": "all that are missing are named in either case",
    "distributed.tensor.dtensor.DTensor.redistribute: async_op": "messages have come when it returns, as wait() would",
    "distributed.groups.new_group: device_id": "what NCCL alone asks for",
    "distributed.objects.": "objects travel as bytes of main memory, in one way",
    "distributed.world.init_process_group: device_id": "what NCCL alone asks for",
    "onnx.export.export: dynamo": "one exporter stands for both of torch's",
    "torch.aten.is_distributed: input": "no tensor is",
    "torch.aten.lobpcg: ": "what only an iteration needs",
    "torch.finder.": "the import system's protocol",
    "torch.overlays.compiler.substitute_in_graph:": "nothing reads bytecode that could be substituted",
    "torch.overlays.compiler.list_backends: exclude_tags": "the one there is bears no tag",
    "torch.overlays.utils._pytree.": "how specs are written to files, which they are not here",
    "torch.process.set_flush_denormal: mode": "it answers that the mode is not there, whatever was asked",
    "torch.variable.Variable.__new__: volatile": "torch ignores it, too",
    "ops.sort.sort: stable": "sorting is always stable",
    "ops.sort.argsort: stable": "sorting is always stable",
    "ops.sort.unique: sorted": "the result is always sorted, as torch's is on most devices",
    "ops.repeat.expand: implicit": "of torch's compiler; changes nothing there either",
    "ops.view_copies.expand_copy: implicit": "of torch's compiler; changes nothing there either",
    "ops.softmax.gumbel_softmax: eps": "without effect in torch, too",
    "ops.varlen_attention.varlen_attention_composite: max_": "the kernels' bound of lengths",
    "ops.rounding.real_of_complex: x": "a rule of types",
    "ops.copy.pin_memory: device": "one kind of pinned memory; deprecated in torch",
    "core.storage.Storage.is_pinned: device": "one kind of pinned memory; deprecated in torch",
    "surface.facts.Facts.is_pinned: device": "one kind of pinned memory; deprecated in torch",
    # NumPy's, where nothing can come of it here.
    "np.comparing.shares_memory: max_work": "the answer is always exact",
    "np.comparing.may_share_memory: max_work": "the answer is always exact",
    "np.creation.array: subok": "arrays have no subclasses",
    "np.creation.copy: subok": "arrays have no subclasses",
    "np.creation.empty_like: subok": "arrays have no subclasses",
    "np.creation.zeros_like: subok": "arrays have no subclasses",
    "np.creation.ones_like: subok": "arrays have no subclasses",
    "np.creation.full_like: subok": "arrays have no subclasses",
    "np.manipulation.broadcast_to: subok": "arrays have no subclasses",
    "np.manipulation.broadcast_arrays: subok": "arrays have no subclasses",
    "np.products.matmul: subok": "arrays have no subclasses",
    "np.ufunc.ufunc.__call__: subok": "arrays have no subclasses",
    "np.functional.vectorize.__init__: cache": "the first call is never made twice",
    "np.interplay.call_function: types": "NumPy's protocol",
    "np.linalg.svd: hermitian": "one way of computing",
    "np.linalg.matrix_rank: hermitian": "one way of computing",
    "np.linalg.pinv: hermitian": "one way of computing",
    "np.nan_functions.nanmedian: overwrite_input": "a permission that is not used",
    "np.nan_functions.nanquantile: overwrite_input": "a permission that is not used",
    "np.nan_functions.nanpercentile: overwrite_input": "a permission that is not used",
    "np.quantiles.median: overwrite_input": "a permission that is not used",
    "np.quantiles.quantile: overwrite_input": "a permission that is not used",
    "np.quantiles.percentile: overwrite_input": "a permission that is not used",
    "np.products.einsum: optimize": "one way of computing",
    "np.products.einsum_path: einsum_call": "NumPy's own use",
    "np.random.__init__.RandomState.get_state: legacy": "one form of states",
    "np.random.discrete.Discrete.choice: shuffle": "chosen ones always come in random order",
    "np.searching.sort: stable": "sorting is always stable",
    "np.searching.argsort: stable": "sorting is always stable",
    "np.searching.partition: kind": "one way of computing",
    "np.searching.argpartition: kind": "one way of computing",
    "np.sets.unique: sorted": "the result is always sorted",
    "np.sets.isin: assume_unique": "one way of computing",
    # Safe whatever is asked for.
    "io.torch_file.load: weights_only": "nothing in a file is ever run",
    "serialization.__init__.load: weights_only": "nothing in a file is ever run",
    "io.torch_parts.ArrayType.__init__: rest": "what a pickled dtype says of copies",
    # As the original has it, where it has no effect either.
    "audio.functional.spectrum.inverse_spectrogram: pad_mode": "what was padded is cut away",
    "models.beit.BeitModel.forward: interpolate_pos_encoding": "BEiT always does",
    "models.whisper_layers.WhisperEncoder.forward: attention_mask": "trained on silence as it is",
    "nn.layers.linear.Identity.__init__: ": "takes what the layer it stands for would take",
    "vision.models.": "progress of a download, of which there is none",
    # Signatures that others call.
    "fx.graph_module.GraphModule.__new__: ": "read by __init__",
    "fx.interpreter.Interpreter.": "all kinds of nodes are called alike, and derived classes read more",
    "fx.node.Node.normalized_arguments: ": "types of overloads, of which votive's functions have none",
    "fx.tracer.Tracer.is_leaf_module: module_qualified_name": "derived classes decide by it",
    "fx.tracer.Tracer.getattr: attr": "derived classes decide by it",
    "autograd.modes.no_grad.__init__: fn": "read by __new__",
    "nn.parameter.Parameter.__init__: ": "read by __new__",
    "nn.parameter.UninitializedParameter.__init__: ": "read by __new__",
    "data.collate.collate_": "one signature for all collate functions",
    "models.diffusion.schedulers.base.Scheduler.scale_model_input: timestep": "Euler's and its like read it",
    "models.fused_decoder.MLP.step: ": "one signature for all blocks",
    "models.placement.Follow.back: ": "a hook's signature",
    "models.pretrained.DecoderLM.predictions: attention_mask": "mixtures of experts read it",
    "models.trocr.TrOCRPositions.forward: input_ids": "TrOCRSinusoids reads it",
    "nn.layers.rope_scaling.": "one signature for all rules",
    "nn.utils.spectral_norm.SpectralNorm.__call__: inputs": "a hook's signature",
    "nn.utils.weight_norm.WeightNorm.__call__: inputs": "a hook's signature",
    "speech.token_stream.TokenStreamer.__call__: ids": "a logits processor's signature",
    "studio.actions.explain.names: job": "an action's signature",
    "train.progress.Lines.start: done": "one signature for all displays",
    "train.progress.Silent.": "one signature for all displays",
    "vision.transforms.base.Transform.make_params: flat_inputs": "what subclasses read",
    # Under torch's names: questions with one answer here.
    "accelerator.current_accelerator: check_available": "there is a backend where there is a GPU",
    "accelerator.get_device_capability: device": "all devices compute with the same dtypes",
    "cpu.current_stream: device": "there is one CPU",
    "futures.Future.__init__: devices": "of torch's remote calls; waiting is the same for all",
    "hub.": "of downloads, and nothing is downloaded",
    "jit.": "for TorchScript's compiler; the program runs as Python",
    "mtia.is_bf16_supported: ": "no for both",
    "xpu.is_bf16_supported: ": "no for both",
    "nn.attention.block_mask.noop_mask: ": "a mask_mod's signature",
    "nn.parallel.comm.broadcast_coalesced: buffer_size": "how much is copied at once",
    "nn.parallel.comm.reduce_add_coalesced: buffer_size": "how much is copied at once",
    "nn.parallel.comm.scatter: streams": "copies wait for what they read",
    "nn.utils.pruning.BasePruningMethod.__call__: inputs": "a hook's signature",
    "profiler.": "of Kineto, which does not record here",
    "utils.flop_counter.FlopCounterMode.__init__: mods": "without effect in torch, too",
}


def _reason(unread: str) -> str | None:
    return next((why for start, why in KNOWN.items() if unread.startswith(start)), None)


def test_no_public_function_ignores_an_argument() -> None:
    ignored = [u for u in Package().unread() if _reason(u) is None]
    assert not ignored, "honour these arguments, or raise if they are given:\n" + "\n".join(ignored)


def test_every_exception_is_still_one() -> None:
    found = list(Package().unread())
    assert not [start for start in KNOWN if not any(u.startswith(start) for u in found)]


@pytest.mark.parametrize(
    ("source", "unread"),
    [
        ("def f(a, b=1): return a", ["b"]),
        ("def f(a, *rest, **options): return a", ["rest", "options"]),
        ("def f(a):\n    del a\n    return 1", ["a"]),
        ("def f(a): return (lambda: a)()", []),
        ("def f(a): raise NotImplementedError", []),
        ("def f(a):\n    '''Says what others do.'''", []),
        ("def f(a): return locals()", []),
    ],
)
def test_an_argument_that_is_not_read_is_seen(source: str, unread: list[str]) -> None:
    (function,) = ast.parse(source).body
    assert isinstance(function, ast.FunctionDef)
    assert _unread(function) == unread


@pytest.mark.parametrize(
    "make",
    [
        lambda: votive.rand(2, layout="sparse"),
        lambda: votive.randn(2, layout="sparse"),
        lambda: votive.randint(3, (2,), layout="sparse"),
        lambda: votive.randperm(2, layout="sparse"),
        lambda: votive.rand_like(votive.ones(2), layout="sparse"),
        lambda: votive.randn_like(votive.ones(2), layout="sparse"),
        lambda: votive.randint_like(votive.ones(2), 3, layout="sparse"),
        lambda: votive.normal(0.0, 1.0, (2,), layout="sparse"),
    ],
)
def test_random_tensors_refuse_a_layout_that_is_not_theirs(make: Any) -> None:
    with pytest.raises(RuntimeError, match="layout must be strided"):
        make()


def test_normal_refuses_a_device_that_its_tensors_would_overrule() -> None:
    with pytest.raises(TypeError, match="tensors bring their own"):
        votive.normal(votive.ones(2), 1.0, device="cpu")


def test_gradients_are_checked_against_weights_with_gaps_in_memory() -> None:
    seen = []

    def f(x: Any) -> Any:
        y = x * x
        if y.requires_grad:
            y.register_hook(lambda g: seen.append(g.is_contiguous()))
        return y

    x = votive.ones(3, dtype=votive.float64, requires_grad=True)
    assert votive.autograd.gradgradcheck(f, (x,), gen_non_contig_grad_outputs=True)
    assert False in seen


if __name__ == "__main__":
    print("\n".join(Package().unread()))
