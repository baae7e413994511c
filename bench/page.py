#!/usr/bin/env python3
"""Measure the page of a run: its cost for the monitor, the first view, memory by viewers, and how viewers are refused.

    bench/page.py target/release/rondel --out page.md

`rondel run` receives messages from Zenoh on loopback. CPU time is that of the monitor's process; the publisher, the
browser and other viewers are processes of their own on the same cores. `make bench-page` runs it. RONDEL_CHROMIUM names
the browser.
"""

import argparse
import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import tempfile
import time

import machine
from monitor import STEP, Monitor, Viewers, get, name, stop, write_messages
from playwright.sync_api import sync_playwright

MOST_VIEWERS = 200
#: The mark of the first view, in milliseconds.
FIRST_VIEW = 300
SETTLE = 5  # seconds after a change of viewers, before memory is read


@dataclasses.dataclass(frozen=True)
class Case:
    name: str
    kind: str
    view: str | None = None
    viewers: int = 0
    mark: str = ""


# The first three are those that others are compared with.
CASES = [
    Case("neither store nor page", "plain"),
    Case("store in memory", "store"),
    Case("page, no viewer", "page", mark="1.00"),
    Case("page, a browser on the overview", "page", view="#/overview", mark="1.03"),
    Case("page, a browser on a property", "page", view=f"#/property/{name(0)}", mark="1.03"),
    Case("page, 20 plain viewers", "page", viewers=20),
]

# Marks the end of the frame in which the first row and its timeline are drawn, and writes a line on the console. The
# observer runs in the frame, after the list has been drawn; the task that it posts runs once the frame is painted.
FIRST_ROW = """() => {
    const isDrawn = () => {
        const canvas = document.querySelector('canvas.lanes');
        const name = document.querySelector('.rows .row:not([hidden]):not(.waiting) .title a');
        return canvas && !canvas.hidden && canvas.width > 0 && name && name.textContent !== '';
    };
    const observer = new MutationObserver(() => {
        if (!isDrawn()) return;
        observer.disconnect();
        const channel = new MessageChannel();
        channel.port1.onmessage = () => { window.firstRow = performance.now(); console.info('first row'); };
        channel.port2.postMessage(null);
    });
    observer.observe(document, { subtree: true, childList: true, attributes: true });
}"""
TIMES = """() => [performance.getEntriesByType('navigation')[0].loadEventEnd,
    performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, window.firstRow]"""


class Browser:
    """Headless Chromium."""

    def __init__(self, stack):
        path = os.environ.get("RONDEL_CHROMIUM", "/usr/bin/chromium")
        playwright = stack.enter_context(sync_playwright())
        self.browser = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        stack.callback(self.browser.close)

    @contextlib.contextmanager
    def open(self, address, waits=False):
        """A page with an empty cache, also waiting for the first row if wanted. Playwright adds no script until then."""
        context = self.browser.new_context(viewport={"width": 1280, "height": 800})
        try:
            page = context.new_page()
            page.set_default_timeout(60_000)
            page.add_init_script(f"({FIRST_ROW})()")
            is_row = lambda message: message.text == "first row"
            with page.expect_console_message(is_row) if waits else contextlib.nullcontext():
                page.goto(address)
            yield page
        finally:
            context.close()


def turn(arguments, browser, case, count, file, rate):
    """Nanoseconds of CPU time of the monitor for each message, and messages per second."""
    with contextlib.ExitStack() as stack:
        run = Monitor(arguments.rondel, count, case.kind, arguments.messages)
        stack.callback(run.close)
        if case.view:
            page = stack.enter_context(browser.open(run.url + case.view))
            page.wait_for_function("() => document.querySelector('#connection').classList.contains('is-live')")
        if case.viewers:
            stack.callback(Viewers(run.port).add(case.viewers).close)
        time.sleep(1)
        begin = run.cpu()
        publisher = run.publisher(file, rate)
        stack.callback(stop, publisher)
        end, summary = run.ended()
    if summary["checked"] != arguments.messages:
        raise SystemExit(f"{case.name}: {summary['checked']} of {arguments.messages} messages were checked")
    return {"ns": (end - begin) / arguments.messages * 1e9, "rate": arguments.messages / summary["seconds"]}


