"""Which of votive's modules stands behind a path of torch. Data; a path that is not here is the same path in votive."""

from __future__ import annotations

import importlib.util
from functools import cache

from .refusals import refused_modules


def words(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


# First match wins. A star stands for the last parts of a path; several targets are asked in turn; () is overlays alone.
TARGETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("torch._C._nn", ("votive.nn.functional", "votive")),
    ("torch.ops*", ()),
    ("torch.profiler.profiler", ("votive.profiler",)),
    ("torch.classes*", ()),
    ("torch.version", ()),
    ("torch.config", ()),
    ("torch.types", ()),
    ("torch.storage", ()),
    ("torch.functional", ("votive",)),
    ("torch.tensor", ("votive.tensor",)),
    ("torch._tensor", ("votive.tensor",)),
    ("torch.nn.modules*", ("votive.nn.modules*", "votive.nn")),
    ("torch.nn.parameter", ("votive.nn.parameter", "votive.nn")),
    ("torch.nn.functional", ("votive.nn.functional",)),
    ("torch.quantization*", ("votive.ao.quantization*", "votive.ao.quantization")),
    ("torch.ao.quantization.*", ("votive.ao.quantization.*", "votive.ao.quantization")),
    ("torch.ao.nn.quantized.modules*", ("votive.ao.nn.quantized*", "votive.ao.nn.quantized")),
    ("torch.ao.nn.quantized.dynamic.modules*", ("votive.ao.nn.quantized.dynamic",)),
    ("torch.ao.nn.qat.modules*", ("votive.ao.nn.qat",)),
    ("torch.ao.nn.intrinsic.modules*", ("votive.ao.nn.intrinsic*", "votive.ao.nn.intrinsic")),
    ("torch.ao.nn.intrinsic.qat.modules*", ("votive.ao.nn.intrinsic.qat",)),
    ("torch.ao.nn.intrinsic.quantized.modules*", ("votive.ao.nn.intrinsic.quantized",)),
    ("torch.nn.quantized*", ("votive.ao.nn.quantized*",)),
    ("torch.nn.intrinsic*", ("votive.ao.nn.intrinsic*",)),
    ("torch.nn.qat*", ("votive.ao.nn.qat*",)),
    ("torch.nn.utils.*", ("votive.nn.utils.*", "votive.nn.utils")),
    ("torch.nn.parallel.*", ("votive.nn.parallel.*", "votive.nn.parallel")),
    ("torch.optim.lr_scheduler", ("votive.optim.lr_scheduler",)),
    ("torch.optim.swa_utils", ("votive.optim.swa_utils",)),
    ("torch.optim.*", ("votive.optim.*", "votive.optim")),
    ("torch.distributions.*", ("votive.distributions.*", "votive.distributions")),
    ("torch.autograd.*", ("votive.autograd.*", "votive.autograd")),
    ("torch.cuda.amp.*", ("votive.cuda.amp", "votive.amp")),
    ("torch.cuda.*", ("votive.cuda.*", "votive.cuda")),
    ("torch.cpu.amp.*", ("votive.cpu.amp", "votive.amp")),
    ("torch.amp.*", ("votive.amp.*", "votive.amp")),
    ("torch.utils.data._utils.*", ("votive.data.*", "votive.data")),
    ("torch.utils.data.*", ("votive.utils.data.*", "votive.data.*", "votive.data")),
    ("torch.signal.windows.*", ("votive.signal.windows",)),
    ("torch.multiprocessing", ("votive.torch.multiprocess", "votive.multiprocessing", "multiprocessing")),
    ("torch.serialization", ("votive.serialization",)),
    ("torch.quasirandom", ("votive",)),
    ("torch.random", ("votive.random",)),
    ("torch.return_types", ("votive.return_types",)),
    ("torchvision.ops.*", ("votive.vision.ops.*", "votive.vision.ops")),
    ("torchvision.datasets.*", ("votive.vision.datasets.*", "votive.vision.datasets")),
    ("torchvision*", ("votive.vision*",)),
    ("torchaudio*", ("votive.audio*",)),
)

# Parts of votive that torch has no namesake of; a program that asks `hasattr(torch, name)` shall hear the truth.
HIDDEN = words(
    "audio cli core data debug dispatch explain explanation formula fuse generation glass io models new_op "
    "register_kernel speech steps studio surface text train vision config np quant custom_op torch"
)

