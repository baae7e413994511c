"""Check recordings with Spark: python with_spark.py SPECIFICATION FOLDER [WORKERS]"""

import json
import pathlib
import sys
import time
from collections.abc import Iterator

import pandas
from pyspark.sql import SparkSession

import rondel

SCHEMA = "recording string, property string, verdict string, violations long, problem string"


def main(specification: str, folder: str, workers: int = 2) -> None:
    # On a cluster: without master(), by spark-submit.
    builder = SparkSession.builder.master(f"local[{workers}]").config("spark.ui.enabled", "false")
    spark = builder.config("spark.log.level", "ERROR").getOrCreate()
    # The text goes to the workers with the function; the recordings are read from a folder that all of them see.
    text = pathlib.Path(specification).read_text()
    paths = sorted(str(path) for path in pathlib.Path(folder).glob("*.mcap"))
    begin = time.perf_counter()

    def check(path: str) -> list[tuple]:
        try:
            results = rondel.check(path, text=text, jobs=1)
        except rondel.RecordingError as error:
            return [(path, "", "", 0, str(error))]
        return [(path, entry.name, entry.verdict, entry.violations, "") for entry in results.properties]

    def check_all(tables: Iterator[pandas.DataFrame]) -> Iterator[pandas.DataFrame]:
        columns = [field.split()[0] for field in SCHEMA.split(", ")]
        for table in tables:
            for path in table["recording"]:
                yield pandas.DataFrame(check(path), columns=columns)

    # More partitions than workers: a recording that takes long does not delay all others.
    recordings = spark.createDataFrame([(path,) for path in paths], "recording string").repartition(4 * workers)
    for row in recordings.mapInPandas(check_all, SCHEMA).collect():
        print(json.dumps(row.asDict()))
    print(f"{len(paths)} recordings in {time.perf_counter() - begin:.2f} s", file=sys.stderr)
    spark.stop()


if __name__ == "__main__":
    main(*sys.argv[1:3], *map(int, sys.argv[3:]))
