"""Live runs: iteration, ends, failures, slow consumers."""

import asyncio
import gc
import json
import logging
import os
import pathlib
import signal
import socket
import subprocess
import sys
import textwrap
import time

import pytest

import rondel

SPECIFICATION = "topic tank { level: float }\nproperty low = tank.level < 40\n"


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen"
        gc.collect()
        time.sleep(0.02)


@pytest.fixture
def live(tmp_path):
    """Starts a run on Zenoh, and publishes messages to it."""
    (tmp_path / "tank.rondel").write_text(SPECIFICATION)
    endpoint = f"tcp/127.0.0.1:{free_port()}"
    publishers = []

    class Live:
        def run(self, **options):
            return rondel.run(
                tmp_path / "tank.rondel",
                topic={"tank": "zenoh:tank"},
                zenoh_mode="router",
                zenoh_listen=endpoint,
                emit="every",
                **options,
            )

        def publish(self, count, endpoint=endpoint):
            lines = tmp_path / "lines.jsonl"
            lines.write_text("".join(f'{{"level": {i % 50}}}\n' for i in range(count)))
            command = [rondel.find_program(), "publish", "--to", "zenoh:tank", "--zenoh-connect", endpoint]
            command += ["--zenoh-mode", "client", str(lines)]
            publisher = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            publishers.append(publisher)

    yield Live()
    for publisher in publishers:
        publisher.kill()
        publisher.wait()


@pytest.fixture
def fake(fake):
    """Runs a program of Python in the place of the command."""

    def put(text):
        fake(text)
        return rondel.run("rondel.yaml", stop_timeout=2)

    return put


VERDICT = '{"property":"p","time":1.5,"step":0,"verdict":"violated"}'
ENDLESS = f"while True: print('{VERDICT}', flush=True); time.sleep(0.01)"


def test_for_ends_with_the_count(live):
    run = live.run(count=100)
    live.publish(100)
    reports = list(run)
    assert [report.verdict for report in reports] == ["satisfied" if i % 50 < 40 else "violated" for i in range(100)]
    assert run.summary["checked"] == 100
    assert run.exit_status == 0
    assert list(run) == []


def test_async_for_ends_with_the_count(live):
    async def main():
        found = []
        async with live.run(count=100) as run:
            live.publish(100)
            async for report in run:
                found.append(report.step)
        assert found == list(range(100))
        assert run.summary["checked"] == 100

    asyncio.run(main())


def test_block_ends_the_run_gracefully(live):
    with live.run() as run:
        live.publish(10)
        reports = [next(run) for _ in range(10)]
    assert len(reports) == 10
    assert run.summary["checked"] == 10
    assert run.exit_status == 0


def test_stop_delivers_the_last_verdicts(live):
    run = live.run()
    live.publish(2000)
    count = 0
    for _ in run:
        count += 1
        run.stop()
    assert count == run.summary["verdicts"]
    assert run.exit_status == 0


def test_duration_ends_the_run(live):
    start = time.monotonic()
    assert list(live.run(duration=0.5)) == []
    assert time.monotonic() - start < 30


def test_cancellation_ends_the_run_at_once(live):
    async def main():
        run = live.run()
        has_begun = asyncio.Event()

        async def consume():
            async with run:
                async for _ in run:
                    has_begun.set()

        task = asyncio.create_task(consume())
        live.publish(1)
        await has_begun.wait()
        start = time.monotonic()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert time.monotonic() - start < 20
        assert run.exit_status == 0

    asyncio.run(main())


