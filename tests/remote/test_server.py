"""The server as it runs: a process for each session, tokens, TLS, limits, broken lines."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import votive
from votive.backends.remote import connections, wire
from votive.remote.server.front import DeviceServer, Settings

from .certificate import CERTIFICATE, KEY
from .ground import Ground

TOKEN = "a token of more than sixteen letters"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DeviceServer]:
    """One with all that it may have."""
    folder = tmp_path_factory.mktemp("tls")
    (folder / "cert.pem").write_text(CERTIFICATE)
    (folder / "key.pem").write_text(KEY)
    settings = Settings(
        port=0,
        token=TOKEN,
        certificate=str(folder / "cert.pem"),
        key=str(folder / "key.pem"),
        clients=2,
        threads=1,
        memory=64 << 20,
    )
    with DeviceServer(settings) as made:
        yield made


@pytest.fixture(scope="module")
def trusted(server: DeviceServer) -> str:
    assert server.settings.certificate is not None
    return server.settings.certificate


@pytest.fixture(scope="module")
def there(server: DeviceServer, trusted: str) -> Iterator[votive.device]:
    device = votive.remote.connect(server.url, TOKEN, trusted)
    yield device
    votive.remote.disconnect(device)


def test_it_computes_in_a_process_of_its_own_behind_tls_and_a_token(there: votive.device) -> None:
    x = votive.randn(300, 400)
    y = x.to(there)
    assert votive.equal((y @ y.t()).cpu(), x @ x.t())
    large = votive.arange(3_000_000, device=there)  # an answer of several pieces
    assert votive.equal(large.cpu(), votive.arange(3_000_000))
    assert votive.remote.status(there)["device"] == "cpu"


def test_a_wrong_token_is_refused(server: DeviceServer, trusted: str) -> None:
    for token in ("", "another token of that many letters"):
        with pytest.raises(votive.remote.RemoteError, match="the token is wrong; set VOTIVE_REMOTE_TOKEN"):
            votive.remote.connect(server.url, token, trusted, new=True)


def test_a_certificate_that_nobody_vouches_for_is_refused(server: DeviceServer, there: votive.device) -> None:
    with pytest.raises(votive.remote.RemoteConnectionError, match="TLS failed"):
        votive.remote.connect(server.url, TOKEN, "system", new=True)


def test_the_environment_holds_token_and_certificate(
    server: DeviceServer, trusted: str, there: votive.device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VOTIVE_REMOTE_TOKEN", TOKEN)
    monkeypatch.setenv("VOTIVE_REMOTE_CA", trusted)
    assert votive.device(server.url) == there


def test_more_clients_than_allowed_are_turned_away_and_weights_come_once(
    server: DeviceServer, trusted: str, there: votive.device
) -> None:
    weights = votive.randn(256, 256)
    weights.to(there)
    votive.remote.synchronize(there)
    second = votive.remote.connect(server.url, TOKEN, trusted, new=True)
    before = votive.remote.status(second)["bytes_sent"]
    again = weights.to(second)
    assert votive.equal(again.cpu(), weights)
    assert votive.remote.status(second)["bytes_sent"] - before < 1000
    again.zero_()  # its own copy: the other client's stays
    assert votive.equal(weights.to(there).cpu(), weights)
    assert not again.any().item()
    with pytest.raises(votive.remote.RemoteError, match="2 clients are connected, which is the limit"):
        votive.remote.connect(server.url, TOKEN, trusted, new=True)
    votive.remote.disconnect(second)


def test_a_client_gets_no_more_memory_than_its_limit(there: votive.device) -> None:
    kept = votive.ones(4, device=there)
    large = votive.zeros(40 << 20, dtype=votive.uint8, device=there)
    more = votive.zeros(40 << 20, dtype=votive.uint8, device=there)
    with pytest.raises(MemoryError, match=r"beyond this client's limit of 64\.0 MiB"):
        votive.remote.synchronize(there)
    with pytest.raises(RuntimeError, match="never computed"):
        more[0].item()
    del large, more
    assert votive.zeros(40 << 20, dtype=votive.uint8, device=there)[-1].item() == 0
    assert kept.tolist() == [1, 1, 1, 1]


def test_what_was_saved_outlives_a_session(server: DeviceServer, trusted: str, there: votive.device) -> None:
    layer = votive.nn.Linear(3, 2).to(there)
    votive.remote.save("layer", layer.state_dict())
    votive.remote.save("x", votive.arange(4, device=there)[1:])
    other = votive.remote.connect(server.url, TOKEN, trusted, new=True)
    assert votive.remote.saved(other) == ["layer/bias", "layer/weight", "x"]
    state = votive.remote.load("layer", other)
    assert state["weight"].device == other
    assert votive.equal(state["weight"].cpu(), layer.weight.detach().cpu())
    assert votive.remote.load("x", other).tolist() == [1, 2, 3]
    votive.remote.delete("layer", other)
    with pytest.raises(KeyError, match="nothing was saved as 'layer'"):
        votive.remote.load("layer", other)
    votive.remote.disconnect(other)


def test_the_end_of_a_process_is_told_and_costs_only_its_own_tensors(
    server: DeviceServer, trusted: str, there: votive.device
) -> None:
    kept = votive.ones(2, device=there)
    votive.remote.synchronize(there)
    second = votive.remote.connect(server.url, TOKEN, trusted, new=True)
    lost = votive.ones(2, device=second)
    votive.remote.synchronize(second)
    name = connections.of(second).session
    assert name is not None
    server._workers[name].process.kill()
    with pytest.raises(votive.remote.RemoteConnectionError, match=r"the connection broke .* 1 tensors are there"):
        lost.tolist()
    assert votive.remote.resume(second)["kept"] == 0
    assert (votive.ones(2, device=second) + 1).tolist() == [2, 2]
    with pytest.raises(RuntimeError, match="was lost when the connection broke"):
        lost.tolist()
    assert kept.tolist() == [1, 1]
    votive.remote.disconnect(second)


def test_a_broken_line_is_told_once_and_taken_up_again(ground: Ground) -> None:
    place = ground.connect()
    x = votive.arange(3.0, device=place)
    y = x * 2
    votive.remote.synchronize(place)
    ground.break_lines()
    with pytest.raises(votive.remote.RemoteConnectionError, match=r"2 tensors are there; the server keeps them"):
        y.tolist()
    assert y.tolist() == [0, 2, 4]  # the next use connects again
    assert (x + y).tolist() == [0, 3, 6]
    ground.break_lines()
    with pytest.raises(votive.remote.RemoteConnectionError):
        votive.remote.synchronize(place)
    assert votive.remote.resume(place) == {"kept": 2, "lost": 0}
    votive.remote.disconnect(place)


def test_what_had_not_arrived_is_lost_and_said_to_be(ground: Ground) -> None:
    place = ground.connect()
    x, changed = votive.ones(2, device=place), votive.ones(2, device=place)
    votive.remote.synchronize(place)
    connection = connections.of(place)
    with connection.lock:  # nothing goes until the line is gone
        connection._flushed = 1e18
        y = x + 1
        changed.add_(1)
        ground.break_lines()
    with pytest.raises(votive.remote.RemoteConnectionError):
        votive.remote.synchronize(place)
    connection._flushed = 0.0
    assert votive.remote.resume(place) == {"kept": 1, "lost": 2}
    for lost in (y, changed):
        with pytest.raises(RuntimeError, match="was lost when the connection broke"):
            lost.tolist()
    assert (x + 1).tolist() == [2, 2]  # the plan of the lost call is told again
    votive.remote.disconnect(place)


def test_a_session_that_is_over_is_begun_anew(ground: Ground) -> None:
    place = ground.connect()
    x = votive.ones(2, device=place)
    votive.remote.synchronize(place)
    name = connections.of(place).session
    ground.break_lines()
    assert name is not None
    ground.sessions.pop(name)
    with pytest.raises(votive.remote.RemoteConnectionError):
        x.tolist()
    assert votive.remote.resume(place) == {"kept": 0, "lost": 1}
    with pytest.raises(RuntimeError, match="was lost"):
        x.tolist()
    assert votive.ones(2, device=place).tolist() == [1, 1]
    votive.remote.disconnect(place)


def test_threads_share_a_connection(ground: Ground) -> None:
    place = ground.connect()
    found: dict[int, float] = {}

    def work(k: int) -> None:
        x = votive.full((8,), float(k), device=place)
        for _ in range(20):
            x = x + 1
        found[k] = x.sum().item()

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(60)
    assert found == {k: 8.0 * (k + 20) for k in range(4)}
    votive.remote.disconnect(place)


def test_memory_there_is_freed_with_the_tensors_here(ground: Ground) -> None:
    place = ground.connect()
    name = connections.of(place).session
    assert name is not None
    memory = ground.sessions[name].memory
    x = votive.ones(1000, device=place)
    for _ in range(50):
        x = x * 1.0
    votive.remote.synchronize(place)
    assert memory.used == 4000
    assert len(memory.table) == 1
    del x
    votive.remote.synchronize(place)
    assert (memory.used, len(memory.table)) == (0, 0)
    votive.remote.disconnect(place)


def test_nothing_answers_or_something_else_does() -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]

        def answered() -> None:
            with other.accept()[0] as line:
                line.sendall(b"HTTP/1.1 400 Bad Request\r\n" * 3)
                line.settimeout(60)
                with contextlib.suppress(OSError):
                    line.recv(1)

        answer = threading.Thread(target=answered)
        answer.start()
        with pytest.raises(votive.remote.RemoteConnectionError, match="is not a votive device"):
            votive.remote.connect(f"remote://127.0.0.1:{port}", new=True)
        answer.join(60)
    with pytest.raises(votive.remote.RemoteConnectionError, match="nothing answers there"):
        votive.remote.connect(f"remote://127.0.0.1:{port}", new=True)


def test_another_version_of_the_protocol_is_named(monkeypatch: pytest.MonkeyPatch, ground: Ground) -> None:
    monkeypatch.setattr(wire, "VERSION", 2)
    monkeypatch.setattr("tests.remote.ground.VERSION", 1)
    with pytest.raises(votive.remote.RemoteConnectionError, match="speaks version 1 of the protocol, this votive ver"):
        ground.connect()


@pytest.mark.parametrize(
    "url", ["remote://", "remote://a:b", "remote://host/path", "remote://u@host", "remote://h:99999"]
)
def test_an_address_must_be_one(url: str) -> None:
    with pytest.raises(RuntimeError, match=r"is no address of a device; write 'remote://host:port'"):
        votive.device(url)


def test_addresses_are_devices() -> None:
    place = votive.device("remote://elsewhere.invalid:5")
    assert place.type == "remote"
    assert votive.device("remote://elsewhere.invalid:5") == place
    assert votive.device(str(place)) == place
    with pytest.raises(RuntimeError, match="takes no index"):
        votive.device("remote://elsewhere.invalid:5", 1)
    with pytest.raises(RuntimeError, match=r"there is no connection for 'remote:9999'; remote:\d+ is remote://"):
        votive.zeros(2, device="remote:9999")
    connections.of(place).close()


def test_a_server_that_others_reach_wants_a_token() -> None:
    with pytest.raises(ValueError, match=r"0\.0\.0\.0 can be reached by others, so give a --token"):
        DeviceServer(Settings(host="0.0.0.0", port=0))
    with pytest.raises(ValueError, match="--tls-key goes with --tls-cert"):
        DeviceServer(Settings(port=0, key="key.pem"))


def test_the_command_serves_until_it_is_stopped(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN + "\n".replace(" ", ""))
    words = ["device", "serve", "--port", "0", "--threads", "1", "--token-file", str(token)]
    with subprocess.Popen([sys.executable, "-m", "votive", *words], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            found = re.fullmatch(r"Serving cpu at (remote://127\.0\.0\.1:\d+)\n", line)
            assert found, line
            place = votive.remote.connect(found[1], TOKEN.split()[0])
            assert votive.arange(3, device=place).sum().item() == 3
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            process.kill()
    with pytest.raises(votive.remote.RemoteConnectionError):
        votive.ones(2, device=place).tolist()
    connections.of(place).close()


def test_a_forked_process_must_connect_itself(ground: Ground) -> None:
    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    connection = connections.of(ground.connect())
    connection._process = -1  # as a child would find it
    with pytest.raises(votive.remote.RemoteError, match="connect in each process"):
        connection.wait()
    connection._process = os.getpid()
    connection.close()


def test_large_arrays_go_in_pieces(ground: Ground) -> None:
    place = ground.connect()
    x = votive.from_numpy(np.arange(wire.CHUNK * 2 // 4 + 5, dtype=np.float32))
    assert votive.equal(x.to(place).cpu(), x)
    before = votive.remote.status(place)["bytes_sent"]
    kept: Any = x.to(place)  # known by its content now
    assert votive.remote.status(place)["bytes_sent"] - before < 1000
    assert votive.equal(kept.cpu(), x)
    votive.remote.disconnect(place)


def test_many_plans_and_specs_are_forgotten_and_told_again(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.remote import connection as module

    monkeypatch.setattr(module, "PLANS", 5)
    monkeypatch.setattr(module, "SPECS", 3)
    place = ground.connect()
    name = connections.of(place).session
    assert name is not None
    session = ground.sessions[name]
    for _ in range(2):
        for n in range(1, 12):
            x = votive.ones(n, device=place)
            x.mul_(n)
            assert (x.cumsum(0) - 1).tolist() == [n * k - 1.0 for k in range(1, n + 1)]
    votive.remote.synchronize(place)
    assert len(session.specs) <= 3
    assert len(session.plans) <= 12
    votive.remote.disconnect(place)


def test_a_program_that_ends_leaves_nothing_behind() -> None:
    program = (
        "import sys, votive\nplace = votive.device(sys.argv[1])\nprint(votive.ones(3, device=place).sum().item())\n"
    )
    with DeviceServer(Settings(port=0, threads=1)) as one:
        found = subprocess.run([sys.executable, "-c", program, one.url], capture_output=True, text=True, timeout=120)
        assert (found.returncode, found.stdout, found.stderr) == (0, "3.0\n", "")
        (worker,) = one._workers.values()
        assert worker.process.wait(60) == 0


def test_a_session_that_nobody_is_connected_to_gives_way() -> None:
    with DeviceServer(Settings(port=0, threads=1, clients=1)) as one:
        first = votive.remote.connect(one.url, new=True)
        x = votive.ones(2, device=first)
        votive.remote.synchronize(first)
        line = connections.of(first)._socket
        assert line is not None
        line.shutdown(socket.SHUT_RDWR)
        second = None
        while second is None:  # until the server has noticed
            with contextlib.suppress(votive.remote.RemoteError):
                second = votive.remote.connect(one.url, new=True)
        assert votive.ones(2, device=second).sum().item() == 2
        votive.remote.disconnect(second)
        with pytest.raises(votive.remote.RemoteConnectionError):
            x.tolist()
        connections.of(first).close()


def test_a_number_too_large_to_be_sent_is_refused_as_here(ground: Ground) -> None:
    place = ground.connect()
    with pytest.raises(OverflowError, match=r"^add: a number among its arguments does not fit into 64 bits"):
        votive.ones(2, device=place) + 10**50
    votive.remote.disconnect(place)


def test_ctrl_c_while_waiting_costs_only_the_line(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    from votive.backends.remote import connection as module

    place = ground.connect()
    x = votive.ones(2, device=place)
    votive.remote.synchronize(place)
    answered = module._answer

    def interrupted(*args: Any) -> Any:
        monkeypatch.setattr(module, "_answer", answered)
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "_answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        x.tolist()
    assert x.tolist() == [1, 1]
    votive.remote.disconnect(place)
