#!/usr/bin/env python3
"""Print the tables of the container parts of study A: containers.py FILE, the single runs of scripts/bench-containers."""

import sys
from pathlib import Path

from machine import table
from studies import MODES, NO_MODE, containers, runs_of

NETWORKS = {"dds": "DDS", "zenoh": "Zenoh"}


def traces(runs, modes, found):
    """Seconds of each property, by network and mode."""
    names = list(dict.fromkeys(run["property"] for run in runs if run.get("part") == "traces"))
    if not names:
        return
    missing = {run["mode"] for run in runs if run.get("available") is False}
    columns = [(network, mode) for network in NETWORKS for mode in modes]
    rows = [
        [name, *(NO_MODE if mode in missing else found.get(f"containers.{name}.{network}.{mode}", "-") for network, mode in columns)]
        for name in names
    ]
    sent = max(run["sent"] for run in runs if run.get("part") == "traces")
    title = f"Seconds for {sent} messages, a verdict for each, publisher and monitor in containers"
    heads = ["property", *(f"{NETWORKS[network]} {mode}" for network, mode in columns)]
    print(f"{title}\n\n{table(heads, rows)}")


def half(runs, modes, found):
    """Half a round trip of each network and mode."""
    if not any(run.get("part") == "half" for run in runs):
        return
    heads = ["network, mode", "one after another, us", "500 a second, us", "the monitor adds to a round trip, us"]
    rows = [
        [f"{name} {mode}", *(found.get(f"containers.{network}.{mode}.{figure}", "-") for figure in ("half", "rare", "adds"))]
        for network, name in NETWORKS.items()
        for mode in modes
    ]
    print(f"Half a round trip through an echo between containers, medians\n\n{table(heads, rows)}")


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    machine, runs = runs_of(Path(sys.argv[1]))
    if machine is None:
        sys.exit(f"no runs in {sys.argv[1]}")
    modes = [mode for mode in MODES if any(run["mode"] == mode for run in runs)]
    found = dict(containers(runs))
    print(
        f"{machine['date']}: {machine['cpu']}, {machine['cores']} cores, {machine['kernel']}, load {machine['load']} before the "
        f"start, commit {machine['commit']}. `{machine['command']}`\n"
    )
    traces(runs, modes, found)
    half(runs, modes, found)


if __name__ == "__main__":
    main()
