"""Which kind of model each command needs, and what to say where it gets none or another."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import UsageError


@dataclass(frozen=True)
class Need:
    """A kind of model in words, the uses that it shows by, and one that can be had."""

    words: str
    uses: frozenset[str]
    repository: str
    size: str
    files: str = "config.json, model.safetensors and tokenizer.json"


_TEXT = Need("a text generator", frozenset({"causal", "seq2seq"}), "Qwen/Qwen3-0.6B", "1.5 GB")
_PICTURE = "config.json, model.safetensors and preprocessor_config.json"
NEEDS = {
    "generate": _TEXT,
    "chat": _TEXT,
    "debug": _TEXT,
    "bench": _TEXT,
    "serve": Need("a text generator", frozenset({"causal"}), "Qwen/Qwen3-0.6B", "1.5 GB"),
    "embed": Need(
        "an encoder",
        frozenset({"encoder", "masked"}),
        "sentence-transformers/all-MiniLM-L6-v2",
        "90 MB",
        "config.json, model.safetensors, tokenizer.json, modules.json and 1_Pooling/config.json",
    ),
    "classify": Need(
        "an image classifier",
        frozenset({"image", "zero_shot_image"}),
        "google/vit-base-patch16-224",
        "350 MB",
        _PICTURE,
    ),
    "ocr": Need(
        "a reader of lines of text in pictures",
        frozenset({"vision2seq"}),
        "microsoft/trocr-small-printed",
        "250 MB",
        f"{_PICTURE}, and its tokenizer's files",
    ),
    "transcribe": Need(
        "a speech recogniser",
        frozenset({"speech"}),
        "openai/whisper-base",
        "290 MB",
        "config.json, generation_config.json, model.safetensors and tokenizer.json",
    ),
}


def require_model(command: str, given: str | None) -> str:
    """The name that --model has; without one, says which model to get and how."""
    if given:
        return given
    need = NEEDS[command]
    raise UsageError(
        f"{command} needs {need.words}, and none comes with votive.\n"
        f"  With a network:     --model {need.repository}   downloads it once ({need.size})\n"
        f"  Without a network:  --model FOLDER   with {need.files},\n"
        f"                      from https://huggingface.co/{need.repository}"
    )


def check_kind(command: str, name: str, config: dict[str, Any], folder: Path | None = None) -> None:
    """See that a configuration is that of a model which the command can use."""
    from ..models.missing import kind_of, uses_of

    need, uses = NEEDS[command], uses_of(config)
    if not uses or uses & need.uses:
        return  # a family that is not known is told by whoever reads it
    if command == "embed" and (uses <= {"base"} or _is_sentence_encoder(folder)):
        return
    short = need.repository.split("/")[1]
    raise ValueError(
        f'"{name}" is {kind_of(config)}; {command} needs {need.words}, such as {short}.\n'
        f"--model {need.repository} downloads it once ({need.size})."
    )


def _is_sentence_encoder(folder: Path | None) -> bool:
    """Whether a folder says itself how its model makes vectors, whatever its family is for."""
    return folder is not None and (folder / "modules.json").is_file()
