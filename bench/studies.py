#!/usr/bin/env python3
"""Write measured figures into the page of the studies: studies.py FOLDER PAGE.

FOLDER has the results of scripts/studies: NAME.json from rondel-bench --json, NAME.jsonl from --runs. In the page,
a figure stands between <!--ours KEY--> and <!--end-->; keys without a result keep their text. Between <!--not run--> and
<!--end--> stand the sections that have no figure yet, each with the command that fills it.
"""

import json
import re
import statistics
import sys
from pathlib import Path

MARK = re.compile(r"<!--ours ([^ ]+?)-->(.*?)<!--end-->")
NOT_RUN = re.compile(r"<!--not run-->.*?<!--end-->")
# The commands of figures by the first part of their keys, where it is not the name of a study.
COMMANDS = {
    "containers": "make bench-containers",
    "contained": "make bench-containers",
    "instants": "scripts/studies order",
    "aligned": "scripts/studies throughput",
}


def quantile(values, part):
    """Linear interpolation between neighbours, as rondel-bench does."""
    values = sorted(values)
    place = part * (len(values) - 1)
    low = values[int(place)]
    high = values[min(int(place) + 1, len(values) - 1)]
    return low + (high - low) * (place - int(place))


def median(values):
    return statistics.median(values)


def groups(runs, key):
    """Runs by a key, in their order."""
    found = {}
    for run in runs:
        found.setdefault(key(run), []).append(run)
    return found


def seconds(runs):
    return median([run["seconds"] for run in runs])


def timescales(results):
    rows = results["timescales"]
    ratios = {}
    for row in rows:
        name, of_file = row["property"], seconds(row["file_every"])
        messages = row["messages"]
        yield f"timescales.{name}.file", f"{of_file:.3f}"
        for on in row["networks"]:
            network, every = on["network"], on["every"]
            passed = seconds(every["monitor"])
            yield f"timescales.{name}.{network}", f"{passed:.2f}"
            of = ratios.setdefault(network, {"file": [], "plain": [], "rate": []})
            of["file"].append(passed / of_file)
            of["plain"].append(seconds(every["plain"]) / passed)
            of["rate"].append(messages / seconds(on["change"]["plain"]))
    for network, of in ratios.items():
        yield f"timescales.{network}.ratio", f"{median(of['file']):.1f}"
        yield f"timescales.{network}.echo", f"{median(of['plain']):.2f}"
        yield f"timescales.{network}.rate", f"{median(of['rate']) / 1e6:.2f} M/s"


def latency(results):
    for row in results["latency"]:
        yield f"latency.{row['network']}.half", f"{row['echo_us'][0] / 2:.1f} us"
        yield f"latency.{row['network']}.adds", f"{row['difference_us']:.1f} us"


def properties(results):
    for row in results["properties"]:
        yield f"properties.{row['properties']}.file", f"{row['file_ratio']:.2f}"
        if row.get("zenoh_ratio") is not None:
            yield f"properties.{row['properties']}.zenoh", f"{row['zenoh_ratio']:.2f}"


def order(results):
    cells = results["order"]
    for cell in cells:
        if cell["delay_ms"] == 0:
            arrival = cell["settings"][0]
            share = arrival["misordered"] / max(cell["arrived"], 1)
            yield f"order.{cell['network']}.{cell['period_us']:g}us", f"{share * 100:.2f} %"
    for network, of in groups(cells, lambda cell: cell["network"]).items():
        markers = [setting for cell in of for setting in cell["settings"] if setting["setting"] == "markers"]
        events = sum(cell["arrived"] for cell in of)
        wrong = sum(setting["misordered"] + setting["late"] for setting in markers)
        yield f"order.{network}.markers", f"{wrong} of {events:,}"
        slow = [cell for cell in of if cell["period_us"] >= 1000]
        if slow:
            waits = [s for cell in slow for s in cell["settings"] if s["setting"] == "max_wait 5 ms"]
            late = sum(setting["late"] for setting in waits)
            yield f"order.{network}.wait", f"{late} of {sum(cell['arrived'] for cell in slow):,}"


