"""`votive transcribe`: sound files to text, subtitles or JSON."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command
from .inputs import check_files
from .model_kinds import require_model
from .model_options import add_model_options, find_model, use_threads
from .numbers import number, whole
from .terminal import note, print_json, progress

if TYPE_CHECKING:
    from ..speech import Segment, Transcriber, Transcript


FORMATS = ("txt", "srt", "vtt", "tsv", "json")


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "transcribe",
        description="Turn speech into text with Whisper: a folder of Hugging Face or CTranslate2\n"
        "(faster-whisper), OpenAI's .pt file with --tokenizer, or a repository id. Files are\n"
        "what soundfile reads: WAV, FLAC, OGG, MP3, … Without --output-dir the text is printed.",
        examples="  votive transcribe talk.flac --model whisper-base\n"
        "  votive transcribe *.mp3 --model whisper-base --format srt --output-dir subtitles\n"
        "  votive transcribe rede.wav --model whisper-base --language de --translate\n"
        "  votive transcribe talk.flac --model whisper-base --word-timestamps --json",
    )
    p.add_argument("files", metavar="FILE", nargs="+", help="sound files")
    add_model_options(p, default=None)
    what = p.add_argument_group("what is written")
    what.add_argument("--language", metavar="NAME", help="a code or name (detected)")
    what.add_argument("--translate", action="store_true", help="translate into English")
    what.add_argument("--word-timestamps", action="store_true", help="also give the time of each word")
    what.add_argument(
        "--format",
        metavar="FORMAT",
        action="append",
        choices=[*FORMATS, "all"],
        help=f"{', '.join(FORMATS)} or all; may be repeated (txt)",
    )
    what.add_argument("--output-dir", metavar="DIR", help="write a file for each input and format")
    what.add_argument("--json", action="store_true", help="print one JSON document of all files")
    how = p.add_argument_group("how it is transcribed")
    how.add_argument("--beam-size", metavar="N", type=whole(1, 1000), help="search with N beams (greedy)")
    how.add_argument("--best-of", metavar="N", type=whole(1, 1000), help="sample N texts at temperatures above 0")
    how.add_argument(
        "--temperature",
        metavar="X",
        type=number(0),
        nargs="+",
        help="temperatures tried in turn until a transcript is good (0 0.2 0.4 0.6 0.8 1)",
    )
    how.add_argument("--prompt", metavar="TEXT", help="names and words to expect")
    how.add_argument(
        "--no-condition-on-previous-text",
        dest="condition",
        action="store_false",
        help="start each window without the text before it",
    )
    how.add_argument(
        "--clip", metavar="SECONDS", type=number(0), nargs="+", help="start and end times to transcribe (all)"
    )
    how.add_argument("--no-speech-threshold", metavar="P", type=number(0, 1), help="(0.6)")
    how.add_argument("--logprob-threshold", metavar="X", type=number(), help="(-1)")
    how.add_argument("--compression-ratio-threshold", metavar="X", type=number(0), help="(2.4)")
    how.add_argument("--seed", metavar="N", type=whole(), help="random seed")


def run(args: argparse.Namespace) -> int:
    """Hear each file and write what was said; files that cannot be read are told at the end."""
    from ..speech import Transcriber, language_code

    require_model("transcribe", args.model)
    if args.json and (args.format or args.output_dir):
        raise UsageError("--json goes with neither --format nor --output-dir")
    formats = _formats(args)
    if args.language is not None:
        try:
            language_code(args.language)
        except ValueError as error:
            raise UsageError(str(error)) from None
    check_files(args.files)
    targets = _targets(args, formats)
    use_threads(args)
    transcriber = Transcriber.from_pretrained(
        find_model(args, args.model).path, tokenizer=args.tokenizer, dtype=args.dtype, device=args.device
    )
    options = _options(args)
    documents, failed = [], 0
    for name in args.files:
        try:
            found = _transcribe(args, transcriber, name, options)
        except (OSError, RuntimeError) as error:
            # One file that is no sound should not undo the work on the others.
            if len(args.files) == 1:
                raise
            failed += 1
            print(f"votive: {name}: {error}", file=sys.stderr)
            continue
        if found.language_probability is not None and args.language is None:
            note(args, f"{name}: {_spoken(found)}")
        if args.json:
            documents.append({"file": name, **found.to_dict()})
            continue
        if args.output_dir is None:
            _print(args, name, found, formats)
        for format in formats if args.output_dir is not None else []:
            path = targets[name, format]
            found.save(path, format)
            note(args, f"{path}")
    if args.json:
        print_json({"model": args.model, "files": documents})
    return 1 if failed else 0


def _formats(args: argparse.Namespace) -> list[str]:
    asked = args.format or ["txt"]
    return list(FORMATS) if "all" in asked else list(dict.fromkeys(asked))


def _targets(args: argparse.Namespace, formats: list[str]) -> dict[tuple[str, str], Path]:
    """Where each result goes; two that would be one file are an error before any work is done."""
    if args.output_dir is None:
        if len(formats) > 1:
            raise UsageError("several formats need --output-dir DIR to be written to")
        return {}
    folder = Path(args.output_dir)
    folder.mkdir(parents=True, exist_ok=True)
    found = {(n, f): folder / f"{Path(n).stem}.{f}" for n in args.files for f in formats}
    if len(set(found.values())) < len(args.files) * len(formats):
        raise UsageError("several files have the same name; write them to different --output-dir")
    return found


def _options(args: argparse.Namespace) -> dict[str, Any]:
    """The arguments of `transcribe` that were given."""
    given = {
        "language": args.language,
        "beam_size": args.beam_size,
        "best_of": args.best_of,
        "initial_prompt": args.prompt,
        "clip_timestamps": args.clip,
        "seed": args.seed,
        "temperature": None if args.temperature is None else tuple(args.temperature),
        "no_speech_threshold": args.no_speech_threshold,
        "logprob_threshold": args.logprob_threshold,
        "compression_ratio_threshold": args.compression_ratio_threshold,
    }
    return {
        "task": "translate" if args.translate else "transcribe",
        "word_timestamps": args.word_timestamps,
        "condition_on_previous_text": args.condition,
        **{k: v for k, v in given.items() if v is not None},
    }


def _transcribe(args: argparse.Namespace, transcriber: Transcriber, name: str, options: dict[str, Any]) -> Transcript:
    """The transcript of a file, with a bar of its seconds."""
    from ..speech import load_audio

    sound = load_audio(name)
    total = sound.shape[-1] / 16000
    with progress(args, Path(name).name, round(total)) as bar:
        done = 0.0

        def advance(seconds: float, _: float) -> None:
            nonlocal done
            bar.advance(seconds - done)
            done = seconds

        def seen(segment: Segment) -> None:
            bar.label(_short(segment.text))

        return transcriber(sound, progress=advance, on_segment=seen, **options)


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 40 else f"{text[:39]}…"


def _spoken(found: Transcript) -> str:
    from ..speech import LANGUAGES

    return f"{LANGUAGES[found.language].title()}, {found.language_probability:.0%} sure"


def _print(args: argparse.Namespace, name: str, found: Transcript, formats: list[str]) -> None:
    if len(args.files) > 1:
        print(f"# {name}")
    if formats != ["txt"]:
        print(found.format(formats[0]), end="")
    elif args.word_timestamps:
        for word in found.words:
            print(f"{word.start:8.2f} {word.end:8.2f}  {word.word.strip()}")
    else:
        print(found.format("txt"), end="")
