"""The models of a studio: found by name, loaded once with progress, shared between tabs.

Only what was named on the command line, comes with the package or lies in the studio's folder or in one that was
allowed at the start has a name here; a page can ask for nothing else.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import votive

from ..glass.parts import Parts, find_parts
from ..glass.probe import Frame, Probe
from ..io.source import WeightSource
from ..models.checkpoint import BUNDLED
from ..nn.points import has_points
from .shelf import Shelf, weight_bytes

if TYPE_CHECKING:
    from ..nn import Module


DEFAULT = "tales"
DEMO = "demo"


class Loaded:
    """A model, its tokenizer, and what a page wants to know of them."""

    def __init__(self, name: str, model: Module, tokenizer: Any) -> None:
        self.name, self.model, self.tokenizer = name, model, tokenizer
        self.parts: Parts = find_parts(model)
        self._texts: dict[int, str] = {}
        self._info: dict[str, Any] | None = None

    def text(self, token: int) -> str:
        """A token as it stands in a text."""
        found = self._texts.get(token)
        if found is None:
            found = str(token) if self.tokenizer is None else self.tokenizer.decode([token])
            self._texts[token] = found
        return found

    def texts(self, tokens: Iterable[int]) -> list[str]:
        """Tokens as they stand in a text."""
        return [self.text(int(t)) for t in tokens]

    def lines(self) -> list[str]:
        """How it is loaded in Python."""
        return [
            f"model = votive.models.AutoModelForCausalLM.from_pretrained({self.name!r})",
            f"tokenizer = votive.text.Tokenizer.from_pretrained({self.name!r})",
        ]

    @property
    def described(self) -> bool:
        """Whether `info` needs no run of the model any more."""
        return self._info is not None

    def info(self) -> dict[str, Any]:
        """What `model.info` tells."""
        if self._info is None:
            self._info = _described(self)
        return self._info


def _described(loaded: Loaded) -> dict[str, Any]:
    model, config = loaded.model, loaded.model.config.to_dict()
    parts = loaded.parts.named()
    return {
        "name": loaded.name,
        "family": str(config.get("model_type", type(model).__name__)),
        "class": type(model).__name__,
        "layers": len(loaded.parts.layers),
        "heads": int(config.get("num_attention_heads") or config.get("n_head") or 1),
        "hidden": int(config.get("hidden_size") or config.get("n_embd") or 0),
        "vocab": int(config.get("vocab_size") or 0),
        "context": int(config.get("max_position_embeddings") or config.get("n_positions") or 0),
        "dtype": str(model.dtype).removeprefix("votive."),
        "device": str(model.device),
        "parameters": int(model.num_parameters()),
        "places": has_points(model),
        "parts": {**parts, "layers": list(parts["layers"])},
        "tree": _tree(loaded),
        "settings": model.generation_config.to_dict(),
    }


def _tree(loaded: Loaded) -> list[dict[str, str]]:
    """The modules of a model; those that lie in one are in the order in which they run."""
    model = loaded.model
    called: dict[str, int] = {}

    class Order(Probe):
        def entered(self, frame: Frame) -> None:
            if frame.is_module:
                called.setdefault(str(frame.address), len(called))

    with contextlib.suppress(Exception), votive.no_grad(), Order(model):
        # What a short text does not reach stays where it was declared.
        model(votive.tensor([[0]], device=model.device), use_cache=False)
    kinds = {name: type(module).__name__ for name, module in model.named_modules()}
    first: dict[str, int] = {}
    for name, when in called.items():  # what holds others comes where the first of them does
        parts = name.split(".") if name else []
        for k in range(1, len(parts) + 1):
            first.setdefault(".".join(parts[:k]), when)
    declared = {name: i for i, name in enumerate(kinds)}

    def key(name: str) -> list[tuple[int, int]]:
        parts = name.split(".") if name else []
        above = [".".join(parts[: k + 1]) for k in range(len(parts))]
        return [(first.get(one, 1 << 30), declared.get(one, 0)) for one in above]

    return [{"address": name, "class": kinds[name]} for name in sorted(kinds, key=key)]


class Loading:
    """A model on its way; `wait` gives it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.done, self.total, self.text = 0.0, 1.0, f"opening {name}"
        self.loaded: Loaded | None = None
        self.error: Exception | None = None
        self._finished = threading.Event()

    def to_json(self) -> dict[str, Any]:
        """How far it is."""
        return {"job": "model.load", "done": self.done, "total": self.total, "text": self.text}

    @property
    def finished(self) -> bool:
        return self._finished.is_set()

    def wait(self, look: Callable[[Loading], None] | None = None) -> Loaded:
        """The model; while it is awaited, `look` is called a few times a second."""
        looked = False
        while not self._finished.wait(0.1):
            if look is not None:
                look(self)
                looked = True
        if self.error is not None:
            raise self.error
        if looked and look is not None:
            look(self)  # that it is done is told too
        assert self.loaded is not None
        return self.loaded

    def run(self, make: Callable[[Loading], Loaded]) -> None:
        """Load, in a thread of its own."""
        try:
            self.loaded = make(self)
            self.done = self.total
        except Exception as e:
            self.error = e
        finally:
            self._finished.set()


