"""Check recordings with Dask: python with_dask.py SPECIFICATION FOLDER [WORKERS]"""

import json
import pathlib
import sys
import time

from distributed import Client, as_completed

import rondel


def check(path: str, text: str) -> list[dict]:
    """Check a recording on a worker: a row for each property, or one with the problem of the recording."""
    try:
        results = rondel.check(path, text=text, jobs=1)
    except rondel.RecordingError as error:
        return [{"recording": path, "property": "", "verdict": "", "violations": 0, "problem": str(error)}]
    return [
        {"recording": path, "property": entry.name, "verdict": entry.verdict, "violations": entry.violations, "problem": ""}
        for entry in results.properties
    ]


def main(specification: str, folder: str, workers: int = 2) -> None:
    # The text goes to the workers; the recordings are read from a folder that all of them see.
    text = pathlib.Path(specification).read_text()
    paths = sorted(str(path) for path in pathlib.Path(folder).glob("*.mcap"))
    # On a cluster: Client("tcp://scheduler:8786").
    with Client(n_workers=workers, threads_per_worker=1, dashboard_address=None) as client:
        begin = time.perf_counter()
        # The check of a file that has changed is another one: `pure` would take the result of the one before.
        futures = client.map(check, paths, text=text, pure=False)
        for _, rows in as_completed(futures, with_results=True):
            for row in rows:
                print(json.dumps(row))
        print(f"{len(paths)} recordings in {time.perf_counter() - begin:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