def costs(arguments, browser, folder):
    """All turns of `(properties, rate, case)`."""
    found = {}
    for count in arguments.properties:
        file = folder / f"messages-{count}.jsonl"
        write_messages(file, arguments.messages, count)
        for rate in (arguments.rate, None):
            for number, case in machine.turns(CASES, arguments.repeat):
                result = turn(arguments, browser, case, count, file, rate)
                found.setdefault((count, rate, case), []).append(result)
                print(f"{count} properties, {rate or 'full'} rate, turn {number + 1}, {case.name}: {result['ns']:.0f} ns, {result['rate']:.0f}/s", flush=True)
    return found


def cost_table(arguments, found):
    columns = ["properties, case", "ns per message", "times neither", "times the store", "times no viewer", "mark", "messages/s"]
    text = ""
    for rate in (arguments.rate, None):
        rows = []
        for count in arguments.properties:
            of = {case: found[count, rate, case] for case in CASES}
            ns = {case: [result["ns"] for result in of[case]] for case in CASES}
            for place, case in enumerate(CASES):
                rates = machine.spread([result["rate"] for result in of[case]])
                ratios = [machine.ratio(ns[case], ns[against]) if earlier < place else "–" for earlier, against in enumerate(CASES[:3])]
                rows.append([f"{count:,}: {case.name}", machine.spread(ns[case]), *ratios, case.mark or "–", rates])
        title = f"### At {rate:,} messages/s" if rate else "### As fast as the publisher sends"
        text += f"{title}\n\n{machine.table(columns, rows)}\n"
    return text + (
        f"CPU time of the monitor's process from before the first message to its end, {arguments.messages:,} messages, median "
        f"(least to most) of {arguments.repeat} turns; ratios turn by turn. Ten numbers in a message; one message in {STEP:,} "
        "ends a violation and begins another one. *Times neither*: over the run with neither store nor page. A page keeps a store in memory: *times the store* is "
        "what the page adds to it. The mark of a page without viewers is over *neither*, that of a browser over *no viewer*. Plain viewers read events and load the overview every 15 s.\n\n"
    )


def first_views(arguments, browser, folder):
    """Milliseconds to load, to the first content and to the first row, by properties and load."""
    found = {}
    for count in arguments.properties:
        for rate in (0, arguments.rate):
            with contextlib.ExitStack() as stack:
                run = Monitor(arguments.rondel, count, "page")
                stack.callback(run.close)
                publisher = run.publisher(folder / f"messages-{count}.jsonl", rate or 50_000)
                stack.callback(stop, publisher)
                time.sleep(2)
                if not rate:
                    stop(publisher)
                    time.sleep(1)
                views = []
                for _ in range(arguments.loads):
                    if rate and publisher.poll() is not None:
                        publisher = run.publisher(folder / f"messages-{count}.jsonl", rate)
                        stack.callback(stop, publisher)
                        time.sleep(1)
                    with browser.open(run.url, waits=True) as page:
                        views.append(page.evaluate(TIMES))
                found[count, rate] = views
    return found


def first_view_table(arguments, found):
    rows = []
    for (count, rate), views in found.items():
        load, content, row = zip(*views)
        verdict = "met" if statistics.median(row) <= FIRST_VIEW else "**missed**"
        texts = [f"{statistics.median(values):.0f}, {max(values):.0f}" for values in (load, content, row)]
        rows.append([f"{count:,}, {f'{rate:,} messages/s' if rate else 'no messages'}", *texts, FIRST_VIEW, verdict])
    columns = ["properties, stream", "load event, ms", "first content, ms", "first row, ms", "mark", ""]
    return (
        f"### First view\n\n{machine.table(columns, rows)}\n"
        f"From the beginning of the navigation until the first row and its timeline are painted: median and longest of {arguments.loads} "
        "loads of the overview on loopback, each with an empty cache, in a browser that runs already. A load is the document, theme, "
        "style and script, and then the overview, state, losses and events of the API.\n\n"
    )