# Paths below these are there although no file of votive bears their name: torch keeps a file per class or family.
FAMILIES: dict[str, frozenset[str]] = {
    "torch.nn.modules": words(
        "activation adaptive batchnorm channelshuffle container conv distance dropout flatten fold instancenorm lazy "
        "linear loss module normalization padding pixelshuffle pooling rnn sparse transformer upsampling utils"
    ),
    "torch.ao.quantization": words(
        "observer fake_quantize qconfig qconfig_mapping stubs quantization_mappings fuser_method_mappings"
    ),
    "torch.quantization": words("observer fake_quantize qconfig qconfig_mapping stubs quantization_mappings"),
    "torch.ao.nn.quantized": words("modules"),
    "torch.ao.nn.quantized.dynamic": words("modules"),
    "torch.ao.nn.qat": words("modules"),
    "torch.ao.nn.intrinsic": words("modules"),
    "torch.ao.nn.intrinsic.qat": words("modules"),
    "torch.ao.nn.intrinsic.quantized": words("modules"),
    "torch.nn.utils": words(
        "clip_grad convert_parameters fusion init memory_format parametrizations parametrize prune rnn spectral_norm "
        "stateless weight_norm"
    ),
    "torch.optim": words(
        "adadelta adafactor adagrad adam adamax adamw asgd lbfgs lr_scheduler nadam optimizer radam rmsprop rprop sgd "
        "sparse_adam swa_utils _muon _functional _multi_tensor"
    ),
    "torch.distributions": words(
        "bernoulli beta binomial categorical cauchy chi2 constraint_registry constraints continuous_bernoulli "
        "dirichlet distribution exp_family exponential fishersnedecor gamma generalized_pareto geometric gumbel "
        "half_cauchy half_normal independent inverse_gamma kl kumaraswamy laplace lkj_cholesky log_normal "
        "logistic_normal lowrank_multivariate_normal mixture_same_family multinomial multivariate_normal "
        "negative_binomial normal one_hot_categorical pareto poisson relaxed_bernoulli relaxed_categorical studentT "
        "transformed_distribution transforms uniform utils von_mises weibull wishart"
    ),
    "torch.autograd": words("anomaly_mode forward_ad function functional grad_mode gradcheck graph profiler variable"),
    "torch.profiler": words("profiler"),
    "torch.utils.data._utils": words("collate"),
    "torch.utils.data": words("backward_compatibility dataloader dataset distributed graph sampler _utils"),
    "torch.cuda": words("amp comm graphs memory nvtx profiler random streams sparse nccl tunable gds"),
    "torch.cuda.amp": words("autocast_mode common grad_scaler"),
    "torch.cpu.amp": words("autocast_mode grad_scaler"),
    "torch.amp": words("autocast_mode grad_scaler"),
    "torch.signal.windows": frozenset({"windows"}),
    "torchvision.ops": words(
        "boxes ciou_loss diou_loss drop_block feature_pyramid_network focal_loss giou_loss misc poolers ps_roi_align "
        "ps_roi_pool roi_align roi_pool stochastic_depth"
    ),
    "torchvision.datasets": words("cifar fakedata folder mnist vision"),
}
PLAIN = frozenset(
    {
        "torch.functional",
        "torch.multiprocessing",
        "torch._tensor",
        "torch.quasirandom",
        "torch.signal",
        "torch.cpu.amp",
        "torch.cuda.amp",
    }
)


def _below(pattern: str, path: str) -> str | None:
    """What the star of a pattern stands for, or None where the pattern does not fit."""
    if not pattern.endswith("*"):
        return "" if pattern == path else None
    stem = pattern[:-1]
    if stem.endswith("."):
        return path[len(stem) :] if path.startswith(stem) else None
    if path == stem:
        return ""
    return path[len(stem) :] if path.startswith(f"{stem}.") else None


@cache
def targets(path: str) -> tuple[str, ...]:
    """The modules of votive that are asked for the names of a path of torch."""
    for pattern, found in TARGETS:
        star = _below(pattern, path)
        if star is not None:
            return tuple(t[:-1] + star if t.endswith("*") else t for t in found)
    return (f"votive{path.removeprefix('torch')}",)


def overlay(path: str) -> str:
    """The file of `overlays` that stands in front of a path."""
    root, _, rest = path.partition(".")
    below = rest if root == "torch" else path
    return f"{__package__}.overlays.{below}".rstrip(".")


@cache
def has_module(name: str) -> bool:
    """Whether there is such a module; none is imported but those above it."""
    import sys

    if name in sys.modules:
        return True
    try:
        found = importlib.util.find_spec(name)
        # A folder without an __init__ is no module of ours.
        return found is not None and found.origin is not None
    except (ModuleNotFoundError, AttributeError, ValueError):
        return False


def exists(path: str) -> bool:
    """Whether a path of torch can be imported here."""
    if path in ("torch", "torchvision", "torchaudio") or path in PLAIN or has_module(overlay(path)):
        return True
    parent, _, last = path.rpartition(".")
    if last in FAMILIES.get(parent, ()) or path in refused_modules():
        return True
    if parent == "torch" and last in HIDDEN:
        return False
    return any(has_module(target) for target in targets(path) if not _shared(target, path))


def _shared(target: str, path: str) -> bool:
    """Whether a target is the module above, which says nothing about the path itself."""
    return target.count(".") < path.count(".")