class ModelLibrary:
    """All models that have a name here."""

    device: str | None = None  # where models compute; None: where they were loaded

    def __init__(self, folder: Path, given: Any = None, shelf: Shelf | None = None) -> None:
        self.folder = folder
        self.shelf = Shelf([]) if shelf is None else shelf
        self._guard = threading.Lock()
        # A model that no tab uses and that is not the first one is freed.
        self._known: weakref.WeakValueDictionary[str, Loading] = weakref.WeakValueDictionary()
        self._places: dict[str, str] = {}
        self._allowed: set[str] = set()  # what was opened by its path, or downloaded
        self._kept: Loading | None = None
        self.default = DEFAULT
        if isinstance(given, Loaded):
            self._kept = Loading(given.name)
            self._kept.loaded = given
            self._kept._finished.set()
            self._known[given.name] = self._kept
            self.default = given.name
        elif given is not None:
            path = Path(given).expanduser()
            self.default = path.name if path.exists() else str(given)
            self._places[self.default] = str(given)
        elif os.environ.get("VOTIVE_STUDIO_DEMO") == "1":
            self.default = DEMO

    def names(self) -> list[dict[str, Any]]:
        """What can be loaded."""
        from ..models.checkpoint import bundled

        found: dict[str, str] = dict.fromkeys([self.default], "given at the start")
        found |= dict.fromkeys(bundled(), "comes with votive")
        if os.environ.get("VOTIVE_STUDIO_DEMO") == "1":
            found[DEMO] = "tiny, with random weights"
        for path in _models_in(self.folder):
            found.setdefault(path.name, "in the folder")
        more: dict[str, dict[str, Any]] = {}
        for model in self.shelf.models():
            if model.name not in found:
                found[model.name] = str(model.root)
                more[model.name] = {"bytes": model.bytes, "kind": model.kind}
        for name in self._allowed:
            found.setdefault(name, "opened by its path")
        out = []
        for n, t in found.items():
            place = self._places.get(n) or (str(BUNDLED / n) if t == "comes with votive" else None)
            own = {"bytes": weight_bytes(Path(place).expanduser())} if place and n not in more else {}
            out.append({"name": n, "text": t, **own, **more.get(n, {})})
        return out

    def allow(self, text: str) -> str:
        """The name under which a path that lies in an allowed folder can be loaded from now on."""
        path = self.shelf.path(text)
        for model in self.shelf.models():
            if model.place == path:
                return model.name
        check_model(path.name, str(path))
        taken = {n["name"] for n in self.names()} - self._allowed
        free = path.name not in taken and self._places.get(path.name, str(path)) == str(path)
        name = path.name if free else str(path)
        self._places[name] = str(path)
        self._allowed.add(name)
        return name

    def fetch(self, repository: str, tell: Callable[[float, float, str], None]) -> str:
        """Download a repository, and give the name under which it can be loaded."""
        from .downloads import fetched

        place = fetched(repository, tell)
        check_model(repository, str(place))
        self._places[repository] = str(place)
        self._allowed.add(repository)
        return repository

    def check(self) -> None:
        """See that the first model is there and can be shown; raises before anything is served."""
        if self.default in self._places:
            check_model(self.default, self._places[self.default])

    def request(self, name: str | None = None) -> Loading:
        """A model that is loaded, or on its way from now on."""
        name = self.default if name is None else name
        with self._guard:
            found = self._known.get(name)
            if found is not None and not (found.finished and found.error is not None):
                return found
            if name not in {n["name"] for n in self.names()}:
                raise KeyError(f"There is no model {name!r:.100} in the list.")
            found = self._known[name] = Loading(name)
            if name == self.default:
                self._kept = found
        make = self._make
        threading.Thread(target=found.run, args=(make,), name=f"loading {name}", daemon=True).start()
        return found

    def _make(self, loading: Loading) -> Loaded:
        if loading.name == DEMO and os.environ.get("VOTIVE_STUDIO_DEMO") == "1":
            from . import demo

            return Loaded(DEMO, demo.model(), demo.tokenizer())
        loaded = _load(loading, self.place_of(loading.name))
        if self.device is not None:
            loading.text = f"moving to {self.device}"
            loaded.model.to(self.device)
        return loaded

    def place_of(self, name: str) -> str:
        """Where a model of this name lies."""
        from ..models.checkpoint import bundled

        if name in self._places:
            return self._places[name]
        if name in bundled():
            return name
        for path in _models_in(self.folder):
            if path.name == name:
                return str(path)
        model = self.shelf.named(name)
        if model is not None:
            return str(model.place)
        raise FileNotFoundError(
            f"the bundled model {name!r} is not part of this installation; name a model: votive studio MODEL."
        )


