#!/usr/bin/env python3
"""Draw results as SVG: plot.py FOLDER, with results.json or order.json in the folder.

From `rondel-bench all --out FOLDER`:
timescales.svg: seconds for each property, from a local file and through the networks.
ratios.svg:     throughput of the monitor over that of a plain participant, a point for each turn.

From `rondel-bench order --json FOLDER/order.json`:
order.svg:      latency and errors of order, for each setting of alignment.
"""

import json
import statistics
import sys
from pathlib import Path

import matplotlib

matplotlib.use("svg")
# Keep text as text, and make equal data give an equal file.
matplotlib.rcParams.update({"svg.fonttype": "none", "svg.hashsalt": "rondel", "font.size": 9})
import matplotlib.pyplot as plt  # noqa: E402  (the backend must be set first)

COLOURS = {"file": "#4c72b0", "zenoh": "#55a868", "dds": "#c44e52", "mqtt": "#8172b3"}
NAMES = {"file": "local file", "zenoh": "Zenoh, host", "dds": "DDS, host", "mqtt": "MQTT"}


def seconds(runs):
    return statistics.median(run["seconds"] for run in runs)


def machine(results):
    m = results["machine"]
    return f"{m['cpu']}, {m['cores']} cores, {m['kernel']}; Rondel {m['version']}, {m['date']}"


def save(figure, path):
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")
    plt.close(figure)
    print(path)


def timescales(results, path):
    rows = results["timescales"]
    series = {"file": [seconds(row["file_every"]) for row in rows]}
    for index, on in enumerate(rows[0]["networks"]):
        series[on["network"]] = [seconds(row["networks"][index]["every"]["monitor"]) for row in rows]
    figure, axes = plt.subplots(figsize=(9, 0.6 + 0.32 * len(rows)))
    height = 0.8 / len(series)
    for place, (name, values) in enumerate(series.items()):
        at = [row + (place - (len(series) - 1) / 2) * height for row in range(len(rows))]
        axes.barh(at, values, height, color=COLOURS[name], label=NAMES[name])
    axes.set_yticks(range(len(rows)), [row["property"] for row in rows])
    axes.invert_yaxis()
    axes.set_xlabel(f"seconds for {rows[0]['messages']:,} messages, a verdict for each")
    axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.06), ncols=len(series), frameon=False)
    axes.grid(axis="x", alpha=0.3)
    axes.set_title(machine(results), fontsize=7, pad=4)
    save(figure, path)


def ratios(results, path):
    rows = results["timescales"]
    marks = {"every": (0.9, "a verdict for every message : echo"), "change": (0.95, "verdicts on change : counting")}
    networks = [on["network"] for on in rows[0]["networks"]]
    if not networks:
        return
    figure, all_axes = plt.subplots(1, 2, figsize=(9, 3.2), sharey=True)
    for axes, (kind, (mark, title)) in zip(all_axes, marks.items()):
        for index, network in enumerate(networks):
            points = []
            for row in rows:
                pair = row["networks"][index][kind]
                points += [p["seconds"] / m["seconds"] for m, p in zip(pair["monitor"], pair["plain"])]
            spread = [index + 0.3 * (place / max(1, len(points) - 1) - 0.5) for place in range(len(points))]
            axes.plot(spread, points, ".", color=COLOURS[network], alpha=0.6)
            median = statistics.median(points)
            axes.plot([index - 0.25, index + 0.25], [median, median], color="black")
            axes.annotate(f"{median:.2f}", (index + 0.27, median), va="center")
        axes.axhline(mark, linestyle="--", color="grey", linewidth=0.8)
        axes.set_xticks(range(len(networks)), [NAMES[network] for network in networks])
        axes.set_xlim(-0.5, len(networks) - 0.3)
        axes.set_title(f"{title} (mark {mark})", fontsize=9)
        axes.grid(axis="y", alpha=0.3)
    all_axes[0].set_ylabel("messages per second, ratio")
    all_axes[0].set_ylim(bottom=0)
    save(figure, path)


def order(results, path):
    cells = results["order"]
    networks = list(dict.fromkeys(cell["network"] for cell in cells))
    delays = list(dict.fromkeys(cell["delay_ms"] for cell in cells))
    settings = [setting["setting"] for setting in cells[0]["settings"]]
    figure, all_axes = plt.subplots(
        len(delays), len(networks), figsize=(3.6 * len(networks) + 1, 2.4 * len(delays) + 0.6), sharex=True, sharey=True, squeeze=False
    )
    for row, delay in zip(all_axes, delays):
        for axes, network in zip(row, networks):
            here = [cell for cell in cells if cell["network"] == network and cell["delay_ms"] == delay]
            events = sum(cell["events"] for cell in here)
            for place, name in enumerate(settings):
                of = [next(s for s in cell["settings"] if s["setting"] == name) for cell in here]
                for which, mark in (0, "o"), (1, "|"):
                    values = [s["latency_us"][which] / 1e3 for s in of if s["latency_us"][which] is not None]
                    axes.plot(values, [place] * len(values), mark, color=COLOURS[network], alpha=0.6)
                wrong, late = (sum(s[what] for s in of) / events * 100 for what in ("misordered", "never"))
                colour = "black" if wrong == late == 0 else "#c44e52"
                axes.annotate(f"{wrong:.1f} | {late:.1f} %", (1.02, place), xycoords=("axes fraction", "data"), fontsize=7, va="center", color=colour)
            axes.set_xscale("log")
            axes.minorticks_off()
            axes.set_yticks(range(len(settings)), settings)
            axes.set_title(f"{NAMES[network].split(',')[0]}, b {delay:g} ms later", fontsize=9)
            axes.grid(axis="x", alpha=0.3)
    all_axes[0][0].invert_yaxis()
    for axes in all_axes[-1]:
        axes.set_xlabel("ms until released: p50 ●, p99 |")
    figure.suptitle(f"{machine(results)}. At the right of each: misordered | never released", fontsize=7)
    figure.tight_layout()
    save(figure, path)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = Path(sys.argv[1])
    if (folder / "order.json").exists():
        order(json.loads((folder / "order.json").read_text()), folder / "order.svg")
        if not (folder / "results.json").exists():
            return
    results = json.loads((folder / "results.json").read_text())
    if not results.get("timescales"):
        sys.exit("no rows in results.json")
    timescales(results, folder / "timescales.svg")
    ratios(results, folder / "ratios.svg")


if __name__ == "__main__":
    main()
