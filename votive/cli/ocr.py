"""`votive ocr`: the text in a picture of a line, by TrOCR."""

from __future__ import annotations

import argparse
from typing import Any

from . import Commands, command
from .inputs import check_files
from .model_kinds import require_model
from .model_options import add_model_options, find_model, use_threads
from .numbers import whole
from .terminal import print_json, progress


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "ocr",
        description="Read the text in pictures with TrOCR: a folder of a VisionEncoderDecoder\n"
        "model. It reads one line of print or handwriting per picture; cut pages into lines\n"
        "first.",
        examples="  votive ocr line.png --model trocr-small-printed\n"
        "  votive ocr lines/*.png --model trocr-base-handwritten --beams 4\n"
        "  votive ocr line.png --model trocr-small-printed --json",
    )
    p.add_argument("images", metavar="IMAGE", nargs="+", help="image files, in any format that pillow reads")
    add_model_options(p, default=None)
    p.add_argument("--beams", metavar="N", type=whole(1, 1000), help="beam search with N beams (the model's setting)")
    p.add_argument("--max-new-tokens", metavar="N", type=whole(1), help="write at most N tokens")
    p.add_argument("--batch-size", metavar="N", type=whole(1), default=4, help="images per batch (4)")
    p.add_argument("--json", action="store_true", help="write JSON")


def run(args: argparse.Namespace) -> int:
    """Read and print."""
    from ..models import AutoModelForVision2Seq, TrOCRProcessor
    from ..text import Tokenizer

    require_model("ocr", args.model)
    check_files(args.images)
    use_threads(args)
    place = find_model(args, args.model).path
    model = AutoModelForVision2Seq.from_pretrained(place, dtype=args.dtype, device=args.device)
    processor_class: Any = TrOCRProcessor
    processor = processor_class.from_pretrained(place)
    if args.tokenizer is not None:
        processor.tokenizer = Tokenizer.from_pretrained(args.tokenizer)
    asked: dict[str, Any] = {"output_scores": True, "return_dict_in_generate": True}
    if args.beams is not None:
        asked["num_beams"] = args.beams
    if args.max_new_tokens is not None:
        asked["max_new_tokens"] = args.max_new_tokens
    elif model.generation_config.max_length is None:
        # A line may be long; without a word from the model it ends where its positions end.
        asked["max_new_tokens"] = model.config.max_position_embeddings - 1
    rows: list[dict[str, Any]] = []
    with progress(args, "pictures", len(args.images)) as bar:
        for at in range(0, len(args.images), args.batch_size):
            paths = args.images[at : at + args.batch_size]
            x = processor(paths, return_tensors="vt").pixel_values
            found = model.generate(x.to(model.device, model.dtype), **asked)
            texts = processor.batch_decode(found.sequences, skip_special_tokens=True)
            for i, (path, text) in enumerate(zip(paths, texts)):
                row: dict[str, Any] = {"image": path, "text": text.strip()}
                row["finished"] = found.finish_reasons[i] != "length"
                if found.sequences_scores is not None:
                    row["score"] = float(found.sequences_scores[i])
                rows.append(row)
            bar.advance(len(paths))
    if args.json:
        print_json({"model": args.model, "images": rows})
        return 0
    for row in rows:
        print(row["text"] if len(rows) == 1 else f"{row['image']}\t{row['text']}")
    return 0
