"""Errors that must not crash, hang, or lose what came before."""

import os
import pickle
import select
import signal
import subprocess
import sys
import textwrap
import threading
import traceback

import pytest

import rondel

SPEC = "topic s { x: float }  property p = s.x < 3"


def run(program, timeout=60):
    """Run a program in a process of its own, and return what it prints."""
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, timeout=timeout
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_none_is_no_value():
    monitor = rondel.Monitor(SPEC)
    monitor.push("s", {"x": 1.0}, time=1.0)
    [report] = monitor.push("s", {"x": None}, time=2.0)
    assert report.verdict == "inconclusive"
    assert monitor.push("s", {}, time=3.0) == []
    with pytest.raises(TypeError):
        monitor.push(None, {"x": 1.0}, time=1.0)
    with pytest.raises(TypeError):
        rondel.Monitor(None)


def test_values_of_another_type_are_counted():
    monitor = rondel.Monitor(SPEC)
    monitor.push("s", {"x": "fast"}, time=1.0)
    summary = monitor.summary()
    assert summary.is_inconclusive
    [sentence] = summary.not_evaluated
    assert "another type" in sentence
    assert [(notice.kind, notice.topic) for notice in monitor.notices()] == [("mistyped", "s")]


def test_large_integers():
    monitor = rondel.Monitor("topic s { x: int }  property p = s.x < 3")
    monitor.push("s", {"x": 2**80}, time=1.0)
    assert monitor.summary().is_inconclusive
    with pytest.raises(OverflowError):
        monitor.push("s", {"x": 1}, time_ns=2**64)


def test_texts_that_are_no_unicode():
    with pytest.raises(UnicodeEncodeError):
        rondel.Monitor(SPEC).push("s", {"x\ud800": 1.0}, time=1.0)


def test_times_that_step_back():
    monitor = rondel.Monitor(SPEC)
    monitor.push("s", {"x": 1.0}, time=100.0)
    [report] = monitor.push("s", {"x": 5.0}, time=50.0)
    assert report.verdict == "violated"
    assert (monitor.summary().out_of_order, monitor.summary().checked) == (1, 2)
    [notice] = monitor.notices()
    assert (notice.kind, str(notice)) == ("backwards", "time goes backwards at step 1 (time 50 s)")
    assert monitor.notices() == []


def test_exceptions_of_values():
    monitor = rondel.Monitor(SPEC)

    class Fails:
        def tolist(self):
            raise KeyError("broken")

    with pytest.raises(KeyError, match="broken"):
        monitor.push("s", {"x": Fails()}, time=1.0)
    with pytest.raises(KeyError, match="broken"):
        monitor.push_many("s", {"time": [1.0], "x": Fails()})
    assert monitor.summary().checked == 0


def test_exceptions_of_streams():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"time": [1.0, 2.0], "x": [1.0, 9.0]})

    def batches():
        yield batch
        raise RuntimeError("the disk is gone")

    monitor = rondel.Monitor(SPEC)
    with pytest.raises(ValueError, match="the disk is gone"):
        monitor.push_many("s", pyarrow.RecordBatchReader.from_batches(batch.schema, batches()))
    # The rows before it were evaluated; the next call returns their verdicts.
    assert monitor.summary().checked == 2
    assert [report.verdict for report in monitor.advance(3.0)] == ["satisfied", "violated"]


def test_streams_that_push():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"time": [1.0, 2.0], "x": [1.0, 9.0]})
    monitor = rondel.Monitor(SPEC)

    def batches():
        yield batch
        monitor.push("s", {"x": 0.0}, time=3.0)

    monitor.push_many("s", pyarrow.RecordBatchReader.from_batches(batch.schema, batches()))
    assert monitor.summary().checked == 3


def test_streams_are_read_once():
    pyarrow = pytest.importorskip("pyarrow")

    class Once:
        def __init__(self):
            self.capsule = pyarrow.table({"time": [1.0], "x": [1.0]}).__arrow_c_stream__()

        def __arrow_c_stream__(self, requested_schema=None):
            return self.capsule

    monitor, once = rondel.Monitor(SPEC), Once()
    monitor.push_many("s", once)
    with pytest.raises(ValueError):
        monitor.push_many("s", once)
    once.capsule = 3
    with pytest.raises(TypeError):
        monitor.push_many("s", once)


def test_rows_without_a_time_after_others():
    pyarrow = pytest.importorskip("pyarrow")
    good = pyarrow.record_batch({"time": [1.0, 2.0], "x": [1.0, 9.0]})
    bad = pyarrow.record_batch({"time": pyarrow.array([3.0, None]), "x": [1.0, 9.0]})
    monitor = rondel.Monitor(SPEC)
    with pytest.raises(ValueError, match="row 3: the column 'time' has no time; the rows before 2 were evaluated"):
        monitor.push_many("s", pyarrow.Table.from_batches([good, bad]))
    assert monitor.summary().checked == 2


def test_finished_monitors():
    monitor = rondel.Monitor(SPEC)
    monitor.push("s", {"x": 1.0}, time=1.0)
    monitor.finish()
    monitor.finish()
    calls = (
        monitor.snapshot,
        lambda: monitor.advance(9.0),
        lambda: pickle.dumps(monitor),
        lambda: monitor.push("s", {"x": 1.0}, time=2.0),
        lambda: monitor.push_many("s", {"time": [3.0], "x": [1.0]}),
    )
    for call in calls:
        with pytest.raises(ValueError, match="finished"):
            call()
    assert monitor.summary().checked == 1


