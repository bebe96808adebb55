"""The process of one session. The front hands it lines; it sees no token and listens nowhere.

A process each, so that what one client sends can neither read nor bring down what belongs to another.
"""

from __future__ import annotations

import contextlib
import json
import select
import socket
import sys
from pathlib import Path
from typing import Any

# What the front says with a line, and what it is told when one has ended.
HANDED, ENDED = b"line", b"e"


def taken(control: socket.socket) -> socket.socket | None:
    """The next line that the front hands over; None when the front is gone."""
    data, files, _, _ = socket.recv_fds(control, len(HANDED), 1)
    if data != HANDED or len(files) != 1:
        return None
    return socket.socket(fileno=files[0])


def run(control: socket.socket, settings: dict[str, Any]) -> None:
    """Serve one line after the other, until the client leaves or stays away for too long."""
    from ... import device, set_num_threads
    from .serving import serve, welcome
    from .session import Session
    from .store import Store

    if settings["threads"]:
        set_num_threads(settings["threads"])
    place = device(settings["device"])
    if place.type == "cuda" and place.index is None:
        place = device("cuda", 0)
    session = Session(place, Store(Path(settings["store"]), settings["store_limit"]), settings["memory"])
    came = False
    while not session.ended:
        ready = select.select([control], [], [], settings["grace"] if came else None)[0]
        line = taken(control) if ready else None
        if line is None:
            return
        came = True
        with line:
            serve(session, line, told=welcome(session, settings["name"], settings["grace"]), other=control)
        control.send(ENDED)


def main() -> None:
    """`python -m votive.remote.server.worker CONTROL SETTINGS`, as the front starts it."""
    control = socket.socket(fileno=int(sys.argv[1]))
    with contextlib.suppress(KeyboardInterrupt):
        run(control, json.loads(sys.argv[2]))


if __name__ == "__main__":
    main()