def instants(cells):
    """Of two nodes: instants without a computation on the messages of both."""
    for cell in cells:
        share = cell["settings"][0]["mixed"] / max(cell["instants"], 1)
        yield f"instants.{cell['network']}.{cell['period_us']:g}us", f"{share * 100:.2f} %"
    for network, of in groups(cells, lambda cell: cell["network"]).items():
        for setting, least, name in ("markers", 0, "markers"), ("max_wait 5 ms", 1000, "wait"):
            here = [cell for cell in of if cell["period_us"] >= least]
            if here:
                mixed = sum(s["mixed"] for cell in here for s in cell["settings"] if s["setting"] == setting)
                yield f"instants.{network}.{name}", f"{mixed:,} of {sum(cell['instants'] for cell in here):,}"


def ms(us):
    """Milliseconds; a setting that releases nothing has none."""
    return "-" if us is None else f"{us / 1e3:.2f}"


def slow(cells):
    """One of two topics behind a slow link."""
    for cell in cells:
        name = f"slow.{cell['network']}.{cell['delay_ms']:g}"
        sent = max(cell["events"], 1)
        yield f"{name}.arrival", f"{cell['settings'][0]['misordered'] / sent * 100:.1f} %"
        for setting in cell["settings"]:
            short = {"markers": "markers", "max_wait 5 ms": "wait"}.get(setting["setting"])
            if short:
                wrong = setting["misordered"] + setting["late"]
                yield f"{name}.{short}", f"{wrong / sent * 100:.1f} %"
                yield f"{name}.{short}.p50", ms(setting["latency_us"][0])
                yield f"{name}.{short}.p99", ms(setting["latency_us"][1])


def clocks(runs):
    for run in runs:
        setting = re.sub(r"max_wait (\d+) ms", r"wait\1", run["setting"])
        shares = [f"{run[count] / max(run['events'], 1) * 100:.2f}" for count in ("misordered", "late")]
        delays = ["-" if delay is None else f"{delay:.2f}" for delay in run["delay_ms"]]
        yield f"clocks.{run['publishers']}.{run['error_ms']:g}.{setting}", " / ".join(shares + delays)


def chain_figures(of):
    """The figures of runs of the chain with the same settings, by their names."""
    times = {name: [us for run in of for us in run[f"{name}_us"]] for name in ("latency", "age", "reaction")}
    latency_us = times["latency"]
    jitter = [statistics.fmean(abs(b - a) for a, b in zip(run["latency_us"], run["latency_us"][1:])) for run in of]
    in_containers = [run["container_bytes"] for run in of if run.get("container_bytes")]
    return {
        "mean": f"{statistics.fmean(latency_us):.0f}",
        "p50": f"{quantile(latency_us, 0.5):.0f}",
        "p99": f"{quantile(latency_us, 0.99):.0f}",
        "p999": f"{quantile(latency_us, 0.999):.0f}",
        "max": f"{max(latency_us):.0f}",
        "jitter": f"{median(jitter):.0f}",
        "age": f"{quantile(times['age'], 0.99):.0f}",
        "reaction": f"{quantile(times['reaction'], 0.99):.0f}",
        "cpu": f"{median([run['cpu_seconds'] / run['seconds'] * 100 for run in of]):.1f}",
        "memory": f"{median([run['peak_bytes'] for run in of]) / 1e6:.0f}",
        "containers": f"{median(in_containers) / 1e6:.0f}" if in_containers else "-",
    }


def chain_rows(runs, prefix, settings):
    """The figures of chains by their settings, without and with a monitor in one text, and those of the monitor."""
    found = {}
    for (name, monitored), of in groups(runs, lambda run: (settings(run), run["monitored"])).items():
        for figure, text in chain_figures(of).items():
            found.setdefault(f"{prefix}.{name}.{figure}", {})[monitored] = text
        if monitored:
            cpu = median([run["monitor"]["cpu_seconds"] / run["seconds"] * 100 for run in of])
            yield f"{prefix}.{name}.monitor-cpu", f"{cpu:.1f}"
            memory = median([run["monitor"]["peak_bytes"] for run in of]) / 1e6
            yield f"{prefix}.{name}.monitor-memory", f"{memory:.0f}"
    for key, texts in found.items():
        yield key, " / ".join(texts.get(is_there, "-") for is_there in (False, True))


