"""Check recordings with Ray Data: python with_ray.py SPECIFICATION FOLDER [WORKERS]"""

import json
import pathlib
import sys
import time

import ray

import rondel


def main(specification: str, folder: str, workers: int = 2) -> None:
    # On a cluster: ray.init(address="auto").
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    # The text goes to the workers with the function; the recordings are read from a folder that all of them see.
    text = pathlib.Path(specification).read_text()
    paths = sorted(str(path) for path in pathlib.Path(folder).glob("*.mcap"))
    begin = time.perf_counter()

    def check(row: dict) -> list[dict]:
        path = row["recording"]
        try:
            results = rondel.check(path, text=text, jobs=1)
        except rondel.RecordingError as error:
            return [{"recording": path, "property": "", "verdict": "", "violations": 0, "problem": str(error)}]
        return [
            {
                "recording": path,
                "property": entry.name,
                "verdict": entry.verdict,
                "violations": entry.violations,
                "problem": "",
            }
            for entry in results.properties
        ]

    # More blocks than workers: a recording that takes long does not delay all others.
    recordings = ray.data.from_items([{"recording": path} for path in paths], override_num_blocks=4 * workers)
    for row in recordings.flat_map(check).iter_rows():
        print(json.dumps(row))
    print(f"{len(paths)} recordings in {time.perf_counter() - begin:.2f} s", file=sys.stderr)


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
