"""`votive device`: `votive device serve` makes this machine a device for programs elsewhere. This reads
arguments; the server serves."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from . import Commands, UsageError, command
from .numbers import number, whole
from .terminal import note

if TYPE_CHECKING:
    from ..remote.server.front import Settings

PORT = 7070


def add(commands: Commands) -> None:
    """Declare the arguments."""
    p = command(
        commands,
        "device",
        description="Let programs on other machines use the memory and kernels of this one: there,\n"
        "votive.device('remote://HOST:PORT') is a device like any other. Each client gets a process of its\n"
        "own. What clients send is data; nothing of theirs is run.",
        examples="  votive device serve                                        for this machine alone, on port 7070\n"
        "  votive device serve --device cuda --host 0.0.0.0 --token-file token.txt \\\n"
        "      --tls-cert cert.pem --tls-key key.pem                  a GPU for others, who know the token",
    )
    p.add_argument("action", choices=("serve",), help="serve: listen until Ctrl-C")
    p.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="(127.0.0.1)")
    p.add_argument("--port", metavar="N", type=whole(0, 65535), default=PORT, help=f"0 takes a free one ({PORT})")
    p.add_argument("--device", default="cpu", help="where to compute: cpu, cuda, cuda:1 (cpu)")
    p.add_argument("--threads", metavar="N", type=whole(1, 4096), help="threads of each client's operators")
    group = p.add_argument_group("who may come")
    group.add_argument("--token", help="what clients must know, 16 characters or more (VOTIVE_REMOTE_TOKEN)")
    group.add_argument("--token-file", metavar="FILE", help="a file whose first line is the token")
    group.add_argument("--tls-cert", metavar="FILE", help="a certificate: lines are encrypted")
    group.add_argument("--tls-key", metavar="FILE", help="its key, where that is another file")
    group = p.add_argument_group("limits")
    group.add_argument("--memory-limit", metavar="GIB", type=number(above=0), help="of tensors, each client (no limit)")
    group.add_argument("--max-clients", metavar="N", type=whole(1, 4096), default=8, help="at once (8)")
    group.add_argument(
        "--grace", metavar="SECONDS", type=number(0), default=600.0, help="to keep the tensors of a broken line (600)"
    )
    group.add_argument(
        "--store-limit", metavar="GIB", type=number(0), default=8.0, help="of weights kept for the next client (8)"
    )
    group.add_argument("--store", metavar="FOLDER", help="keep weights and saved tensors here (a temporary folder)")


def run(args: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    from ..remote.server.front import DeviceServer

    server = DeviceServer(_settings(args))
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # which ends it as Ctrl-C does
    try:
        print(f"Serving {args.device} at {server.url}", flush=True)
        if server.settings.certificate is None and not server.is_local:
            note(args, "Lines are not encrypted: who sits on one can read along. --tls-cert encrypts them.")
        note(args, "Ctrl-C ends it.")
        server.wait()
    except KeyboardInterrupt:
        print("\nStopped.", file=sys.stderr)
    finally:
        server.close()
    return 0


def _settings(args: argparse.Namespace) -> Settings:
    from ..backends.remote.address import TOKEN
    from ..core.device import device
    from ..remote.server.front import Settings

    place = device(args.device)
    if place.type not in ("cpu", "cuda"):
        raise UsageError(f"device serve computes on cpu or cuda, not on {args.device!r}.")
    if place.type == "cuda":
        from .. import cuda

        if not cuda.is_available():
            raise UsageError(f"device serve: there is no GPU to serve: {cuda.why_not()}")
    return Settings(
        host=args.host,
        port=args.port,
        device=args.device,
        token=_token(args, os.environ.get(TOKEN, "")),
        certificate=_file(args.tls_cert),
        key=_file(args.tls_key),
        memory=None if args.memory_limit is None else int(args.memory_limit * (1 << 30)),
        clients=args.max_clients,
        grace=args.grace,
        store=args.store,
        store_limit=int(args.store_limit * (1 << 30)),
        threads=args.threads,
    )


def _token(args: argparse.Namespace, known: str) -> str:
    if args.token is not None and args.token_file is not None:
        raise UsageError("give --token or --token-file, not both.")
    if args.token_file is not None:
        lines = Path(args.token_file).read_text().split()
        if not lines:
            raise UsageError(f"{args.token_file} holds no token.")
        return lines[0]
    return known if args.token is None else str(args.token)


def _file(name: str | None) -> str | None:
    if name is not None and not Path(name).is_file():
        raise UsageError(f"there is no file {name!r}.")
    return name