def chain(runs):
    yield from chain_rows(runs, "chain", lambda run: f"{run['network']}.{run['chains']}")


def setting_of(run):
    """Network, chains, layout and limit of a run of the chain, as in a key."""
    # The limit is an option of docker run.
    limit = re.sub(r"^--(\w+).*", r".\1", run["limit"] or "")
    return f"{run['network']}.{run['chains']}.{run['layout']}{limit}"


def chain_containers(runs):
    yield from chain_rows(runs, "contained", setting_of)
    limits = {limit for run in runs if (limit := run["limit"])}
    for limit in limits:
        name, _, value = limit.lstrip("-").partition("=")
        yield f"contained.limit.{name.split('-')[0]}", value
    # To bare processes: the median over networks, chains and the presence of a monitor.
    found = groups([run for run in runs if not run["limit"]], lambda run: (run["network"], run["chains"], run["monitored"], run["layout"]))
    for layout in ("one", "each"):
        means, greatest = [], []
        for (*setting, of_layout), of in found.items():
            bare = found.get((*setting, "bare"))
            if of_layout == layout and bare:
                ours, theirs = ([us for run in some for us in run["latency_us"]] for some in (of, bare))
                means.append(statistics.fmean(ours) / statistics.fmean(theirs))
                greatest.append(max(ours) / max(theirs))
        if means:
            yield f"contained.{layout}.mean-to-bare", f"{median(means):.2f}"
            yield f"contained.{layout}.max-to-bare", f"{median(greatest):.2f}"


# The names of the network modes in the order of the tables, and what stands for one that the kernel lacks.
MODES = ["bridge", "host", "direct", "macvlan", "ipvlan"]
NO_MODE = "not available on this kernel"


def containers(runs):
    for run in runs:
        if run.get("available") is False:
            for network in ("zenoh", "dds"):
                for figure in ("median", "half", "rare", "adds"):
                    yield f"containers.{network}.{run['mode']}.{figure}", NO_MODE
    here = [run for run in runs if run.get("available") is not False]
    traces = [run for run in here if run["part"] == "traces"]
    for (network, mode), of in groups(traces, lambda run: (run["network"], run["mode"])).items():
        for run in of:
            yield f"containers.{run['property']}.{network}.{mode}", f"{run['seconds']:.2f}"
        # Those of Table 1, where they were measured.
        first = [run for run in of if run["property"].endswith("10")] or of
        yield f"containers.{network}.{mode}.median", f"{median([run['seconds'] for run in first]):.2f}"
    half = {(run["part"], run["network"], run["mode"], run["participant"]): run["half_p50_us"] for run in here if run["part"] != "traces"}
    for (part, network, mode, participant), us in half.items():
        if participant == "echo":
            yield f"containers.{network}.{mode}.{'half' if part == 'half' else 'rare'}", f"{us:.1f}"
            through = half.get((part, network, mode, "monitor"))
            if part == "half" and through:
                yield f"containers.{network}.{mode}.adds", f"{(through - us) * 2:.1f}"


def take_overs(name, runs):
    """The times of take-overs in one setting."""
    times = [run["take_over_ms"] for run in runs]
    yield f"{name}.count", str(len(times))
    yield f"{name}.mean", f"{statistics.fmean(times):.1f}"
    yield f"{name}.sd", f"{statistics.pstdev(times):.1f}"
    for part, ending in ((0.5, "p50"), (0.99, "p99"), (1.0, "max")):
        yield f"{name}.{ending}", f"{quantile(times, part):.1f}"


def failover(runs):
    def key(run):
        return run["end"], f"{run['lease_ms']:g}"

    for (end, lease), of in groups([run for run in runs if run.get("topic_lease_ms") is None], key).items():
        name = "failover.shutdown" if end == "shutdown" else f"failover.{end}.{lease}"
        yield from take_overs(name, of)


