"""`votive studio`: a local page for everything. The studio serves; this reads arguments."""

from __future__ import annotations

import argparse
import ipaddress

from . import Commands, command
from .model_options import one_model
from .numbers import whole
from .terminal import note


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "studio",
        description="Open a page in the browser in which a language model can be watched and\n"
        "changed while it writes: tokens, branches, layers, attention, logit lens, edits.\n"
        "It runs on this machine only, and the address it prints holds a secret.",
        examples="  votive studio                           the bundled story-teller\n"
        "  votive studio ./my-model                a folder with config.json\n"
        "  votive studio model.gguf --port 8000 --no-browser\n"
        "  votive studio --models ~/models         any of the models there, chosen on the page\n"
        "  votive studio --device webgpu           on any GPU\n"
        "  votive studio ./my-vit                  a model that sees shows pictures\n"
        "  votive studio ./whisper-base            a Whisper shows what it hears",
    )
    p.add_argument(
        "place",
        metavar="MODEL",
        nargs="?",
        help="a folder, a GGUF file, a bundled name or a repository id (the bundled tales)",
    )
    p.add_argument("--model", metavar="MODEL", help="the same as MODEL")
    p.add_argument("--port", metavar="N", type=whole(0, 65535), default=0, help="the port (default: a free one)")
    p.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="the address to listen on (127.0.0.1)")
    p.add_argument("--no-browser", action="store_true", help="print the address instead of opening a browser")
    p.add_argument("--folder", metavar="PATH", help="where sessions are kept (votive-sessions)")
    p.add_argument(
        "--models",
        metavar="DIR",
        action="append",
        help="a folder whose models can be chosen on the page; may be given again (Hugging Face's cache)",
    )
    p.add_argument("--device", help="the device to compute on, such as cuda or webgpu (cpu)")
    p.add_argument(
        "--no-autosave", action="store_true", help="do not keep unsaved sessions (otherwise in PATH/autosave)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    if not _is_loopback(args.host):
        note(
            args,
            f"votive: other machines can reach {args.host}; anyone with the address below can use "
            "this studio, and the traffic is not encrypted",
        )
    from ..studio import serve

    model = one_model(args.place, args.model)
    serve(
        model,
        host=args.host,
        port=args.port,
        open_browser=not args.no_browser,
        folder=args.folder,
        autosave=not args.no_autosave,
        models=args.models,
        device=args.device,
    )
    return 0


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
