#!/usr/bin/env python3
"""Draw the runs of the studies as SVG: study_plots.py FOLDER OUT.

FOLDER has the results of scripts/studies, as for studies.py. Each figure of OUT can be read in grey: lines differ in
their marks and dashes. A figure without runs is left as it is; one that does not exist is drawn empty.

a-seconds.svg:     seconds for a Timescales trace, from a file and on networks (Table 1 of study A).
a-throughput.svg:  messages per second by payload, one publisher and one subscriber (Fig. 3 of study A).
a-half.svg:        half a round trip by payload (Fig. 3 of study A).
b-chain.svg:       latency of a chain of participants by the number of chains, with and without a monitor.
c-roundtrip.svg:   round trip by payload.
c-failover.svg:    distribution of the time until a take-over.
c-standby.svg:     the same of a standby monitor, by network.
d-mesa.svg:        time and memory by monitors and by workers.
e-misordered.svg:  share of misordered messages by period.
e-clocks.svg:      share of misordered and late messages, and the delay, by the error of clocks.
e-slow.svg:        share of late messages, and the latency, by the delay of a slow link.
e-patterns.svg:    messages per second of three patterns by participants and by size.
"""

import json
import sys
from pathlib import Path

from plot import plt, save
from studies import groups, median, quantile, run_line, runs_of

plt.rcParams["figure.constrained_layout.use"] = True

# A series has one of these: a mark, a dash and a grey of its own.
STYLES = [("o", "-", "0.0"), ("s", "--", "0.35"), ("^", "-.", "0.0"), ("D", ":", "0.35"), ("v", (0, (5, 1, 1, 1, 1, 1)), "0.0"), ("x", (0, (1, 3)), "0.35")]
HATCHES = ["", "///", "..."]
# The figures of the papers: a thick grey line without marks.
PAPER = {"color": "0.7", "linewidth": 3, "zorder": 0}
NETWORKS = {"zenoh": "Zenoh", "dds": "DDS", "mqtt": "MQTT", "file": "file"}


class Results:
    """The results in a folder: of a study its runs, or None, and the line about its run."""

    def __init__(self, folder):
        self.folder = folder

    def json(self, name, section=None):
        path = self.folder / f"{name}.json"
        results = json.loads(path.read_text()) if path.is_file() else {}
        return results.get(section or name) or None

    def runs(self, name):
        return runs_of(self.folder / f"{name}.jsonl")[1] or None


def line(axes, place, label, points):
    """A series of points (x, y) in the order of x."""
    mark, dash, grey = STYLES[place % len(STYLES)]
    points = sorted(points)
    axes.plot([x for x, _ in points], [y for _, y in points], marker=mark, linestyle=dash, color=grey, markersize=4, markerfacecolor="white", label=label)


def lines(axes, series):
    """Series by their labels."""
    for place, (label, points) in enumerate(series.items()):
        line(axes, place, label, points)


def medians(runs, by, measure, unit=1):
    """Points of the median of a measure, by another one."""
    return [(value, median([run[measure] for run in of]) / unit) for value, of in groups(runs, lambda run: run[by]).items()]


def finish(axes, x, y, log="", ticks=None, is_single=True):
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    if "x" in log:
        axes.set_xscale("log")
    if ticks:
        axes.set_xticks(sorted(ticks), [f"{tick:,}" for tick in sorted(ticks)], fontsize=7, rotation=30)
        axes.minorticks_off()
    if "y" in log:
        axes.set_yscale("log")
    else:
        axes.set_ylim(bottom=0)
    axes.grid(color="0.9")
    axes.set_axisbelow(True)
    if axes.get_legend_handles_labels()[0]:
        place = {"loc": "center left", "bbox_to_anchor": (1.01, 0.5)} if is_single else {}
        axes.legend(frameon=False, fontsize=8, handlelength=4, **place)


