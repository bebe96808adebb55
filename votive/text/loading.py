"""Tokenizers from the files that models come with. Knows files; knows no models."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..serialization.container import FileFormatError
from .ends import set_ends, token_text
from .special import NAMED, as_added
from .tokenizer import Tokenizer

if TYPE_CHECKING:
    from tokenizers import Tokenizer as Backend

_FILES = (
    "tokenizer.json",
    "vocab.json",
    "vocab.txt",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "spm.model",
)
# Classes whose models tell the two texts of a pair apart.
_PAIR_CLASSES = (
    "Bert",
    "Albert",
    "Deberta",
    "XLNet",
    "Electra",
    "MPNet",
    "Funnel",
    "LayoutLM",
    "Splinter",
    "SqueezeBert",
    "ConvBert",
    "MobileBert",
    "RemBert",
)
_NO_PAIRS = ("DistilBert", "CamemBert", "Roberta", "MPNet")
# Models that come with the package, by name.
_BUNDLED = Path(__file__).parents[1] / "models" / "bundled"
_LIMIT = 10**20  # larger limits mean "none"


def load(source: str | os.PathLike[str], **options: Any) -> Tokenizer:
    """See `Tokenizer.from_pretrained`."""
    options, places = _asked(options)
    path = Path(source)
    subfolder = places.pop("subfolder", None)
    if subfolder and path.is_dir():
        path = path / subfolder
    if path.is_file() and path.suffix == ".gguf":
        from .gguf import from_gguf_file

        return _with(from_gguf_file(path), options)
    if path.is_file():
        return _from_files(path.parent, path, options)
    if not path.is_dir() and (_BUNDLED / path.name / _FILES[0]).is_file() and len(path.parts) == 1:
        path = _BUNDLED / path.name
    if not path.is_dir():
        if not _is_repo_id(os.fspath(source)):
            raise FileNotFoundError(f"Tokenizer.from_pretrained: there is no file {path}.")
        path = _download(os.fspath(source), subfolder, places)
    for name in _FILES:
        if (path / name).is_file():
            return _from_files(path, path / name, options)
    raise FileNotFoundError(f"Tokenizer.from_pretrained: {path} has none of {', '.join(_FILES)}.")


def _with(tok: Tokenizer, options: dict[str, Any]) -> Tokenizer:
    """A tokenizer with options of the constructor set afterwards."""
    for name, value in options.items():
        if name in ("special_tokens", "named_tokens"):
            tok.add_special_tokens(value)
        elif name == "extra_special_tokens":
            tok.add_special_tokens({name: value})
        elif hasattr(tok, name):
            setattr(tok, name, value)
        else:
            raise TypeError(f"Tokenizer.from_pretrained: there is no option {name!r}.")
    return tok


def _is_repo_id(name: str) -> bool:
    parts = name.split("/")
    return len(parts) <= 2 and all(p and p[0] != "." for p in parts) and "\\" not in name


_PLACES = ("revision", "local_files_only", "subfolder", "token", "cache_dir", "force_download")
# Of no consequence here: there is no other code to trust, and nothing to resume.
_TAKEN = ("trust_remote_code", "legacy", "resume_download", "use_auth_token", "from_slow")


def _asked(options: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Options of the constructor, and where to look, from what transformers' users pass."""
    rest = dict(options)
    if rest.pop("use_fast", None) is False:
        raise ValueError(
            "Tokenizer.from_pretrained: use_fast=False asks for a tokenizer in Python, of which "
            "there is none; leave it out."
        )
    rest.setdefault("token", rest.get("use_auth_token"))
    for name in _TAKEN:
        rest.pop(name, None)
    places = {name: rest.pop(name) for name in _PLACES if rest.get(name) is not None}
    for name in _PLACES:
        rest.pop(name, None)
    named = {name: rest.pop(name) for name in NAMED if name in rest}
    if named:
        rest["named_tokens"] = named
    if "additional_special_tokens" in rest:
        rest.setdefault("extra_special_tokens", rest.pop("additional_special_tokens"))
    return rest, places


def _download(repo: str, subfolder: str | None, places: dict[str, Any]) -> Path:
    """A repository's tokenizer files, from the cache or the network."""
    from huggingface_hub import snapshot_download

    wanted = [
        "tokenizer*",
        "vocab*",
        "merges.txt",
        "special_tokens_map.json",
        "*.model",
        "added_tokens.json",
        "chat_template*",
        "additional_chat_templates/*",
        "config.json",
        "generation_config.json",
    ]
    below = f"{subfolder}/" if subfolder else ""
    try:
        return Path(snapshot_download(repo, allow_patterns=[below + p for p in wanted], **places)) / below
    except Exception as e:
        raise OSError(
            f"Tokenizer.from_pretrained: there is no folder or file {repo!r}, and it could not be "
            f"downloaded as a Hugging Face repository ({type(e).__name__}: {e}). Without a network "
            "pass the path of a folder."
        ) from e


def read_json(path: Path) -> dict[str, Any]:
    """A JSON object from a file; {} where there is no file."""
    if not path.is_file():
        return {}
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as e:
        raise FileFormatError(f"{path}: this is not JSON ({e}).") from None
    if not isinstance(value, dict):
        raise FileFormatError(f"{path}: a JSON object is expected, not {type(value).__name__}.")
    return value


# What values of the wrong kind in a JSON file make the code that reads them raise.
_MISREAD = (KeyError, TypeError, ValueError, AttributeError, OverflowError)