def standby(runs):
    counts = ("missing", "repeated", "differing", "overtaken", "undecided", "unasked", "messages")
    for (network, end, lease), of in groups(
        runs, lambda run: (run["network"], run["end"], run["lease_ms"])
    ).items():
        name = f"standby.{network}.{end}" + (f".{lease:g}" if end in ("kill", "pause") else "")
        yield from take_overs(name, of)
        yield f"{name}.gap", f"{statistics.fmean(run['gap_ms'] for run in of):.1f}"
        for count in counts:
            yield f"{name}.{count}", f"{sum(run[count] for run in of):,}"
    for count in counts:
        yield f"standby.{count}", f"{sum(run[count] for run in runs):,}"
    yield "standby.count", f"{len(runs):,}"


def roundtrip(runs):
    medians = {}
    for (network, size), of in groups(runs, lambda run: (run["network"], run["bytes"])).items():
        medians.setdefault(network, {})[size] = median([us for run in of for us in run["us"]])
    for network, of in medians.items():
        sizes = sorted(of)
        if len(sizes) > 1:
            slope, constant = statistics.linear_regression([size / 1000 for size in sizes], [of[size] for size in sizes])
            yield f"roundtrip.{network}.constant", f"{constant:.1f}"
            yield f"roundtrip.{network}.slope", f"{slope:.2f}"
        for size in sizes:
            yield f"roundtrip.{network}.{size}", f"{of[size]:.1f}"
            if network != "UDP" and size in medians.get("UDP", {}):
                yield f"roundtrip.{network}.factor-{size}", f"{of[size] / medians['UDP'][size]:.2f}"


def mesa(runs):
    found = {}
    for (arrangement, workers, keys), of in groups(
        runs, lambda run: (run["arrangement"], run["workers"], run["keys"])
    ).items():
        short = {"index in the monitor": "index"}.get(arrangement, arrangement)
        name = f"bounded{workers}" if short == "bounded" else short
        took = seconds(of)
        found[name, keys] = took
        yield f"mesa.{name}.{keys}", f"{took:.2f}"
        if keys == max(run["keys"] for run in runs):
            first = of[0]
            yield f"mesa.{name}.cpu", f"{median([run['cpu_seconds'] for run in of]):.2f}"
            service = median([run["cpu_seconds"] for run in of]) / first["messages"] * 1e6
            yield f"mesa.{name}.service", f"{service:.2f}"
            yield f"mesa.{name}.memory", f"{median([run['peak_bytes'] for run in of]) / 1e6:.1f}"
            yield f"mesa.{name}.steps", f"{first['messages'] * first['copies'] / took / 1e6:.0f} M/s"
    most = max(run["keys"] for run in runs)
    least = min(run["keys"] for run in runs)
    for name in {name for name, _ in found}:
        if (name, least) in found and (name, most) in found:
            yield f"mesa.{name}.growth", f"{found[name, most] / found[name, least]:.2f}"
    bounded = min((took for (name, keys), took in found.items() if name.startswith("bounded") and keys == most), default=None)
    if bounded and ("dispatcher", most) in found and ("index", most) in found:
        yield "mesa.step.dispatcher", f"{found['index', most] / found['dispatcher', most]:.2f}"
        yield "mesa.step.bounded", f"{found['dispatcher', most] / bounded:.2f}"


def throughput(runs):
    yield from aligned([run for run in runs if "subscriber" in run])
    patterns = [run for run in runs if "pattern" in run]
    for (network, pattern, participants, size), of in groups(
        patterns, lambda run: (run["network"], run["pattern"], run["participants"], run["bytes"])
    ).items():
        yield f"throughput.{network}.{pattern}.{participants}.{size}", f"{median([run['rate'] for run in of]):,.0f}"


def aligned(runs):
    """Many publishers to one subscriber, which aligns their messages or counts them."""
    rates = {}
    for (network, publishers, subscriber), of in groups(
        runs, lambda run: (run["network"], run["publishers"], run["subscriber"])
    ).items():
        name = f"aligned.{network}.{publishers}.{subscriber}"
        rate = rates[network, publishers, subscriber] = median([run["rate"] for run in of])
        yield name, f"{rate:,.0f}"
        late = sum(run["late"] for run in of) / max(sum(run["received"] for run in of), 1)
        yield f"{name}.late", f"{late * 100:.1f} %"
        plain = rates.get((network, publishers, "plain"))
        if plain:
            yield f"{name}.of-plain", f"{rate / plain:.2f}"


