"""`votive plan`: what each rank of a training would hold and send, and how long a step would take."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import Commands, UsageError, command


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "plan",
        description="Forecast a training on many GPUs before any is started: memory, messages and time of each rank, "
        "from the configuration of a model. Nothing is computed and no weights are read.",
        examples="  votive plan ./my-model --data 64 --shard 3 --batch 8 --sequence 4096\n"
        "  votive plan config.json --data 64 --tensor 8 --pipeline 8 --microbatches 16 --batch 16 --sequence 4096",
    )
    p.add_argument("model", help="a folder with config.json, or such a file")
    for name, text in (
        ("data", "ranks that see other batches"), ("tensor", "ranks that divide matrices"),
        ("pipeline", "ranks that divide layers"), ("context", "ranks that divide the sequence"),
        ("expert", "ranks that divide experts"), ("microbatches", "parts of a batch that follow one another"),
        ("stages-per-rank", "parts of the model on each pipeline rank"),
    ):  # fmt: skip
        p.add_argument(f"--{name}", type=int, default=1, metavar="N", help=f"{text} (1)")
    p.add_argument("--shard", type=int, default=0, choices=(0, 1, 2, 3), help="ZeRO's stage, for data ranks (0)")
    p.add_argument("--schedule", default="1F1B", help="of the pipeline (1F1B)")
    p.add_argument("--recompute", action="store_true", help="recompute activations layer by layer")
    p.add_argument("--batch", type=int, default=8, metavar="N", help="texts of a data rank in a step (8)")
    p.add_argument("--sequence", type=int, default=4096, metavar="N", help="tokens of a text (4096)")
    p.add_argument("--optimizer", default="adamw", help="whose states count (adamw)")
    p.add_argument("--machine", default="h100", help="a100, h100 or h200 (h100)")
    p.add_argument("--dtype", default="bfloat16", help="the type of parameters (bfloat16)")


def run(args: argparse.Namespace) -> int:
    """Print the forecast; the exit code is 1 if a rank has not the memory."""
    import votive

    from ..distributed import Plan, dry_run
    from ..models import AutoConfig, AutoModelForCausalLM

    path = Path(args.model)
    folder = path.parent if path.is_file() else path
    if not (folder / "config.json").is_file() or (path.is_file() and path.name != "config.json"):
        raise UsageError(f"plan: {args.model!r} is no folder with a config.json, and no such file.")
    kind = getattr(votive, args.dtype, None)
    if not isinstance(kind, votive.dtype) or not kind.is_floating_point:
        raise UsageError(f"plan: --dtype takes a type such as bfloat16; you gave {args.dtype!r}.")
    with votive.device("meta"):
        model = AutoModelForCausalLM.from_config(AutoConfig.from_pretrained(folder)).to(kind)
    plan = Plan(
        data=args.data, shard=args.shard, tensor=args.tensor, pipeline=args.pipeline, context=args.context,
        expert=args.expert, microbatches=args.microbatches, schedule=args.schedule,
        stages_per_rank=args.stages_per_rank, recompute=args.recompute,
    )  # fmt: skip
    found = dry_run(
        model, plan, batch=args.batch, sequence=args.sequence, optimizer=args.optimizer, machine=args.machine
    )
    print(f"{plan.ranks:,} ranks, {sum(p.numel() for p in model.parameters()):,} parameters")
    print(found)
    return 0 if found.fits else 1