def _from_files(folder: Path, file: Path, options: dict[str, Any]) -> Tokenizer:
    forced: dict[str, Any] = {k: options.pop(k) for k in ("add_bos_token", "add_eos_token") if k in options}
    asked = options.pop("named_tokens", {})
    try:
        backend, made = _described(folder, file, forced)
        unknown = sorted(set(options) - set(made))
        tok = None if options else Tokenizer(backend, **made)
        ends = read_json(folder / "generation_config.json").get("eos_token_id")
        extra_ends = [ends] if isinstance(ends, int) else list(ends or ())
    except _MISREAD as e:
        raise FileFormatError(f"{folder}: its files do not describe a tokenizer ({type(e).__name__}: {e}).") from None
    if unknown:
        raise TypeError(
            f"Tokenizer.from_pretrained: there is no option {unknown[0]!r}; there are "
            f"{', '.join(sorted({*made, *NAMED, *_PLACES} - {'config'}))}."
        )
    tok = tok or Tokenizer(backend, **{**made, **options})
    if asked:
        tok.add_special_tokens(asked)
    tok.extra_end_ids = extra_ends
    return tok


def _described(folder: Path, file: Path, forced: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """What the files of a folder say, unless `forced`: a tokenizer, and arguments of Tokenizer."""
    config = read_json(folder / "tokenizer_config.json") | forced
    named, extra = _special(folder, config)
    backend, defaults = _backend(file, config)
    _add_tokens(backend, folder, config)
    _set_ends(backend, config, {**defaults, **named})
    limit = config.get("model_max_length")
    made: dict[str, Any] = {
        "special_tokens": {**defaults, **named},
        "extra_special_tokens": extra,
        "chat_template": _templates(folder, config),
        "model_max_length": int(limit) if limit and limit < _LIMIT else None,
        "padding_side": config.get("padding_side", "right"),
        "truncation_side": config.get("truncation_side", "right"),
        "clean_up_tokenization_spaces": bool(config.get("clean_up_tokenization_spaces", False)),
        "model_input_names": config.get("model_input_names") or _input_names(config),
        "config": config,
    }
    for side in ("padding_side", "truncation_side"):
        if made[side] not in ("left", "right"):
            raise ValueError(f"{side} is {made[side]!r}, not 'left' or 'right'")
    return backend, made


def _input_names(config: dict[str, Any]) -> list[str] | None:
    kind = config.get("tokenizer_class") or ""
    if kind.startswith(_NO_PAIRS):
        return ["input_ids", "attention_mask"]
    if kind.startswith(_PAIR_CLASSES):
        return ["input_ids", "token_type_ids", "attention_mask"]
    return None


def _special(folder: Path, config: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Named and additional special tokens; the config file counts more than the older map."""
    sources = {**read_json(folder / "special_tokens_map.json"), **config}
    named = {n: sources[n] for n in NAMED if sources.get(n) is not None}
    extra = sources.get("additional_special_tokens") or sources.get("extra_special_tokens") or []
    if isinstance(extra, dict):
        extra = list(extra.values())
    return named, extra


def _backend(file: Path, config: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """The tokenizer of a vocabulary file, and the special tokens its kind has by default."""
    if file.suffix == ".model":
        from .classic import sentencepiece

        return sentencepiece(file, config)
    if file.name.endswith("vocab.txt"):
        from .classic import wordpiece

        return wordpiece(file, config)
    if file.name.endswith("vocab.json"):
        from .classic import byte_level

        return byte_level(file, config)
    return _tokenizer_json(file), {}


def _tokenizer_json(file: Path) -> Any:
    from tokenizers import Tokenizer as Backend

    try:
        return Backend.from_file(str(file))
    except Exception as e:  # the library raises bare exceptions
        raise FileFormatError(f"{file}: this is not a tokenizer file ({e}).") from None


def _add_tokens(backend: Backend, folder: Path, config: dict[str, Any]) -> None:
    """Tokens that only the config file or added_tokens.json know, in the order of their ids."""
    wanted = {int(i): t for i, t in (config.get("added_tokens_decoder") or {}).items()}
    for text, i in read_json(folder / "added_tokens.json").items():
        wanted.setdefault(int(i), text)
    known = {t.content for t in backend.get_added_tokens_decoder().values()}
    for i, token in sorted(wanted.items()):
        added = as_added(token, special=False)
        if added.content in known:
            continue
        (backend.add_special_tokens if added.special else backend.add_tokens)([added])
        if backend.token_to_id(added.content) != i:
            raise FileFormatError(
                f"{folder}: the added token {added.content!r} has the id {i} in its file but would "
                f"get {backend.token_to_id(added.content)}; the vocabulary does not belong to it."
            )


def _set_ends(backend: Backend, config: dict[str, Any], named: dict[str, Any]) -> None:
    """Begin and end tokens around a text, where the config file asks for them itself."""
    asked = {k: config[k] for k in ("add_bos_token", "add_eos_token") if config.get(k) is not None}
    if not asked:
        return
    bos = token_text(named.get("bos_token")) if asked.get("add_bos_token") else None
    eos = token_text(named.get("eos_token")) if asked.get("add_eos_token") else None
    set_ends(backend, bos, eos)


def _templates(folder: Path, config: dict[str, Any]) -> dict[str, str] | None:
    """Chat templates by name, from all the places where they are kept."""
    found: dict[str, str] = {}
    for value in (config.get("chat_template"), read_json(folder / "chat_template.json").get("chat_template")):
        if isinstance(value, str):
            found["default"] = value
        elif isinstance(value, list):
            found |= {t["name"]: t["template"] for t in value}
        elif isinstance(value, dict):
            found |= value
    if (folder / "chat_template.jinja").is_file():
        found["default"] = (folder / "chat_template.jinja").read_text(encoding="utf-8")
    for path in sorted((folder / "additional_chat_templates").glob("*.jinja")):
        found[path.stem] = path.read_text(encoding="utf-8")
    return found or None