def memories(arguments, folder):
    """Rows with viewers, resident bytes and CPU share, and the answer to a viewer too many."""
    count = max(arguments.properties)
    rows = []
    with contextlib.ExitStack() as stack:
        run = Monitor(arguments.rondel, count, "page")
        stack.callback(run.close)
        # Lasts longer than all readings.
        stack.callback(stop, run.publisher(folder / f"messages-{count}.jsonl", max(arguments.messages // 150, 100)))

        def read(label, settle=SETTLE):
            time.sleep(settle)
            cpu, begin = run.cpu(), time.monotonic()
            memory = run.memory()
            rows.append([label, memory, (run.cpu() - cpu) / (time.monotonic() - begin)])
            print(f"{label}: {memory / 1e6:.1f} MB", flush=True)

        read("none, before", 2 * SETTLE)
        viewers = Viewers(run.port)
        with contextlib.closing(viewers):
            for total in (1, 50, MOST_VIEWERS):
                viewers.add(total - len(viewers.sockets))
                read(f"{total}")
            refusal = get(run.port, "events")
            read(f"{MOST_VIEWERS}, later", 3 * SETTLE)
            if viewers.disconnected:
                raise SystemExit(f"{viewers.disconnected} viewers that read were disconnected")
        read("none, after they left")
        slow = Viewers(run.port, reads=False)
        with contextlib.closing(slow):
            slow.add(MOST_VIEWERS)
            read(f"{MOST_VIEWERS} that never read, after 30 s", 30)
            closed = slow.count_closed()
        read("none, after they left")
    return rows, refusal, closed


def memory_table(arguments, rows, refusal, closed):
    before = rows[0][1]
    texts = []
    for label, memory, share in rows:
        viewers = int(label.split()[0].strip(",")) if label[0].isdigit() else 0
        each = f"{(memory - before) / viewers / 1e3:,.0f}" if viewers else "–"
        texts.append([label, f"{memory / 1e6:.1f}", each, f"{share * 100:.1f}"])
    status, body = refusal
    with contextlib.suppress(ValueError, KeyError, TypeError):
        body = json.loads(body)["error"].encode()
    return (
        f"### Memory\n\n{machine.table(['viewers', 'resident, MB', 'kB more for each', 'CPU, % of a core'], texts)}\n"
        f"{max(arguments.properties):,} properties, {max(arguments.messages // 150, 100):,} messages/s, plain viewers. Memory is the median over two "
        f"seconds, at least {SETTLE} s after a change. Of {MOST_VIEWERS} viewers that never read, the server had disconnected {closed} after 30 s.\n\n"
        f"The viewer after the {MOST_VIEWERS}th receives status {status}: “{body.decode(errors='replace')}”.\n"
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rondel", help="the command")
    parser.add_argument("--rate", type=int, default=100_000, help="messages per second (default: %(default)s)")
    parser.add_argument("--messages", type=int, default=1_000_000, help="messages of a turn (default: %(default)s)")
    parser.add_argument("--properties", type=int, nargs="+", default=[10, 1000], help="numbers of properties (default: 10 1000)")
    parser.add_argument("--repeat", type=int, default=5, help="turns of each case (default: %(default)s)")
    parser.add_argument("--loads", type=int, default=20, help="loads of the first view (default: %(default)s)")
    parser.add_argument("--out", type=pathlib.Path, help="a file for the tables; single results go beside it, as .json (default: standard output)")
    arguments = parser.parse_args()
    arguments.rondel = os.path.abspath(arguments.rondel)
    text = machine.head(arguments.rondel) + "\n\n"
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="rondel-bench-")))
        browser = Browser(stack)
        found = costs(arguments, browser, folder)
        views = first_views(arguments, browser, folder)
        memory = memories(arguments, folder)
    text += cost_table(arguments, found) + first_view_table(arguments, views) + memory_table(arguments, *memory)
    machine.write(text, arguments.out)
    if not arguments.out:
        return
    single = {
        "costs": [{"properties": count, "rate": rate, "case": case.name, "turns": turns} for (count, rate, case), turns in found.items()],
        "first_views_ms": [{"properties": count, "rate": rate, "load, content, row": times} for (count, rate), times in views.items()],
        "memory": memory[0],
    }
    arguments.out.with_suffix(".json").write_text(json.dumps(single, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