def seconds(results):
    rows = results.json("timescales")
    if not rows:
        return None
    rows = [row for row in rows if row["property"].endswith("10")] or rows
    series = {"file": [median([run["seconds"] for run in row["file_every"]]) for row in rows]}
    for row in rows:
        for on in row["networks"]:
            series.setdefault(on["network"], []).append(median([run["seconds"] for run in on["every"]["monitor"]]))
    figure, axes = plt.subplots(figsize=(7, 0.8 + 0.34 * len(rows)))
    height = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        at = [row + (place - (len(series) - 1) / 2) * height for row in range(len(rows))]
        grey = str(0.95 - 0.3 * place / max(1, len(series) - 1))
        axes.barh(at, values, height, color=grey, edgecolor="black", linewidth=0.6, hatch=HATCHES[place % len(HATCHES)], label=NETWORKS[name])
    axes.set_yticks(range(len(rows)), [row["property"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"seconds for {rows[0]['messages']:,} messages, a verdict for each")
    axes.grid(axis="x", color="0.9")
    axes.set_axisbelow(True)
    axes.legend(frameon=False, fontsize=8)
    return figure


def throughput(results):
    runs = results.runs("throughput")
    runs = [run for run in runs or [] if run.get("pattern") == "S1" and run["participants"] == 2]
    if not runs:
        return None
    figure, axes = plt.subplots(figsize=(6, 3))
    lines(axes, {NETWORKS[network]: medians(of, "bytes", "rate", 1e6) for network, of in groups(runs, lambda run: run["network"]).items()})
    finish(axes, "payload, bytes", "million messages per second", "xy")
    return figure


def chain(results):
    runs = results.runs("chain")
    if not runs:
        return None
    networks = groups(runs, lambda run: run["network"])
    figure, row = plt.subplots(1, len(networks), figsize=(8, 3), sharey=True, squeeze=False)
    for axes, (network, of) in zip(row[0], networks.items()):
        for place, ((part, name), monitored) in enumerate((part, is_there) for part in ((0.5, "p50"), (0.99, "p99")) for is_there in (False, True)):
            by = groups([run for run in of if run["monitored"] == monitored], lambda run: run["chains"])
            points = [(chains, quantile([us for run in at for us in run["latency_us"]], part)) for chains, at in by.items()]
            line(axes, place, f"{name}, {'with' if monitored else 'without'} a monitor", points)
        axes.set_title(network, fontsize=9)
        finish(axes, "chains", "latency of the chain, us", "y", {run["chains"] for run in of}, is_single=False)
    return figure


def by_size(runs):
    """Of each network the medians of its round trips in us, by payload."""
    found = {}
    for (network, size), of in groups(runs, lambda run: (run["network"], run["bytes"])).items():
        found.setdefault(network, []).append((size, median([us for run in of for us in run["us"]])))
    return found


def half(results):
    runs = results.runs("roundtrip")
    if not runs:
        return None
    figure, axes = plt.subplots(figsize=(6, 3))
    networks = {network: points for network, points in by_size(runs).items() if network != "UDP"}
    lines(axes, {network: [(size, us / 2) for size, us in points] for network, points in networks.items()})
    for us, regime in (300, "below 1 k msg/s"), (20, "above 10 k msg/s"):
        axes.axhline(us, **PAPER)
        axes.annotate(f"{regime} (paper)", (0.98, us), xycoords=("axes fraction", "data"), ha="right", va="center", fontsize=7)
    finish(axes, "payload, bytes", "half a round trip, us", "y")
    return figure


def roundtrip(results):
    runs = results.runs("roundtrip")
    if not runs:
        return None
    figure, axes = plt.subplots(figsize=(6, 3))
    lines(axes, by_size(runs))
    finish(axes, "payload, bytes", "round trip, median, us")
    return figure


def take_overs(axes, runs):
    """The distribution of take-overs by end and lease."""
    for place, ((end, lease), of) in enumerate(groups(runs, lambda run: (run["end"], run["lease_ms"])).items()):
        times = sorted(run["take_over_ms"] for run in of)
        mark, dash, grey = STYLES[place % len(STYLES)]
        label = f"{end}, lease {lease:g} ms" if end in ("kill", "pause") else end
        shares = [(at + 1) / len(times) for at in range(len(times))]
        every = max(1, len(times) // 8)
        axes.plot(times, shares, drawstyle="steps-post", marker=mark, markevery=every, linestyle=dash, color=grey, markersize=4, markerfacecolor="white", label=label)


def failover(results):
    runs = [run for run in results.runs("failover") or [] if run.get("topic_lease_ms") is None]
    if not runs:
        return None
    figure, axes = plt.subplots(figsize=(7.5, 3))
    take_overs(axes, runs)
    axes.axvspan(16.8 - 10.4, 16.8 + 10.4, color="0.88", zorder=0, label="shutdown, mean and deviation (paper)")
    finish(axes, "ms until a message of the weaker publisher", "share of take-overs", "x")
    axes.set_ylim(0, 1.02)
    return figure


def standby(results):
    runs = results.runs("standby")
    if not runs:
        return None
    networks = groups(runs, lambda run: run["network"])
    figure, column = plt.subplots(len(networks), 1, figsize=(7.5, 2.4 * len(networks)), sharex=True, squeeze=False)
    for (axes,), (network, of) in zip(column, networks.items()):
        take_overs(axes, of)
        axes.set_title(NETWORKS[network], fontsize=9)
        finish(axes, "ms until a verdict of the other member", "share of take-overs", "x")
        axes.set_ylim(0, 1.02)
    return figure


def mesa(results):
    runs = results.runs("mesa")
    if not runs:
        return None
    most = max(run["keys"] for run in runs)
    figure, grid = plt.subplots(2, 2, figsize=(8, 5.6))
    measures = [("seconds", "s", 1), ("peak_bytes", "peak memory, MB", 1e6)]
    for (of_keys, of_workers), (measure, name, unit) in zip(grid, measures):
        for place, ((arrangement, workers), of) in enumerate(groups(runs, lambda run: (run["arrangement"], run["workers"])).items()):
            label = f"{arrangement}, {workers}" if arrangement == "bounded" else arrangement
            line(of_keys, place, label, medians(of, "keys", measure, unit))
        finish(of_keys, "monitors (call signs)", name, "x", {run["keys"] for run in runs}, is_single=False)
        bounded = [run for run in runs if run["arrangement"] == "bounded" and run["keys"] == most]
        line(of_workers, 0, f"bounded, {most} monitors", medians(bounded, "workers", measure, unit))
        finish(of_workers, "workers", name, "", {run["workers"] for run in bounded}, is_single=False)
    return figure


def misordered(results):
    cells = [cell for cell in results.json("order") or [] if cell["delay_ms"] == 0]
    if not cells:
        return None
    figure, axes = plt.subplots(figsize=(7, 3))
    for place, (network, of) in enumerate(groups(cells, lambda cell: cell["network"]).items()):
        line(axes, place, NETWORKS[network], [(cell["period_us"], cell["settings"][0]["misordered"] / max(cell["arrived"], 1) * 100) for cell in of])
    markers = {}
    for cell in cells:
        wrong = sum(s["misordered"] + s["late"] for s in cell["settings"] if s["setting"] == "markers")
        sent = markers.setdefault(cell["period_us"], [0, 0])
        sent[0] += wrong
        sent[1] += cell["arrived"]
    line(axes, 5, "any, with progress markers", [(period, wrong / max(sent, 1) * 100) for period, (wrong, sent) in markers.items()])
    axes.plot([1e4, 3e4], [0.2, 0.2], **PAPER, label="0.2 % at 10 to 30 ms (paper)")
    finish(axes, "period of the bursts, us", "misordered, %", "x")
    # Zero is a result.
    axes.set_yscale("symlog", linthresh=0.1)
    axes.set_ylim(bottom=-0.01)
    return figure


def clocks(results):
    runs = [run for run in results.runs("clocks") or [] if run["publishers"] == "multi-node" and run["setting"] != "arrival"]
    if not runs:
        return None
    figure, row = plt.subplots(1, 2, figsize=(8, 3))
    for place, (setting, of) in enumerate(groups(runs, lambda run: run["setting"]).items()):
        wrong = [(run["error_ms"], (run["misordered"] + run["late"]) / max(run["events"], 1) * 100) for run in of]
        line(row[0], place, setting, wrong)
        line(row[1], place, setting, [(run["error_ms"], run["delay_ms"][1]) for run in of if run["delay_ms"][1] is not None])
    for axes, measure in zip(row, ("misordered or late, %", "delay by alignment, p99, ms")):
        finish(axes, "error of clocks, up to ms", measure, is_single=False)
    return figure


def slow(results):
    cells = results.json("slow", "order")
    if not cells:
        return None
    shown = [(cell, s) for cell in cells for s in cell["settings"] if s["setting"] in ("markers", "max_wait 5 ms")]
    figure, row = plt.subplots(1, 2, figsize=(8, 3))
    for place, ((setting, network), of) in enumerate(groups(shown, lambda pair: (pair[1]["setting"], pair[0]["network"])).items()):
        label = f"{NETWORKS[network]}, {setting}"
        line(row[0], place, label, [(cell["delay_ms"], s["late"] / max(cell["events"], 1) * 100) for cell, s in of])
        line(row[1], place, label, [(cell["delay_ms"], s["latency_us"][1] / 1e3) for cell, s in of if s["latency_us"][1] is not None])
    for axes, measure in zip(row, ("late, %", "latency, p99, ms")):
        finish(axes, "delay of the slow link, ms", measure, is_single=False)
    return figure


def patterns(results):
    runs = [run for run in results.runs("throughput") or [] if "pattern" in run]
    if not runs:
        return None
    networks = list(groups(runs, lambda run: run["network"]))
    figure, grid = plt.subplots(len(networks), 2, figsize=(8, 2.8 * len(networks)), squeeze=False)
    smallest = min(run["bytes"] for run in runs)
    fewest = min(run["participants"] for run in runs)
    for row, network in zip(grid, networks):
        of = [run for run in runs if run["network"] == network]
        for axes, by, fixed in (row[0], "participants", ("bytes", smallest)), (row[1], "bytes", ("participants", fewest)):
            here = [run for run in of if run[fixed[0]] == fixed[1]]
            lines(axes, {pattern: medians(of_pattern, by, "rate") for pattern, of_pattern in groups(here, lambda run: run["pattern"]).items()})
            axes.set_title(f"{NETWORKS[network]}, {fixed[1]} {fixed[0]}", fontsize=9)
            finish(axes, by, "messages received per second", "xy", {run[by] for run in here}, is_single=False)
    return figure


# Of each file the figure, and the study whose run it shows.
FIGURES = {
    "a-seconds": (seconds, "timescales"),
    "a-throughput": (throughput, "throughput"),
    "a-half": (half, "roundtrip"),
    "b-chain": (chain, "chain"),
    "c-roundtrip": (roundtrip, "roundtrip"),
    "c-failover": (failover, "failover"),
    "c-standby": (standby, "standby"),
    "d-mesa": (mesa, "mesa"),
    "e-misordered": (misordered, "order"),
    "e-clocks": (clocks, "clocks"),
    "e-slow": (slow, "slow"),
    "e-patterns": (patterns, "throughput"),
}


def empty():
    figure, axes = plt.subplots(figsize=(5, 1))
    axes.text(0.5, 0.5, "not measured", ha="center", va="center")
    axes.set_axis_off()
    return figure


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__.splitlines()[0])
    folder, out = Path(sys.argv[1]), Path(sys.argv[2])
    out.mkdir(parents=True, exist_ok=True)
    for name, (draw, study) in FIGURES.items():
        path = out / f"{name}.svg"
        figure = draw(Results(folder))
        if figure is not None:
            run = run_line(folder, study)
            figure.text(0, -0.02, run, fontsize=6, va="top", wrap=True)
        elif path.exists():
            continue
        save(figure or empty(), path)


if __name__ == "__main__":
    main()