def test_interrupt_ends_the_run(tmp_path):
    (tmp_path / "tank.rondel").write_text(SPECIFICATION)
    program = f"""
        import rondel
        run = rondel.run({str(tmp_path / "tank.rondel")!r}, topic="zenoh:tank", zenoh_listen="tcp/127.0.0.1:{free_port()}").start()
        print(repr(run), flush=True)
        try:
            with run:
                for report in run: pass
        except KeyboardInterrupt:
            print(run.exit_status)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    pid = int(process.stdout.readline().split()[-1].rstrip(">\n"))
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    # The signal may come before the run handles it.
    assert process.communicate(timeout=60)[0] in ("0\n", f"{-signal.SIGTERM}\n")
    assert not is_alive(pid)


def test_mistakes_are_those_of_the_command(tmp_path):
    (tmp_path / "wrong.rondel").write_text("topic tank { level: float }\nproperty low = tank.levle < 40\n")
    with pytest.raises(rondel.SpecificationError) as error:
        list(rondel.run(tmp_path / "wrong.rondel", topic="zenoh:tank"))
    [(code, message, begin, end, _)] = error.value.diagnostics
    assert (code, begin, end) == ("E0301", 48, 53)
    with pytest.raises(rondel.RunError, match="missing.yaml") as error:
        list(rondel.run(tmp_path / "missing.yaml"))
    assert error.value.exit_status == 2


@pytest.mark.parametrize(
    "arguments, options, error",
    [
        ((), {}, TypeError),
        (("a.yaml",), {"formula": "x"}, TypeError),
        (("a.yaml",), {"counts": 3}, TypeError),
        (("a.yaml",), {"count": "3"}, TypeError),
        (("a.yaml",), {"count": True}, TypeError),
        (("a.yaml",), {"topic": ["zenoh:a"]}, TypeError),
        (("a.yaml",), {"duration": "3"}, TypeError),
        (("a.yaml",), {"duration": float("nan")}, ValueError),
        (("a.yaml",), {"duration": -1}, ValueError),
        (("a.yaml",), {"emit": "all"}, ValueError),
        (("a.yaml",), {"control": 1}, TypeError),
        (("a.yaml",), {"stop_timeout": None}, TypeError),
        (("a.yaml",), {"workers": "all"}, ValueError),
    ],
)
def test_wrong_arguments(arguments, options, error):
    with pytest.raises(error):
        rondel.run(*arguments, **options)


def test_stop_before_the_run_has_begun_is_no_error(fake):
    run = fake("time.sleep(60)").start()
    run.stop()
    assert list(run) == []
    assert (run.exit_status, run.summary) == (-signal.SIGTERM, None)


def test_death_by_a_foreign_signal_is_an_error(fake):
    run = fake(ENDLESS)
    next(run)
    os.kill(run._child.process.pid, signal.SIGTERM)
    with pytest.raises(rondel.RunError, match="SIGTERM"):
        list(run)


def test_early_death_is_an_error(fake):
    run = fake(f"print('{VERDICT}', flush=True); print('error: no room', file=sys.stderr); sys.exit(101)")
    reports = iter(run)
    assert next(reports).time_ns == 1_500_000_000
    with pytest.raises(rondel.RunError, match="status 101\nerror: no room") as error:
        next(reports)
    assert error.value.exit_status == 101
    assert run.summary is None


def test_killed_program_is_an_error(fake):
    with pytest.raises(rondel.RunError, match="SIGKILL"):
        list(fake("os.kill(os.getpid(), signal.SIGKILL)"))


def test_death_is_an_error_of_the_block(fake):
    with pytest.raises(rondel.RunError, match="status 3"):
        with fake("sys.exit(3)") as run:
            wait_for(lambda: run._child.process.poll() is not None)


def test_error_of_the_block_is_not_hidden(fake):
    with pytest.raises(KeyError):
        with fake("sys.exit(3)"):
            raise KeyError


def test_program_that_does_not_end_is_killed(fake):
    run = fake("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ENDLESS)
    start = time.monotonic()
    with pytest.raises(rondel.RunError, match="SIGKILL"):
        with run:
            next(run)
    assert 4 < time.monotonic() - start < 30


def test_callback_that_raises_ends_the_run(fake):
    run = fake(ENDLESS)
    with pytest.raises(ZeroDivisionError):
        with run:
            for _ in run:
                1 / 0
    assert run.exit_status == -signal.SIGTERM


def test_dropped_iterator_ends_the_run(fake):
    for _ in (run := fake(ENDLESS)):
        break
    pid = run._child.process.pid
    del run
    wait_for(lambda: not is_alive(pid))


def test_dropped_iterator_of_a_loop_ends_the_run(fake):
    async def main():
        run = fake(ENDLESS)
        async for _ in run:
            break
        return run._child.process.pid

    pid = asyncio.run(main())
    wait_for(lambda: not is_alive(pid))


def test_run_that_was_never_started_is_no_process(fake):
    run = fake(ENDLESS)
    run.close()
    assert list(run) == []
    assert run.summary is None


def test_end_of_the_interpreter_ends_the_run(tmp_path, fake):
    fake(ENDLESS)
    program = "import rondel; run = rondel.run('rondel.yaml'); next(run); print(run._child.process.pid)"
    output = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    wait_for(lambda: not is_alive(int(output.stdout)))


def test_forked_process_does_not_end_the_run(fake):
    with fake(ENDLESS) as run:
        next(run)
        pid = os.fork()
        if pid == 0:
            try:
                next(run)
            except RuntimeError:
                del run
                gc.collect()
                os._exit(0)
            os._exit(1)
        assert os.waitpid(pid, 0)[1] == 0
        assert next(run).verdict == "violated"
        run.stop()
        list(run)


def test_slow_consumer_is_reported(live, caplog):
    with caplog.at_level(logging.WARNING, "rondel"):
        run = live.run(slow_consumer="100ms").start()
        live.publish(60_000)
        next(run)
        wait_for(lambda: "dropped, as a consumer did not accept them" in caplog.text)
    run.stop()
    with pytest.raises(rondel.RunError, match="status 5") as error:
        list(run)
    [dropped] = error.value.summary["undelivered"]
    assert dropped["sink"] == "stdout"
    assert dropped["count"] > 0


def test_long_lines_and_other_lines(fake):
    text = "x" * 300_000
    run = fake(f"""
        line = '{{"property":"p\\u2028é","time":1,"verdict":"violated","requirement":"' + "{text}" + '"}}'
        sys.stdout.buffer.write(b'{{"notice":"missing"}}\\n' + line.encode() + b'\\n')
        print('{{"checked": 1}}', file=sys.stderr)
    """)

    async def main():
        return [report async for report in run]

    [report] = asyncio.run(main())
    assert len(report.requirement) == 300_000
    assert report.property == "p\u2028é"
    assert run.summary == {"checked": 1}


def test_messages_are_logged(fake, caplog):
    run = fake("print('2026-01-01 00:00:00.000 warning: `tank` is silent', file=sys.stderr)\nprint('{}', file=sys.stderr)")
    with caplog.at_level(logging.WARNING, "rondel"):
        assert list(run) == []
    assert "`tank` is silent" in caplog.text


def test_for_and_async_for_do_not_mix(fake):
    async def main():
        async with fake(ENDLESS) as run:
            await anext(run)
            with pytest.raises(RuntimeError):
                next(run)
            run.stop()
            async for _ in run:
                pass

    asyncio.run(main())


def test_deployment_prints_verdicts(fake):
    run = fake("print('\"'.join(sys.argv[1:]), file=sys.stderr); sys.exit(7)")
    with pytest.raises(rondel.RunError) as error:
        list(run)
    arguments = str(error.value).split("\n")[1].split('"')
    assert "--publish=stdout" in arguments
    assert arguments[-2:] == ["--", "rondel.yaml"]


def test_deployment_whose_verdicts_go_elsewhere(tmp_path, live):
    endpoint = f"tcp/127.0.0.1:{free_port()}"
    (tmp_path / "rondel.yaml").write_text(
        f'specification: tank.rondel\nzenoh: {{ mode: router, listen: "{endpoint}" }}\n'
        "topics: { tank: zenoh:tank }\nverdicts: { emit: every, to: zenoh:verdict }\n"
    )
    with rondel.run(tmp_path / "rondel.yaml", count=5) as run:
        live.publish(5, endpoint=endpoint)
        assert [report.step for report in run] == [0, 1, 2, 3, 4]
    assert run.summary["verdicts"] == 10


def test_options_are_those_of_the_command(fake):
    fake("print(repr(sys.argv[1:]), file=sys.stderr); sys.exit(7)")
    run = rondel.run(
        pathlib.Path("-x.rondel"),
        topic={"tank": "zenoh:-a"},
        publish=["zenoh:v", "stdout"],
        count=3,
        control=False,
        strict=True,
        mqtt_qos=0,
        zenoh_connect=["tcp/a:1", "tcp/b:1"],
        mqtt_ca=pathlib.Path("ca.pem"),
        exit_on_unreachable=True,
    )
    with pytest.raises(rondel.RunError) as error:
        list(run)
    arguments = json.loads(str(error.value).split("\n")[1].replace("'", '"'))
    expected = ["--topic=tank=zenoh:-a", "--publish=zenoh:v", "--count=3", "--no-control", "--stop-timeout=5", "--strict"]
    expected += ["--mqtt-qos=0", "--zenoh-connect=tcp/a:1", "--zenoh-connect=tcp/b:1", "--mqtt-ca=ca.pem"]
    assert arguments[5:] == [*expected, "--exit-on-unreachable", "--", "./-x.rondel"]


def test_end_that_is_interrupted_leaves_nothing(fake):
    async def main():
        run = fake("signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + ENDLESS)

        started = asyncio.Event()

        async def consume():
            async with run:
                async for _ in run:
                    started.set()

        task = asyncio.create_task(consume())
        # It ignores SIGTERM from its first line on.
        await asyncio.wait_for(started.wait(), 30)
        for _ in range(2):
            task.cancel()
            await asyncio.sleep(0.2)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert run.exit_status == -signal.SIGKILL
        assert not is_alive(run._child.process.pid)

    asyncio.run(main())


def test_run_belongs_to_one_event_loop(fake):
    run = fake(ENDLESS)

    async def read():
        return await anext(run)

    asyncio.run(read())
    with pytest.raises(RuntimeError, match="another event loop"):
        asyncio.run(read())
    pid = run._child.process.pid
    run.close()
    assert not is_alive(pid)


def test_dropped_run_closes_its_pipes(tmp_path, fake):
    fake(ENDLESS)
    program = """
        import gc, time, threading, rondel
        run = rondel.run("rondel.yaml", stop_timeout=2)
        next(run)
        del run
        gc.collect()
        while threading.active_count() > 1: time.sleep(0.01)
    """
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(program)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stderr) == (0, "")
