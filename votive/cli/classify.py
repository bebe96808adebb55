"""`votive classify`: what a picture shows, by any model that gives classes."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from . import Commands, UsageError, command
from .inputs import check_files, read_text
from .model_kinds import require_model
from .model_options import add_model_options, find_model, model_path, use_threads
from .numbers import whole
from .terminal import note, print_json, progress


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "classify",
        description="Say what pictures show. A model is a folder of a ViT, DeiT, BEiT or CLIP, or\n"
        "a file of torchvision weights (.pth, .safetensors) of a ResNet, MobileNetV2, …, whose\n"
        "name says which net it is, or --net does. CLIP compares with texts you give.",
        examples="  votive classify photo.jpg --model vit-folder\n"
        "  votive classify *.png --model mobilenet_v2-b0353104.pth --top-k 3\n"
        "  votive classify photo.jpg --model weights.pth --net resnet18 --labels names.txt\n"
        "  votive classify photo.jpg --model clip --text 'a cat' --text 'a dog' --json",
    )
    p.add_argument("images", metavar="IMAGE", nargs="+", help="image files, in any format that pillow reads")
    add_model_options(p, default=None)
    p.add_argument("--net", metavar="NAME", help="the network that a file of weights belongs to")
    p.add_argument("--labels", metavar="FILE", help="names of the classes, one per line or JSON")
    p.add_argument("--text", metavar="TEXT", action="append", help="for CLIP: a description; repeat for each class")
    p.add_argument("-k", "--top-k", metavar="N", type=whole(1), default=5, help="classes to show (5)")
    p.add_argument("--batch-size", metavar="N", type=whole(1), default=8, help="images per batch (8)")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Classify and show."""
    from .. import no_grad

    require_model("classify", args.model)
    check_files(args.images)
    use_threads(args)
    classify, names = _classifier(args)
    rows: list[Any] = []
    with no_grad(), progress(args, "pictures", len(args.images)) as bar:
        for at in range(0, len(args.images), args.batch_size):
            paths = args.images[at : at + args.batch_size]
            scores = classify(paths).float().softmax(-1).cpu()
            best = scores.topk(min(args.top_k, scores.shape[-1]), -1)
            for path, ids, values in zip(paths, best.indices.tolist(), best.values.tolist()):
                rows.append((path, [(i, names(i), p) for i, p in zip(ids, values)]))
            bar.advance(len(paths))
    if args.json:
        print_json(
            {
                "model": args.model,
                "images": [
                    {"image": path, "classes": [{"id": i, "label": n, "score": p} for i, n, p in found]}
                    for path, found in rows
                ],
            }
        )
        return 0
    for path, found in rows:
        if len(rows) > 1:
            print(path)
        for _, name, p in found:
            print(f"{100 * p:6.2f} %  {name}")
    return 0


def _classifier(args: argparse.Namespace) -> tuple[Any, Any]:
    """From paths to scores, and from a class to its name."""
    path = model_path(args, args.model)
    if path.is_file() and not (path.parent / "config.json").is_file():
        if args.text:
            raise UsageError("--text is for CLIP, which is a folder")
        return _from_weights(args, path)
    if args.net:
        raise UsageError("--net is for a file of weights; a folder names its model itself")
    from ..models import AutoConfig

    config = AutoConfig.from_dict(find_model(args, args.model).config)
    if config.model_type == "clip" and "CLIPForImageClassification" not in (config.architectures or []):
        return _from_texts(args, path)
    if args.text:
        raise UsageError(f"--text is for CLIP, not for a {config.model_type}")
    return _from_folder(args, path)


def _loaded(args: argparse.Namespace, path: Path, auto: Any) -> Any:
    return auto.from_pretrained(path, dtype=args.dtype, device=args.device)


def _from_folder(args: argparse.Namespace, path: Path) -> tuple[Any, Any]:
    from ..models import AutoImageProcessor, AutoModelForImageClassification

    model = _loaded(args, path, AutoModelForImageClassification)
    processor: Any = AutoImageProcessor
    prepare = processor.from_pretrained(path)
    names = _names(args, model.config.num_labels) or model.config.id2label or {}
    by_text = {str(k): v for k, v in names.items()}

    def classify(paths: list[str]) -> Any:
        x = prepare(paths, return_tensors="vt").pixel_values
        return model(x.to(model.device, model.dtype)).logits

    return classify, lambda i: by_text.get(str(i), f"class {i}")


def _from_texts(args: argparse.Namespace, path: Path) -> tuple[Any, Any]:
    from ..models import AutoModelForZeroShotImageClassification, CLIPProcessor
    from ..text import Tokenizer

    if not args.text:
        raise UsageError("CLIP compares pictures with texts: give --text several times")
    if args.labels:
        raise UsageError("--labels names classes; CLIP's are the texts of --text")
    model = _loaded(args, path, AutoModelForZeroShotImageClassification)
    processor_class: Any = CLIPProcessor
    processor = processor_class.from_pretrained(path)
    if args.tokenizer is not None:
        processor.tokenizer = Tokenizer.from_pretrained(args.tokenizer)
    texts = processor(text=args.text, return_tensors="vt", padding=True)

    def classify(paths: list[str]) -> Any:
        x = processor(images=paths, return_tensors="vt").pixel_values
        return model(
            texts["input_ids"].to(model.device),
            x.to(model.device, model.dtype),
            attention_mask=texts["attention_mask"].to(model.device),
        ).logits_per_image

    return classify, lambda i: args.text[i]


def _from_weights(args: argparse.Namespace, path: Path) -> tuple[Any, Any]:
    from .. import stack
    from ..io.source import as_dtype
    from ..vision import models

    if args.net is not None and args.net not in models.list_models():
        raise UsageError(f"--net {args.net}: known are {', '.join(models.list_models())}")
    try:
        name, model = models.model_from_file(path, args.net)
    except ValueError as e:
        if args.net is None and "does not say" in str(e):
            raise UsageError(f"{e} Or add --net NAME") from None
        raise
    prepare = models.preset(name)
    model.to(device=args.device, dtype=None if args.dtype is None else as_dtype(args.dtype))
    classes = next(p for n, p in model.named_parameters() if n.endswith("weight") and p.dim() == 2)
    count = classes.shape[0]
    note(args, f"{path.name}: {name} with {count} classes")
    labels = _names(args, count)
    if labels is None and count == 1000:
        labels = dict(enumerate(models.imagenet_classes()))
    first = next(model.parameters())

    def classify(paths: list[str]) -> Any:
        return model(stack([prepare(p) for p in paths]).to(first.device, first.dtype))

    return classify, lambda i: (labels or {}).get(i, f"class {i}")


def _names(args: argparse.Namespace, classes: int) -> dict[int, str] | None:
    """The names of --labels: lines, or JSON as a list or an object from numbers to names."""
    if args.labels is None:
        return None
    text = read_text(args.labels)
    if text.lstrip().startswith(("[", "{")):
        try:
            found = json.loads(text)
        except ValueError as e:
            raise ValueError(f"{args.labels} is not valid JSON: {e}") from None
        items = found.items() if isinstance(found, dict) else enumerate(found)
        try:
            # ImageNet's well-known file has pairs of a synset and a name.
            labels = {int(k): str(v[-1] if isinstance(v, list) else v) for k, v in items}
        except (ValueError, IndexError):
            raise ValueError(f"{args.labels} must map numbers of classes to names.") from None
    else:
        labels = dict(enumerate(text.splitlines()))
    if len(labels) != classes:
        raise ValueError(f"{args.labels} names {len(labels)} classes, the model has {classes}.")
    return labels