def _models_in(folder: Path) -> Iterator[Path]:
    if folder.is_dir():
        for path in sorted(folder.iterdir()):
            if (path / "config.json").is_file() or path.suffix in (".gguf", ".pth"):
                yield path


def check_model(name: str, place: str) -> None:
    """Raise for a model that is not here, or that no view can show; reads no weights.

    >>> from votive.studio.models import check_model
    >>> check_model("tales", "tales")
    >>> check_model("tails", "tails")
    Traceback (most recent call last):
    FileNotFoundError: there is no model 'tails': ...
    """
    from ..models.checkpoint import Checkpoint
    from ..models.missing import kind_of, located, uses_of
    from .speech_models import is_whisper, whisper_file
    from .vision_models import is_net_file, is_vision_model

    path = str(located(place))
    if whisper_file(path) is not None or is_net_file(path):
        return
    config = Checkpoint.find(path).config
    uses = uses_of(config)
    if uses and "causal" not in uses and not is_whisper(config) and not is_vision_model(config):
        raise ValueError(
            f'"{name}" is {kind_of(config)}; the studio shows text generators, models that see pictures, and Whisper.'
        )


def _load(loading: Loading, place: str) -> Loaded:
    from .. import models
    from ..models.checkpoint import Checkpoint
    from ..text import Tokenizer
    from .speech_models import is_whisper, load_speech_model, whisper_file
    from .vision_models import is_net_file, is_vision_model, load_vision_model

    speech = whisper_file(place)
    if speech is not None:
        return load_speech_model(loading.name, speech)
    if is_net_file(place):
        return load_vision_model(loading.name, place)
    found = Checkpoint.find(place)
    opened = found.weights

    def counted() -> Any:
        return _Counted(opened(), loading)

    found.weights = counted
    if is_whisper(found.config):
        return load_speech_model(loading.name, found)
    if is_vision_model(found.config):
        return load_vision_model(loading.name, place, found)
    kind: Any = models.AutoModelForCausalLM
    model = kind._class_for(found.config.get("model_type")).from_checkpoint(found)
    loading.text = "reading the tokenizer"
    try:
        tokenizer: Any = Tokenizer.from_pretrained(found.tokenizer)
    except FileNotFoundError as e:
        raise FileNotFoundError(f"{loading.name} has no tokenizer beside it ({e}).") from None
    return Loaded(loading.name, model, tokenizer)


class _Counted(WeightSource):
    """A source that tells how many bytes have been read."""

    def __init__(self, source: WeightSource, loading: Loading) -> None:
        self.source, self.loading = source, loading
        self.metadata = source.metadata
        loading.total = float(sum(source.info(n).nbytes for n in source.names()) or 1)

    def names(self) -> list[str]:
        return list(self.source.names())

    def info(self, name: str) -> Any:
        return self.source.info(name)

    def _count(self, name: str) -> None:
        self.loading.text = name
        self.loading.done += self.source.info(name).nbytes

    def _read(self, name: str) -> Any:
        self._count(name)
        return self.source._read(name)

    def _read_as(self, name: str, dtype: votive.dtype) -> Any:
        self._count(name)
        return self.source._read_as(name, dtype)

    def _read_part(self, name: str, index: Any) -> Any:
        self._count(name)
        return self.source._read_part(name, index)

    def close(self) -> None:
        self.source.close()
