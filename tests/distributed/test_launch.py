"""`votive launch`: what ranks see, and what it says when one of them fails."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.distributed.processes import LIMIT, ROOT, environment, needs_mpi
from votive.cli import UsageError, launch
from votive.cli.launching import Launch, Stream
from votive.distributed import launched
from votive.distributed.transports.liveness import runs

SCRIPT = """
import os, signal, sys
import votive, votive.distributed as dist
dist.init_process_group()
x = votive.ones(1)
dist.all_reduce(x)
names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "OMP_NUM_THREADS")
sys.stdout.write(f"{x.item()} {sys.argv[1:]} {[os.environ[n] for n in names]}\\n")
sys.stdout.flush()
dist.barrier()
if dist.get_rank() == 1:
    {fault}
dist.all_reduce(x)
"""


def started(*words: str, cwd: Path = ROOT, input: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "votive", "launch", *words],
        env={k: v for k, v in environment().items() if k != "OMP_NUM_THREADS"}, cwd=cwd, timeout=LIMIT, text=True,
        capture_output=True, check=False, input=input,
    )  # fmt: skip


@needs_mpi
def test_a_script_runs_on_all_ranks_with_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SCRIPT.replace("{fault}", "sys.stderr.write('unfinished')"))
    done = started("-n", "2", "--threads", "1", str(tmp_path / "s.py"), "--lr", "0.1", "-n")
    assert done.returncode == 0, done.stderr
    for r in "01":
        assert f"[{r}] 2.0 ['--lr', '0.1', '-n'] ['{r}', '2', '{r}', '2', '1']\n" in done.stdout
    assert done.stderr == "[1] unfinished\n"


@needs_mpi
def test_the_program_of_the_page_writes_what_is_shown_there(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "distributed.md").read_text()
    (tmp_path / "sum.py").write_text(re.findall(r"```py\n(.*?)```", page, re.S)[0])
    command, *shown = re.findall(r"```text\n\$ votive launch (.*?)```", page, re.S)[0].splitlines()
    done = started(*command.split(), cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert sorted(done.stdout.splitlines()) == sorted(shown)


@needs_mpi
def test_a_module_runs_and_what_it_writes_and_reads_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "part.py").write_text(
        "import sys\nsys.stdout.write(sys.argv[1] + '\\x1b' + sys.stdin.read() + '\\n')\n"
    )
    done = started("-n", "1", "--no-prefix", "-m", "part", "-x", cwd=tmp_path, input="given")
    assert (done.returncode, done.stdout, done.stderr) == (0, "-x\x1bgiven\n", "")


@needs_mpi
@pytest.mark.parametrize(
    ("fault", "said", "code"),
    [
        ("raise KeyError('of rank 1')", "rank 1 failed at s.py:12 with KeyError: 'of rank 1'", 1),
        ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 was ended by signal 9 (SIGKILL)", 137),
        ("sys.exit(3)", "rank 1 failed at s.py:12 with exit code 3", 3),
        ("os._exit(4)", "rank 1 ended with exit code 4", 4),
    ],
)
def test_a_rank_that_fails_ends_all_and_is_named(fault: str, said: str, code: int, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SCRIPT.replace("{fault}", fault))
    done = started("-n", "2", str(tmp_path / "s.py"))
    assert done.stderr.endswith(f"votive launch: {said}; all ranks were ended.\n"), done.stderr
    assert done.returncode == code
    assert "BAD TERMINATION" not in done.stdout + done.stderr
    if "raise" in fault:
        assert "[1] Traceback (most recent call last):" in done.stderr


@needs_mpi
def test_a_rank_that_fails_before_it_is_connected_ends_those_that_wait_for_it(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(f"import os\nif os.environ['RANK'] == '1':\n    raise ValueError\n{SCRIPT}")
    done = started("-n", "2", str(tmp_path / "s.py"))
    assert done.stderr.endswith("votive launch: rank 1 failed at s.py:3 with ValueError; all ranks were ended.\n")
    assert done.returncode == 1


@needs_mpi
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGKILL, -9)])
def test_ranks_end_with_the_launcher(number: signal.Signals, code: int, tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(SCRIPT.replace("{fault}", "print(os.getpid()); dist.recv(x, 0)"))
    words = [sys.executable, "-m", "votive", "launch", "-n", "2", str(tmp_path / "s.py")]
    with subprocess.Popen(
        words, env=environment(), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as one:
        assert one.stdout is not None
        assert one.stderr is not None
        line = next(line for line in one.stdout if line.removeprefix("[1] ").strip().isdecimal())
        pid = int(line.removeprefix("[1] "))
        one.send_signal(number)
        said = one.stderr.read()
        assert one.wait(LIMIT) == code
    if number == signal.SIGINT:
        assert said.endswith("Stopped by Ctrl-C.\n")
        assert "Traceback" not in said
    end = time.monotonic() + LIMIT
    while runs(pid):
        assert time.monotonic() < end, "rank 1 runs on"
        time.sleep(0.01)


def test_what_is_wrong_is_said_before_anything_starts(tmp_path: Path) -> None:
    for words, text in (
        (["script.py"], "needs -n COUNT"),
        (["-n", "0", "script.py"], "-n takes a number of at least 1"),
        (["-n", "2", "nowhere.py"], "there is no file 'nowhere.py'"),
        (["-n", "2", "--mpiexec", "nompi", str(Path(__file__))], "there is no program 'nompi'"),
        (["--hostfile", str(tmp_path / "no"), "x.py"], "cannot read the hostfile"),
    ):
        done = started(*words)
        assert done.returncode == 2
        assert text in done.stderr


def test_without_mpi_it_says_how_to_get_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("votive.distributed.is_mpi_available", lambda: False)
    with pytest.raises(RuntimeError, match=r"pip install 'votive\[distributed\]'"):
        launch.launcher(None)


def test_hostfiles_of_both_kinds_are_read(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("a:2  # fast\n\nb slots=3 max_slots=4\nc\n")
    assert launch._hosts(str(file)) == [("a", 2), ("b", 3), ("c", 1)]
    file.write_text("a b c\n")
    with pytest.raises(UsageError, match="name slots=4"):
        launch._hosts(str(file))


def test_the_rank_that_failed_is_told_from_those_that_heard_of_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    made = Launch([], {}, tmp_path, 1, quiet=True)
    made.own.extend(b"no such host\n")
    assert made._explained(7) == 7
    assert made._explained(-9) == 1
    assert "no such host\nvotive launch: MPI's launcher ended with code 7." in capfd.readouterr().err
    monkeypatch.setenv(launched.NOTES, str(tmp_path))
    for rank, said, code, heard in (("3", "heard", 5, True), ("1", "ended", 9, False), ("1", "was ended", 1, False)):
        monkeypatch.setenv("RANK", rank)
        launched.note_failure(said, code, heard)
    assert made._explained(0) == 9
    assert capfd.readouterr().err == "votive launch: rank 1 ended; all ranks were ended.\n"


def test_lines_are_shown_whole_however_they_come(capfd: pytest.CaptureFixture[str]) -> None:
    stream = Stream(2)
    for part in (b"7", b" 1\nfi", b"rst\n", b"10 %\r20 %\r", b"done\r\n\nla", b"st"):
        stream.take(part)
    assert capfd.readouterr().out == "[ 7] first\n[ 7] done\n[ 7] \n"
    stream.end()
    assert capfd.readouterr().out == "[ 7] last\n"


ELASTIC = """
import os, signal, sys
import votive, votive.distributed as dist
dist.init_process_group()
restart = int(os.environ["TORCHELASTIC_RESTART_COUNT"])
if restart == 0 and dist.get_rank() == 1:
    os.kill(os.getpid(), signal.SIGKILL)
if restart == 1 and dist.get_rank() == 0:
    raise KeyError("once more")
dist.barrier()
sys.stdout.write(f"{restart} {dist.get_world_size()}\\n")
"""


@needs_mpi
def test_ranks_are_started_again_with_as_many_as_there_may_be(tmp_path: Path) -> None:
    (tmp_path / "s.py").write_text(ELASTIC)
    done = started("-n", "1:2", "--max-restarts", "2", "--threads", "1", str(tmp_path / "s.py"))
    assert done.returncode == 0, done.stderr
    assert done.stdout == "[0] 2 1\n"
    assert "starting again with 1 ranks (restart 1 of 2)" in done.stderr
    assert "starting again with 1 ranks (restart 2 of 2)" in done.stderr
    assert "KeyError: 'once more'" in done.stderr


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["-n", "0", "s.py"], "at least 1"), (["-n", "3:2", "s.py"], "at least 1"), (["-n", "two", "s.py"], "2:8"),
        (["-n", "2", "--max-restarts", "-1", "s.py"], "at least 0"),
    ],
)  # fmt: skip
def test_counts_that_make_no_sense(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    from votive.cli import main

    assert main(["launch", *words]) == 2
    assert message in capsys.readouterr().err