def autoware(folder):
    run = folder / "autoware.run"
    if run.is_file():
        yield "run.autoware", run.read_text().strip()
    path = folder / "autoware.txt"
    if path.is_file():
        lines = [line for line in path.read_text().splitlines() if re.search(r"\d+ of \d+", line)]
        if lines:
            yield "autoware.found", "; ".join(line.strip() for line in lines)


def runs_of(path):
    """The machine of the runs in a file of --runs, if there are any, and the single runs."""
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    machine = next((line["machine"] for line in lines if "machine" in line), None)
    return machine, [line["run"] for line in lines if "run" in line]


def machine_of(folder, study):
    """The machine of the runs of a study, if there are any."""
    path = folder / f"{study}.json"
    return json.loads(path.read_text())["machine"] if path.is_file() else runs_of(path.with_suffix(".jsonl"))[0]


def run_line(folder, study):
    """Date, machine, commit and command of the runs of a study, if there are any."""
    machine = machine_of(folder, study)
    if machine is None:
        return None
    path = folder / f"{study}.commit"
    commit = path.read_text().strip() if path.is_file() else "unknown"
    return (
        f"{machine['date']}, {machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, load {machine['load']} "
        f"before the start, commit {commit}: `{re.sub(r' --(out|json|runs|rondel) [^ ]+', '', machine['command'])}`"
    )


def figures(folder):
    """Every key with its text."""
    for study in (timescales, latency, properties, order):
        path = folder / f"{study.__name__}.json"
        if path.is_file():
            results = json.loads(path.read_text())
            yield f"run.{study.__name__}", run_line(folder, study.__name__)
            if results.get(study.__name__):
                yield from study(results)
            yield from instants(results.get("instants") or [])
    path = folder / "slow.json"
    if path.is_file():
        yield "run.slow", run_line(folder, "slow")
        yield from slow(json.loads(path.read_text()).get("order") or [])
    for study in (chain, failover, standby, roundtrip, mesa, throughput, clocks, containers, chain_containers):
        machine, runs = runs_of(folder / f"{study.__name__}.jsonl")
        if machine:
            yield f"run.{study.__name__}", run_line(folder, study.__name__)
        if runs:
            yield from study(runs)
    yield from autoware(folder)


def anchor(title):
    """The anchor of a heading."""
    return re.sub("[^a-z0-9 -]", "", title.lower()).replace(" ", "-")


def not_run(text):
    """The sections of a page without any figure, each with the command that fills it."""
    title, sections = "", {}
    for line in text.splitlines():
        if line.startswith("#"):
            title = line.lstrip("# ")
        for key, figure in MARK.findall(line):
            study = key.split(".")[0]
            if study != "run":
                sections.setdefault((title, study), []).append(figure)
    empty = [key for key, shown in sections.items() if all(figure == "-" for figure in shown)]
    items = [f"[{title}](#{anchor(title)}): `{COMMANDS.get(study, f'scripts/studies {study}')}`" for title, study in empty]
    return "; ".join(items) or "none"


def fill(text, found):
    """The page with these figures, and the keys that it has and that were not measured."""
    missing = []

    def replace(mark):
        key, before = mark.groups()
        if key not in found:
            missing.append(key)
        return f"<!--ours {key}-->{found.get(key, before)}<!--end-->"

    text = MARK.sub(replace, text)
    return NOT_RUN.sub(lambda _: f"<!--not run-->{not_run(text)}<!--end-->", text), missing


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    folder, page = Path(sys.argv[1]), Path(sys.argv[2])
    text, missing = fill(page.read_text(), dict(figures(folder)))
    page.write_text(text)
    print(f"{page}: {len(MARK.findall(text)) - len(missing)} figures, {len(missing)} not measured")


if __name__ == "__main__":
    main()
