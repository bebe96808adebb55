"""What torch has and votive does not: names or patterns, the reason, and what to use instead. Data, and its reader."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Any


class Refused(AttributeError):
    """A name of torch that votive does not have; the message says why and what to use."""


@dataclass(frozen=True)
class Refusal:
    """One row: `names` is a path of torch with * for one part's text, several separated by blanks."""

    names: str
    reason: str
    instead: str = ""
    # Classes that programs name in annotations and isinstance tests: there to be named, refused when made.
    stub: bool = False

    def text(self, path: str) -> str:
        """The message that a program sees."""
        use = f" {self.instead}" if self.instead else ""
        return f"{path} is not part of votive: {self.reason}{use}"

    def make_stub(self, path: str = "") -> Any:
        """A class that can be named and tested against, and says the reason when it is made."""
        row = self

        def refuse(cls: type, *args: object, **options: object) -> object:
            raise NotImplementedError(row.text(f"{cls.__module__}.{cls.__name__}"))

        space, _, name = path.rpartition(".")
        return type(name or "Refused", (), {"__new__": refuse, "__module__": space or "torch", "__doc__": self.reason})


_WHOLE = "no tensor is one for several processes here; parameters in shards are tensors of each process's rows."
_SCRIPT = "it belongs to the insides of TorchScript, and programs are not parsed here."
_LIBRARY = "it calls one library's kernel by name; votive chooses kernels itself."
_ENGINE = "it calls one engine's kernel with weights that it has packed."

REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        "torch.distributed.tensor.DTensor torch.distributed.tensor.Placement torch.distributed.fsdp.FSDPModule "
        "torch.distributed.fsdp.FullyShardedDataParallel torch.distributed.tensor.Replicate "
        "torch.distributed.tensor.Shard torch.distributed.tensor.Partial torch.distributed.rpc.RRef",
        _WHOLE,
        "Its name can stand in annotations and tests.",
        stub=True,
    ),
    Refusal("torch.PyTorchFileReader torch.PyTorchFileWriter", _SCRIPT, "torch.load reads files.", stub=True),
    Refusal(
        "torch.distributed.tensor.* torch.distributed.fsdp.* torch.distributed.pipelining.*",
        _WHOLE,
        "There are torch.nn.parallel.DistributedDataParallel and torch.distributed.fsdp.fully_shard.",
    ),
    Refusal(
        "torch.distributed.rpc.*",
        "processes exchange tensors and objects here, and do not call one another's functions.",
        "torch.distributed has send, recv and send_object_list.",
    ),
    Refusal(
        "torch.distributed.checkpoint.*",
        "checkpoints are safetensors with an index here, without planners and storages of torch's own.",
        "torch.distributed.checkpoint has save and load.",
    ),
    Refusal("torch.distributed.*", "votive.distributed has no such piece.", "It has the usual collectives, on MPI."),
    Refusal(
        "torch.*Type torch.*TypeBuilder torch.AliasDb torch.Argument torch.ArgumentSpec torch.Block torch.BufferDict "
        "torch.CallStack torch.Code torch.CompleteArgumentSpec torch.DeepCopyMemoTable torch.FunctionSchema "
        "torch.ErrorReport torch.ExecutionPlan torch.FileCheck torch.Gradient torch.Graph torch.GraphExecutorState "
        "torch.IODescriptor torch.LiteScriptModule torch.Node torch.OperatorInfo torch.Script* torch.StaticModule "
        "torch.TracingState torch.Type torch.Use torch.Value torch.CompilationUnit torch.JITException "
        "torch.ModuleDict torch.ParameterDict torch.Capsule torch.cpp torch.*Storage*Context torch.DispatchKey* "
        "torch.ExcludeDispatchKeyGuard torch.parse_* torch.merge_type_from_type_comment torch.unify_type_list "
        "torch.import_ir_module* torch.PyTorchFile* torch.SerializationStorageContext",
        _SCRIPT,
        "votive.compile makes graphs, votive.io reads files of torch.",
    ),
    Refusal(
        "torch.AVG torch.SUM torch.AggregationType torch.BenchmarkConfig torch.BenchmarkExecutionStats "
        "torch.LockingLogger torch.NoopLogger torch.ThroughputBenchmark torch.utils.ThroughputBenchmark "
        "torch.FatalError",
        "it counts and classifies inside of torch's own runtime.",
        "torch.profiler measures programs here.",
    ),
    Refusal(
        "torch.cudnn_* torch.miopen_* torch.mkldnn_* torch.fbgemm_* torch.native_norm torch.batch_norm_backward_* "
        "torch.batch_norm_elemt torch.batch_norm_gather_* torch.batch_norm_stats torch.Tensor.to_mkldnn",
        _LIBRARY,
        "Call the function without the prefix, from torch.nn.functional.",
    ),
    Refusal(
        "torch.choose_qparams_optimized torch.quantized_gru_cell torch.quantized_lstm_cell torch.quantized_rnn_* "
        "torch.ops.quantized.*",
        _ENGINE,
        "Use the modules of torch.ao.nn.quantized and the functions beside torch.quantize_per_tensor.",
    ),
    Refusal(
        "torch.ao.quantization.quantize_fx.* torch.ao.quantization.prepare_fx torch.ao.quantization.convert_fx "
        "torch.ao.quantization.prepare_qat_fx torch.ao.quantization.*_jit torch.ao.quantization.script_* "
        "torch.ao.quantization.get_fuser_method_new torch.ao.quantization.get_quantized_operator "
        "torch.quantization.quantize_fx.* torch.quantization.*_fx torch.quantization.*_jit",
        "it rewrites graphs; votive rewrites modules.",
        "Use fuse_modules, prepare and convert, or quantize_dynamic.",
    ),
    Refusal(
        "torch.ao.quantization.AffineQuantizedObserverBase torch.ao.quantization.MappingType "
        "torch.ao.quantization.TorchAODType torch.ao.quantization.ZeroPointDomain",
        "it belongs to torchao's own observers.",
        "torch.ao.quantization.ObserverBase is there.",
    ),
    Refusal(
        "torch.ao.* torch.quantization.* torch.nn.quantized.* torch.nn.quantizable.* torch.nn.intrinsic.* "
        "torch.nn.qat.*",
        "the eager workflow of torch.ao.quantization with linear, convolution, recurrent and embedding modules is "
        "here, not reference, sparse and quantizable modules, pruning, comparison tools and types of 4 bits.",
        "votive.quantize_ puts weights in blocks of 2 to 8 bits.",
    ),
    Refusal(
        "torch.*autocast_ipu_* torch.*autocast_xla_* torch.*_autocast_ipu_* torch.*_autocast_xla_*",
        "there are no IPU and no XLA devices.",
        "torch.autocast takes 'cpu' and 'cuda'.",
    ),
    Refusal(
        "torchvision.models.*_Weights",
        "networks of votive.vision load weights from files, and none are downloaded by name.",
        "Give the file: resnet18(weights=path). The name can be imported.",
        stub=True,
    ),
    Refusal(
        "torchvision.models.vgg* torchvision.models.alexnet torchvision.models.squeezenet*",
        "it is not among the networks of votive.vision.models.",
        "votive.vision.models.list_models() names them. The name can be imported.",
        stub=True,
    ),
    Refusal(
        "torch.export.*",
        "exported programs are one graph of votive's operators, which is neither cut into modules nor decomposed.",
        "torch.export.export, save and load work; torch.fx changes graphs.",
    ),
    Refusal(
        "torch.package.*",
        "packages with code inside would have to be run to be read.",
        "Save state_dict() and keep the code beside it.",
    ),
    Refusal(
        "torch.utils.cpp_extension.*",
        "extensions are compiled against torch's own headers.",
        "votive.register_kernel takes Triton, C or Python functions as kernels.",
    ),
    Refusal("torch.utils.mobile_optimizer.*", "TorchScript for telephones is not here.", "votive.onnx.export."),
    Refusal(
        "torch.utils.data.*Pipe torch.utils.data.*datapipe* torch.utils.data.DataChunk "
        "torch.utils.data.*_validation* "
        "torch.utils.data.non_deterministic torch.utils.data.datapipes*",
        "torch no longer develops its data pipes.",
        "torch.utils.data.IterableDataset and generators do the same.",
    ),
    Refusal(
        "torch.utils.*privateuse1* torch.utils.get_cpp_backtrace torch.utils.cmake_prefix_path",
        "it is for extensions in C++ that are built against torch.",
        "votive.register_kernel takes kernels.",
    ),
    Refusal(
        "torch.cuda.tunable.*",
        "matrix products are chosen by measurements of votive's own.",
        "Nothing has to be switched on.",
    ),
    Refusal("torch.cuda.gds.*", "files are read through the host's memory.", "torch.load and votive.io."),
    Refusal(
        "torch.cuda.green_contexts.* torch.cuda.GreenContext torch.cuda.jiterator torch.cuda.jiterator.*",
        "it is made of CUDA's C++ that torch compiles at run time.",
        "votive.fuse writes kernels from formulas.",
    ),
    Refusal("torch.cuda.nccl torch.cuda.nccl.*", "one process uses one GPU here.", "Move tensors with .to(device)."),
    Refusal(
        "torch.cuda.*CUDAPluggableAllocator torch.cuda.*change_current_allocator torch.cuda.*MemPool "
        "torch.cuda.*use_mem_pool torch.cuda.*caching_allocator_disabled torch.cuda.*caching_allocator_enable "
        "torch.cuda.*reset_accumulated_host_memory_stats torch.cuda.current_solver_handle",
        "memory of the GPU comes from votive's own allocator, which cannot be exchanged.",
        "torch.cuda.empty_cache and torch.cuda.memory_stats work.",
    ),
    Refusal(
        "torch.cuda.sparse.*",
        "classes of sparse tensors per dtype are older than layouts.",
        "torch.sparse_coo_tensor(..., device='cuda').",
    ),
    Refusal(
        "torch.nn.functional.scaled_mm torch.nn.functional.scaled_grouped_mm torch.nn.functional.ScalingType "
        "torch.nn.functional.SwizzleType",
        "matrix products of scaled eight-bit numbers are not here.",
        "Multiply in bfloat16 and scale.",
    ),
    Refusal(
        "torch.UntypedStorage.hpu torch.UntypedStorage.mps torch.TypedStorage.hpu torch.*Storage.float8_*fnuz",
        "there are no such devices and types.",
        "cpu() and cuda().",
    ),
    Refusal(
        "torch.compiler.*_unsafe torch.compiler.*cache_artifacts torch.compiler.load_compiled_function "
        "torch.compiler.set_enable_guard_collectives",
        "guards and caches of votive's compiler are its own.",
        "votive.compile explains itself: votive.compiler.explain.",
    ),
    Refusal(
        "torch.utils.benchmark.Callgrind* torch.utils.benchmark.CopyIfCallgrind torch.utils.benchmark.Function* "
        "torch.utils.benchmark.FuzzedSparseTensor",
        "instructions are not counted, and layouts of sparse tensors not invented here.",
        "torch.utils.benchmark.Timer and Compare measure time.",
    ),
    Refusal(
        "torch.sparse.*SemiStructured* torch.sparse.to_sparse_semi_structured",
        "two of four numbers as zeros is a layout of NVIDIA's libraries.",
        "Multiply dense tensors, or use the sparse layouts.",
    ),
    Refusal(
        "torch.serialization.skip_data torch.serialization.normalize_storage_type "
        "torch.serialization.validate_hpu_device torch.serialization.storage_to_tensor_type "
        "torch.serialization.StorageType",
        "it belongs to the insides of torch's own writer.",
        "torch.save and torch.load.",
    ),
    Refusal("torch.testing.FileCheck torch.onnx.ops*", "it looks at texts of torch's compilers."),
    Refusal(
        "torch.cuda.cudart torch.cuda.cudaStatus torch.cuda.check_error torch.cuda.current_blas_handle",
        "votive calls the driver itself and hands out no handles of libraries.",
        "torch.cuda.synchronize raises what went wrong; torch.cuda.mem_get_info and torch.cuda.profiler work.",
    ),
    Refusal(
        "torch.autograd.profiler.*Unique torch.autograd.profiler.KinetoStepTracker "
        "torch.autograd.profiler.MemRecordsAcc torch.autograd.profiler.parse_nvprof_trace "
        "torch.autograd.*BackwardCFunction "
        "torch.autograd.*NestedIOFunction torch.autograd.*enforce_grad_layout_policy "
        "torch.nn.*LinearCrossEntropyOptions "
        "torch.utils.hooks.BackwardHook torch.onnx.ExportableModule torch.onnx.InputObserver",
        "it belongs to the insides of torch's engine.",
        "Leave it out.",
    ),
    Refusal(
        "torch.chalf torch.complex32 torch.Tensor.chalf",
        "complex numbers of half precision have no arithmetic here.",
        "Compute with complex64.",
    ),
    Refusal(
        "torch.autograd.graph.region_activation_memory_budget torch.autograd.graph.set_override_stale_capture_stream "
        "torch.autograd.graph.set_warn_on_accumulate_grad_stream_mismatch "
        "torch.optim.swap_in_optimizer_params_and_state "
        "torch.func.debug_unwrap torch.multiprocessing.reducer "
        "torch.utils.checkpoint.SAC_IGNORED_OPS "
        "torch.utils.checkpoint.GraphExecGroup torch.accelerator.Graph "
        "torch.mps.profiler torch.xpu.streams torch.xpu.is_tf32_supported torch.cpu.get_capabilities",
        "it belongs to the insides of torch's engine and devices.",
        "Leave it out.",
    ),
    Refusal(
        "torch.library.fallthrough_kernel torch.library.get_kernel torch.library.register_torch_dispatch",
        "it speaks of the keys of torch's dispatcher.",
        "torch.library.custom_op and its register functions.",
    ),
    Refusal(
        "torch.backends.cuda.*workspace_size torch.backends.cuda.cuFFT* "
        "torch.backends.cuda.preferred_rocm_fa_library "
        "torch.backends.cuda.cuBLASModule",
        "work memory and plans of NVIDIA's libraries are kept by votive itself.",
        "torch.cuda.empty_cache gives memory back.",
    ),
    Refusal(
        "torch._logging.*structured* torch._logging.set_logs torch._logging.getArtifactLogger",
        "it names the logs of torch's compiler.",
        "votive.compiler.explain says what was compiled and why not.",
    ),
    Refusal(
        "torch.autograd.gradcheck.get_*_jacobian*",
        "torch deprecated them.",
        "torch.autograd.functional.jacobian and torch.autograd.gradcheck.gradcheck.",
    ),
    Refusal(
        "torchvision.models.*_Weights torchvision.models.*Weights* torchvision.models.vgg* "
        "torchvision.models.alexnet "
        "torchvision.models.AlexNet torchvision.models.VGG torchvision.models.densenet* "
        "torchvision.models.inception* "
        "torchvision.models.googlenet torchvision.models.squeezenet* torchvision.models.mobilenet_v3_* "
        "torchvision.models.efficientnet_b* torchvision.models.convnext_* torchvision.models.swin_* "
        "torchvision.models.regnet_* torchvision.models.shufflenet_* torchvision.models.mnasnet*",
        "votive.vision has ResNets, ResNeXts, MobileNetV2, vision transformers and U-Nets.",
        "timm's architectures run on the alias.",
        stub=True,
    ),
    Refusal("torch.*_notes torch.nn.functional.*_notes", "it is a piece of text of torch's documentation."),
)
# Modules that can be imported although nothing in them is here, so that programs that only name them go on.
_MODULES = (
    "torch.ao.ns torch.ao.pruning torch.ao.quantization.quantize_fx torch.ao.nn.quantizable "
    "torch.nn.quantizable torch.package torch.utils.cpp_extension torch.utils.mobile_optimizer torch.cuda.tunable "
    "torch.cuda.gds torch.cuda.green_contexts torch.cuda.jiterator torch.cuda.nccl "
    "torch.distributed.algorithms torch.distributed.checkpoint torch.distributed.device_mesh "
    "torch.distributed.fsdp torch.distributed.nn torch.distributed.optim torch.distributed.pipelining "
    "torch.distributed.rpc torch.distributed.tensor torch.distributed.tensor.parallel "
    "torch.distributed.elastic torch.distributed.algorithms.join "
    "torch.distributed.fsdp.fully_sharded_data_parallel torch.distributed.checkpoint.state_dict "
    "torch.distributed.distributed_c10d torch.distributed.algorithms.ddp_comm_hooks torch._inductor "
    "torch._inductor.config torch._functorch torch._functorch.config "
)
MODULES = frozenset(_MODULES.split())


@cache
def _patterns() -> tuple[tuple[re.Pattern[str], Refusal], ...]:
    rows = []
    for row in REFUSALS:
        for name in row.names.split():
            rows.append((re.compile(re.escape(name).replace(r"\*", ".*")), row))
    return tuple(rows)


@cache
def refusal(path: str) -> Refusal | None:
    """The row that refuses a path such as "torch.distributed.rpc.rpc_sync", or None."""
    for pattern, row in _patterns():
        if pattern.fullmatch(path):
            return row
    return None


def refused_modules() -> frozenset[str]:
    """Paths that can be imported although nothing is there."""
    return MODULES
