"""What a device elsewhere costs, on this machine and behind a line that delays.

    python -m benchmarks.remote [--rounds 15] [--latency 20] [--json FILE]

A server of one thread runs in processes of its own; the bundled model's forward and a training step are run here and
there in turns, and the ratio of medians is what counts. Then a line that holds back what goes through it, by so many
milliseconds one way and back together, shows how often a forward waits.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import json
import queue
import socket
import statistics
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import votive
from votive.remote.server.front import DeviceServer, Settings


class Delayed:
    """A line to a server that takes `seconds` for the way there and back."""

    def __init__(self, port: int, seconds: float) -> None:
        self.port, self.seconds = port, seconds / 2
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"remote://127.0.0.1:{self.listener.getsockname()[1]}"
        self.lines: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        """Cut it."""
        for line in (self.listener, *self.lines):
            with contextlib.suppress(OSError):
                line.shutdown(socket.SHUT_RDWR)
            line.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            line, _ = self.listener.accept()
            server = socket.create_connection(("127.0.0.1", self.port))
            self.lines += [line, server]
            for a, b in ((line, server), (server, line)):
                a.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                threading.Thread(target=self._carry, args=(a, b), daemon=True).start()

    def _carry(self, source: socket.socket, target: socket.socket) -> None:
        """Each piece leaves so long after it came; pieces do not wait for each other."""
        pieces: queue.SimpleQueue[tuple[float, bytes]] = queue.SimpleQueue()

        def deliver() -> None:
            with contextlib.suppress(OSError):
                while True:
                    due, data = pieces.get()
                    if not data:
                        return
                    time.sleep(max(0.0, due - time.perf_counter()))
                    target.sendall(data)

        threading.Thread(target=deliver, daemon=True).start()
        data = b"?"
        with contextlib.suppress(OSError):
            while data:
                data = source.recv(1 << 18)
                pieces.put((time.perf_counter() + self.seconds, data))
        pieces.put((0.0, b""))


def in_turns(runs: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """The median seconds of each, run after one another so that a busy machine is busy for all."""
    taken: list[list[float]] = [[] for _ in runs]
    for k in range(rounds + 3):
        for run, times in zip(runs, taken, strict=True):
            begin = time.perf_counter()
            run()
            if k >= 3:
                times.append(time.perf_counter() - begin)
    return [statistics.median(t) for t in taken]


def stepping(model: Any, ids: Any) -> Callable[[], Any]:
    """A step of training that reads its loss."""
    updates = votive.optim.AdamW(model.parameters(), lr=1e-4)

    def step() -> float:
        updates.zero_grad()
        loss = model(ids, labels=ids).loss
        loss.backward()
        updates.step()
        return float(loss.item())

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--latency", type=float, default=20.0, help="milliseconds there and back (20)")
    parser.add_argument("--json", type=Path)
    options = parser.parse_args()
    votive.set_num_threads(1)
    from votive.models import AutoModelForCausalLM

    here = AutoModelForCausalLM.from_pretrained("tales", dtype=votive.float32).eval()
    found: dict[str, Any] = {}
    with DeviceServer(Settings(port=0, threads=1)) as server:
        place = votive.remote.connect(server.url)
        there = copy.deepcopy(here).to(place)
        for tokens in (16, 128, 512):
            ids = votive.randint(0, 4096, (1, tokens))
            far = ids.to(place)
            with votive.no_grad():
                runs = [lambda ids=ids: here(ids).logits.cpu(), lambda far=far: there(far).logits.cpu()]
                mine, theirs = in_turns(runs, options.rounds)
            found[f"forward of {tokens} tokens"] = {"here": mine, "there": theirs, "ratio": theirs / mine}
        ids = votive.randint(0, 4096, (2, 128))
        steps = [stepping(copy.deepcopy(here), ids), stepping(copy.deepcopy(here).to(place), ids.to(place))]
        mine, theirs = in_turns(steps, max(options.rounds // 3, 3))
        found["training step, 2 x 128 tokens"] = {"here": mine, "there": theirs, "ratio": theirs / mine}
        line = Delayed(server.port, options.latency / 1000)
        slow = votive.remote.connect(line.url)
        there, far = copy.deepcopy(here).to(slow), votive.randint(0, 4096, (1, 16)).to(slow)
        with votive.no_grad():
            there(far).logits.cpu()
            before = votive.remote.status(slow)
            (taken,) = in_turns([lambda: there(far).logits.cpu()], options.rounds)
            after = votive.remote.status(slow)
        count = options.rounds + 3
        found[f"forward of 16 tokens behind {options.latency:g} ms"] = {
            "there": taken,
            "round trips": (after["round_trips"] - before["round_trips"]) / count,
            "messages": (after["messages"] - before["messages"]) / count,
        }
        for name, row in found.items():
            shown = [f"{k} {v * 1000:.1f} ms" if k in ("here", "there") else f"{k} {v:.2f}" for k, v in row.items()]
            print(f"{name:40}", *shown)
        for device in (place, slow):
            votive.remote.disconnect(device)
        line.close()
    if options.json is not None:
        options.json.write_text(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
