"""Tokenizer folders, written as transformers reads them. Knows files; knows no models."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..serialization.atomic import replacing
from .chat import check_name

if TYPE_CHECKING:
    from .tokenizer import Tokenizer

# What transformers puts for "no limit".
NO_LIMIT = int(1e30)


def config_of(tok: Tokenizer) -> dict[str, Any]:
    """The contents of tokenizer_config.json; keys that came with the tokenizer are kept."""
    config = {k: v for k, v in tok.config.items() if k != "chat_template"}
    config["added_tokens_decoder"] = {
        str(i): {
            "content": t.content,
            "lstrip": t.lstrip,
            "normalized": t.normalized,
            "rstrip": t.rstrip,
            "single_word": t.single_word,
            "special": t.special,
        }
        for i, t in sorted(tok.added_tokens_decoder.items())
    }
    for name in ("bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"):
        config.pop(name, None)
    config.pop("additional_special_tokens", None)
    config.pop("extra_special_tokens", None)
    config |= tok.special_tokens_map
    config |= {
        "model_max_length": tok.model_max_length or NO_LIMIT,
        "padding_side": tok.padding_side,
        "truncation_side": tok.truncation_side,
        "clean_up_tokenization_spaces": tok.clean_up_tokenization_spaces,
        "model_input_names": tok.model_input_names,
    }
    config.setdefault("tokenizer_class", "PreTrainedTokenizerFast")
    return config


def save(tok: Tokenizer, folder: str | os.PathLike[str]) -> None:
    """Write a tokenizer into a folder, which is made if it is not there."""
    root = Path(folder)
    if root.exists() and not root.is_dir():
        raise NotADirectoryError(f"save_pretrained: {root} is a file; name a folder.")
    root.mkdir(parents=True, exist_ok=True)
    _write(root / "tokenizer.json", tok.backend.to_str(pretty=True))
    _write(root / "tokenizer_config.json", _json(config_of(tok)))
    _write(root / "special_tokens_map.json", _json(tok.special_tokens_map))
    for name, template in tok.chat_templates.items():
        if name == "default":
            _write(root / "chat_template.jinja", template)
        else:
            more = root / "additional_chat_templates"
            more.mkdir(exist_ok=True)
            _write(more / f"{check_name(name)}.jinja", template)


def _json(value: Any) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _write(path: Path, text: str) -> None:
    # Whoever reads meanwhile sees the old file or the new one, never a part.
    with replacing(path) as f:
        f.write(text.encode())