def test_pickles_of_another_version():
    monitor = rondel.Monitor(SPEC)
    snapshot = bytearray(monitor.snapshot())
    # The version follows the eight bytes of the kind.
    snapshot[8] ^= 0x7F
    with pytest.raises(rondel.SnapshotError, match="version"):
        rondel.Monitor.restore(SPEC, bytes(snapshot))
    state = pickle.dumps(monitor)
    of_another = state.replace(monitor.snapshot(), bytes(snapshot))
    assert of_another != state
    with pytest.raises(rondel.SnapshotError, match="version"):
        pickle.loads(of_another)
    state = pickle.dumps(monitor, protocol=0)
    with pytest.raises(rondel.SnapshotError):
        pickle.loads(state.replace(b"p = s.x < 3", b"q = s.x > 5"))
    explained = rondel.Monitor(SPEC, explain=True).snapshot()
    with pytest.raises(rondel.SnapshotError, match="explain"):
        rondel.Monitor.restore(SPEC, explained)


def test_mistakes_during_import_of_a_test():
    """As in a module that pytest collects: the traceback ends with the place in the specification."""
    with pytest.raises(rondel.RondelError) as caught:
        exec("import rondel\nMONITOR = rondel.Monitor('topic s { x: float }  property p = s.y < 3')", {})
    text = "".join(traceback.format_exception(caught.value))
    assert "--> specification:1:38" in text and "unknown field 'y'" in text


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_monitors_continue_in_a_fork():
    monitor = rondel.Monitor(SPEC)
    monitor.push("s", {"x": 1.0}, time=1.0)
    child = os.fork()
    if child == 0:
        good = monitor.push("s", {"x": 5.0}, time=2.0)[0].verdict == "violated"
        os._exit(0 if good else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert monitor.push("s", {"x": 2.0}, time=2.0) == []


FORK = """
    import os, threading, pyarrow, rondel

    monitor = rondel.Monitor("topic s { x: float }  property p = s.x < 3")
    rows = 3_000_000
    table = pyarrow.table({"time": pyarrow.array(range(rows)).cast("float64"), "x": pyarrow.nulls(rows, "float64")})
    thread = threading.Thread(target=monitor.push_many, args=("s", table), daemon=True)
    thread.start()
    errors = 0
    while thread.is_alive() and not errors:
        child = os.fork()
        if child == 0:
            try:
                monitor.push("s", {"x": 1.0}, time=1e9)
            except RuntimeError as error:
                os._exit(7 if "forked" in str(error) else 1)
            os._exit(0)
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert status in (0, 7), status
        errors += status == 7
    print(errors)
    os._exit(0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forks_while_a_monitor_is_used():
    pytest.importorskip("pyarrow")
    # The lock is held nearly all the time: some child finds it so.
    assert run(FORK).strip() == "1"


SUBINTERPRETER = """
    try:
        import _interpreters as interpreters
    except ImportError:
        try:
            import _xxsubinterpreters as interpreters
        except ImportError:
            print("none")
            raise SystemExit
    execute = getattr(interpreters, "exec", interpreters.run_string) if hasattr(interpreters, "run_string") else interpreters.exec
    import rondel

    other = interpreters.create()
    try:
        failure = execute(other, "import rondel; rondel.Monitor")
        print(failure.formatted if failure else "imported")
    except Exception as error:
        print(error)
    rondel.Monitor("topic s { x: float }  property p = s.x < 3").push("s", {"x": 1.0}, time=1.0)
    print("alive")
"""


def test_subinterpreters_are_refused():
    lines = run(SUBINTERPRETER).splitlines()
    if lines == ["none"]:
        pytest.skip("this Python has no subinterpreters")
    assert "subinterpreters" in lines[0] and lines[-1] == "alive", lines


def test_free_threaded_python_is_refused():
    # Such a Python does not find the extension module.
    program = """
        import sys, sysconfig

        sysconfig.get_config_var = lambda name: 1
        sys.modules["rondel._native"] = None
        try:
            from rondel import Monitor
        except ImportError as error:
            print(error)
    """
    assert "free-threaded" in run(program)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="this system has no timers")
def test_interrupts():
    pyarrow = pytest.importorskip("pyarrow")
    batch = pyarrow.record_batch({"time": [1.0] * 1000, "x": [1.0] * 1000})
    monitor = rondel.Monitor(SPEC)

    def batches():
        yield batch
        # The first batch is evaluated.
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        while True:
            yield batch

    before = signal.signal(signal.SIGALRM, signal.default_int_handler)
    try:
        with pytest.raises((KeyboardInterrupt, ValueError)):
            monitor.push_many("s", pyarrow.RecordBatchReader.from_batches(batch.schema, batches()))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert monitor.summary().checked > 0
    assert monitor.push("s", {"x": 9.0}, time=2.0)[-1].verdict == "violated"


def test_other_threads_run_meanwhile():
    pyarrow = pytest.importorskip("pyarrow")
    reading, writing = os.pipe()
    entered, done = threading.Event(), threading.Event()

    def batches():
        entered.set()
        # Only another thread of Python can write to the pipe.
        readable, _, _ = select.select([reading], [], [], 30)
        assert readable
        yield pyarrow.record_batch({"time": [1.0], "x": [1.0]})

    monitor = rondel.Monitor(SPEC)
    schema = pyarrow.schema({"time": pyarrow.float64(), "x": pyarrow.float64()})

    def push():
        monitor.push_many("s", pyarrow.RecordBatchReader.from_batches(schema, batches()))
        done.set()

    thread = threading.Thread(target=push)
    thread.start()
    try:
        assert entered.wait(30)
        # The monitor is not locked while its caller makes rows.
        monitor.push("s", {"x": 1.0}, time=0.5)
    finally:
        os.write(writing, b"x")
        thread.join(30)
        os.close(reading)
        os.close(writing)
    assert done.is_set() and monitor.summary().checked == 2
