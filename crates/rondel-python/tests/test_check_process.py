"""The command of a check as a process: time limits, signals, output, environment, other threads."""

import concurrent.futures
import os
import signal
import subprocess
import sys
import time

import pytest

import rondel
from samples import DRIVE, VEHICLE


def test_timeout_ends_the_command(fake, tmp_path):
    fake(f"open({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)")
    # On a busy machine the command may not have begun when a short time is over.
    for timeout in 1, 4, 16:
        start = time.monotonic()
        with pytest.raises(TimeoutError, match=f"{timeout}.0 s"):
            rondel.check("a", "b", timeout=timeout)
        assert time.monotonic() - start < timeout + 30
        if (tmp_path / "pid").exists():
            break
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_interrupt_ends_the_command(fake, tmp_path):
    fake(f"signal.signal(signal.SIGINT, signal.SIG_IGN)\nopen({str(tmp_path / 'pid')!r}, 'w').write(str(os.getpid()))\ntime.sleep(60)")
    program = [sys.executable, "-c", "import rondel; rondel.check('a', 'b')"]
    process = subprocess.Popen(program, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 60
    while not ((tmp_path / "pid").exists() and (tmp_path / "pid").read_text()) and time.monotonic() < deadline:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in process.communicate(timeout=60)[1]
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_killed_command(fake):
    fake("os.kill(os.getpid(), signal.SIGKILL)")
    with pytest.raises(rondel.RondelError, match="SIGKILL"):
        rondel.check("a", "b")


@pytest.mark.parametrize("output", ["print('no verdict')", "print('{}')", "print('[1]')"])
def test_output_of_another_program(fake, output):
    fake(f"print('{{}}', file=sys.stderr)\n{output}")
    with pytest.raises(rondel.RondelError, match="no verdict"):
        rondel.check("a", "b")
    fake("sys.exit(0)")
    with pytest.raises(rondel.RondelError, match="status 0"):
        rondel.check("a", "b")


def test_other_threads_run_meanwhile(fake, tmp_path):
    begun, seen = tmp_path / "begun", tmp_path / "seen"
    # It ends well only if another thread sees it running.
    fake(f"""
        open({str(begun)!r}, "w").close()
        deadline = time.monotonic() + 30
        while not os.path.exists({str(seen)!r}):
            if time.monotonic() > deadline: sys.exit("nobody has seen it")
            time.sleep(0.01)
        print('{{"properties": []}}', file=sys.stderr)
    """)
    with concurrent.futures.ThreadPoolExecutor() as threads:
        checked = threads.submit(rondel.check, "a", "b")
        while not (begun.exists() or checked.done()):
            time.sleep(0.01)
        seen.touch()
        assert checked.result().properties == []


def test_environment_does_not_colour(lines, monkeypatch):
    monkeypatch.setenv("CLICOLOR_FORCE", "1")
    with pytest.raises(rondel.SpecificationError) as error:
        rondel.check(lines([1]), formula="(")
    assert "\x1b" not in str(error.value)


def test_results_work_after_a_fork():
    results = rondel.check(VEHICLE, DRIVE)
    pid = os.fork()
    if pid == 0:
        os._exit(0 if rondel.check(VEHICLE, DRIVE).is_violated and results.report("tap") else 1)
    assert os.waitpid(pid, 0)[1] == 0
