"""`votive serve`: models behind OpenAI's HTTP interface. The server serves; this reads arguments and loads models."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from . import Commands, UsageError, command
from .model_options import DEFAULT, DTYPES, Loaded, load_model, model_path, use_threads
from .numbers import number, whole
from .terminal import note

if TYPE_CHECKING:
    from ..serve.keys import Keys
    from ..serve.registry import Registry

PORT = 8000


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "serve",
        description="Serve language models, sentence encoders and Whisper over HTTP, with OpenAI's interface:\n"
        "/v1/chat/completions, /v1/completions, /v1/embeddings, /v1/audio/transcriptions, /v1/models,\n"
        "/health, /metrics.\n"
        "Requests run side by side; each may look inside the model and edit what it finds.",
        examples="  votive serve                                  the bundled story-teller on port 8000\n"
        "  votive serve ./my-model --port 9000           a folder with config.json\n"
        "  votive serve chat=./qwen small=model.gguf     several, by names of your own\n"
        "  votive serve ./my-model --adapter poet=./poet  with an adapter, by its name too\n"
        "  votive serve ./my-model --host 0.0.0.0 --api-key-file keys.txt",
    )
    p.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help=f"folders, GGUF files, bundled names or repository ids, or NAME=MODEL (the bundled {DEFAULT})",
    )
    p.add_argument(
        "--adapter",
        metavar="NAME=FOLDER",
        action="append",
        default=[],
        help="also serve the text generator with a PEFT LoRA adapter, as NAME",
    )
    p.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    p.add_argument(
        "--port", metavar="N", type=whole(0, 65535), default=PORT, help=f"the port; 0 picks a free one ({PORT})"
    )
    group = p.add_argument_group("keys")
    group.add_argument(
        "--api-key", metavar="KEY", action="append", default=[], help="an API key; requests without it are refused"
    )
    group.add_argument(
        "--api-key-file", metavar="FILE", help="a file of API keys, one per line, or JSON with what each may do"
    )
    group = p.add_argument_group("limits")
    group.add_argument(
        "--max-running", metavar="N", type=whole(1, 4096), default=64, help="texts generated at once (64)"
    )
    group.add_argument(
        "--max-waiting", metavar="N", type=whole(0), default=256, help="texts that may wait; more get status 429 (256)"
    )
    group.add_argument("--max-tokens", metavar="N", type=whole(1), help="tokens that a request may ask for (no limit)")
    group.add_argument(
        "--default-tokens", metavar="N", type=whole(1), default=1024, help="tokens for chats without max_tokens (1024)"
    )
    group.add_argument(
        "--cache-memory",
        metavar="GIB",
        type=number(above=0),
        default=2.0,
        help="memory for keys and values of each model (2)",
    )
    group.add_argument(
        "--max-capture", metavar="MIB", type=number(0), default=16.0, help="captured values that a request may get (16)"
    )
    group = p.add_argument_group("computing")
    group.add_argument("--chunk", metavar="N", type=whole(1), default=256, help="tokens of a prompt read at once (256)")
    group.add_argument(
        "--deterministic", action="store_true", help="run each text by itself, for the same bits as alone"
    )
    group.add_argument("--no-prefix-sharing", action="store_true", help="read every prompt from its beginning")
    group.add_argument("--cache-dtype", metavar="NAME", help="keep keys and values as q8_0, q4_0, float8_e4m3fn, …")
    group.add_argument("--dtype", metavar="NAME", choices=DTYPES, help=f"compute in {', '.join(DTYPES)} (file's)")
    group.add_argument("--device", help="the device to compute on (cpu)")
    group.add_argument("--threads", metavar="N", type=whole(1, 4096), help="threads for operators")
    group.add_argument("--offline", action="store_true", help="never download a model")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from ..serve.server import Server

    use_threads(args)
    keys = _keys(args)
    server = Server(_loaded(args), host=args.host, port=args.port, keys=keys)
    try:
        note(args, f"Serving {', '.join(server.registry.names())} at {server.url}/v1 (Ctrl-C ends it)")
        server.run()
    except KeyboardInterrupt:  # before it had begun
        print("\nStopped by Ctrl-C.", file=sys.stderr)
        server.close()
    return 0


def _keys(args: argparse.Namespace) -> Keys:
    from ..serve.keys import Keys, Permissions

    limit = Permissions(max_tokens=args.max_tokens, capture_bytes=int(args.max_capture * (1 << 20)))
    return Keys(args.api_key, limit) if args.api_key_file is None else Keys.read(args.api_key_file, args.api_key, limit)


def named(text: str) -> tuple[str, str]:
    """The name of a model and where it lies, from MODEL or NAME=MODEL.

    >>> from votive.cli.serve import named
    >>> named("chat=models/qwen"), named("Qwen/Qwen3-0.6B")
    (('chat', 'models/qwen'), ('Qwen/Qwen3-0.6B', 'Qwen/Qwen3-0.6B'))
    """
    name, equals, place = text.partition("=")
    if equals and name and place and not Path(text).exists():
        return name, place
    path = Path(text).expanduser()
    return (path.name if path.exists() else text), text


def _loaded(args: argparse.Namespace) -> Registry:
    from ..serve.registry import Registry

    registry, adapters = Registry(), _adapters(args)
    if adapters and len(args.models) > 1:
        raise UsageError("--adapter goes with one model")
    for name, place in [named(m) for m in args.models or [DEFAULT]]:
        if name in registry.names():
            raise UsageError(f"two models are called {name!r}; give one another name, as NAME=MODEL")
        _load(args, registry, name, place)
    return registry


def _adapters(args: argparse.Namespace) -> list[tuple[str, str]]:
    found = [(name, place) for name, _, place in (text.partition("=") for text in args.adapter)]
    for text, (name, place) in zip(args.adapter, found, strict=True):
        if not name or not place:
            raise UsageError(f"--adapter takes NAME=FOLDER, not {text!r}")
    return found


def _load(args: argparse.Namespace, registry: Registry, name: str, place: str) -> None:
    from ..models.adapter_files import is_adapter
    from ..models.checkpoint import Checkpoint
    from ..models.missing import kind_of, uses_of
    from ..serve.adapters import AdapterSwitch
    from ..speech import Transcriber

    path = model_path(args, place)
    if not is_adapter(path):
        config = Checkpoint.find(path).config
        uses = uses_of(config)
        if (path / "modules.json").is_file() or (uses and "causal" not in uses and uses & {"encoder", "masked"}):
            if args.adapter:
                raise ValueError(f'"{name}" makes vectors; --adapter goes with a text generator.')
            registry.add_embedder(name, _encoder(args, path))
            return
        if "speech" in uses:
            if args.adapter:
                raise ValueError(f'"{name}" transcribes speech; --adapter goes with a text generator.')
            registry.add_hearer(name, Transcriber.from_pretrained(path, dtype=args.dtype, device=args.device))
            return
        if uses and "causal" not in uses:
            raise ValueError(
                f'"{name}" is {kind_of(config)}; serve takes text generators, sentence encoders and Whisper.'
            )
    loaded = load_model(args, place)
    switch = AdapterSwitch(loaded.model.eval())
    for adapter, folder in _adapters(args):
        switch.load(adapter, folder)
    for each in (None, *switch.names):
        _add(args, registry, each or name, loaded, switch.using(each))


def _add(args: argparse.Namespace, registry: Registry, name: str, loaded: Loaded, before: Callable[[], None]) -> None:
    from ..serve import Engine, ServedModel

    served = ServedModel(name, loaded.model, loaded.tokenizer, cache_dtype=args.cache_dtype, before=before)
    if served.why_alone:
        note(args, f"votive: the texts of {name} are written one by one: {served.why_alone}")
    engine = Engine(
        served,
        max_texts=args.max_running,
        max_waiting=args.max_waiting,
        memory=int(args.cache_memory * (1 << 30)),
        chunk=args.chunk,
        deterministic=args.deterministic,
        share=not args.no_prefix_sharing,
        default_tokens=args.default_tokens,
    )
    registry.add_writer(engine)


def _encoder(args: argparse.Namespace, path: Path) -> Any:
    from ..models import SentenceEncoder

    if path.is_file():
        from .embed import _from_file

        args.model = str(path)
        return _from_file(args, path)
    encoder_class: Any = SentenceEncoder
    return encoder_class.from_pretrained(path, dtype=args.dtype, device=args.device)
