#!/usr/bin/env python3
"""rfinject.spark on a real Spark, local[2], with 1,000 traces and executors that fail: equal to DuckDB and to `merge`.

    spark_test.py --rfinject BIN --duckdb PYTHON
Runs in the interpreter of `scripts/tools_venv spark` (it needs a Java); PYTHON is that of `scripts/tools_venv api`.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
OPTIONS = argparse.Namespace()
TRACES = 1000

DUCKDB = """
import duckdb, json, sys
sys.path.insert(0, sys.argv[1])
from rfinject import parquet
parquet.write([sys.argv[2]], sys.argv[3], every_run=True)
rows = duckdb.sql(f"SELECT kernel, op, phase, layer, sum(launches), sum(flop), sum(dram_bytes), sum(time_ns) "
                  f"FROM read_parquet('{sys.argv[3]}/kernels/*/*/*.parquet') GROUP BY ALL").fetchall()
print(json.dumps([[*row[:4], *map(float, row[4:])] for row in rows]))
"""


class Spark(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from pyspark.sql import SparkSession
        folder = tempfile.TemporaryDirectory(prefix="rfinject-spark-test-")
        cls.addClassCleanup(folder.cleanup)
        cls.folder = pathlib.Path(folder.name)
        cls.traces = cls.folder / "traces"
        subprocess.run(["/usr/bin/python3", "-B", ROOT / "integration_tests/api/many_traces.py", cls.traces, str(TRACES)], check=True)
        # Two cores, and a task may fail three times.
        cls.spark = (SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false")
                     .config("spark.sql.files.openCostInBytes", "1048576").getOrCreate())
        cls.addClassCleanup(cls.spark.stop)
        cls.spark.sparkContext.setLogLevel("OFF")

    def duckdb(self):
        said = subprocess.run([OPTIONS.duckdb, "-B", "-c", DUCKDB, ROOT / "python", self.traces, self.folder / "dataset"],
                              check=True, stdout=subprocess.PIPE).stdout
        return {tuple(row[:4]): row[4:] for row in json.loads(said)}

    def sums(self):
        from rfinject import spark
        rows = spark.fold(self.spark, str(self.traces))["kernels"].groupBy("kernel", "op", "phase", "layer").sum(
            "launches", "flop", "dram_bytes", "time_ns").collect()
        return {tuple(row[:4]): list(map(float, row[4:])) for row in rows}

    def assert_equal(self, found, wanted):
        self.assertEqual(set(found), set(wanted))
        for key, numbers in wanted.items():
            for one, other in zip(found[key], numbers):
                self.assertAlmostEqual(one, other, delta=1e-9 * abs(other), msg=str(key))

    def test_equal_to_duckdb_also_where_executors_fail(self):
        wanted = self.duckdb()
        self.assertGreater(len(wanted), 20)
        self.assert_equal(self.sums(), wanted)
        # Two of the executors' processes are killed when they have done their work; Spark has it done again.
        failures = self.folder / "failures"
        failures.mkdir()
        command = self.folder / "bin/rfinject"
        command.parent.mkdir()
        command.write_text(f"""#!/bin/sh
# On an executor only; mkdir tells who comes first.
if [ "${{0##*/userFiles}}" != "$0" ] && {{ mkdir "{failures}/1" || mkdir "{failures}/2"; }} 2>/dev/null; then
  {OPTIONS.rfinject} "$@"
  kill -KILL $PPID
fi
exec {OPTIONS.rfinject} "$@"
""")
        command.chmod(0o755)
        os.environ["RFINJECT_COMMAND"] = str(command)
        self.addCleanup(os.environ.__setitem__, "RFINJECT_COMMAND", OPTIONS.rfinject)
        self.assert_equal(self.sums(), wanted)
        self.assertEqual(len(list(failures.iterdir())), 2)

    def test_columns_have_units(self):
        from rfinject import spark
        tables = spark.fold(self.spark, [str(next(self.traces.glob("*.rfx")))])
        self.assertEqual(tables["kernels"].schema["time_ns"].metadata["unit"], "ns")
        self.assertEqual(tables["runs"].count(), 1)

    def test_what_cannot_be_read(self):
        import rfinject
        from rfinject import spark
        place = self.folder / "bad"
        place.mkdir()
        (place / "bad.rfx").write_bytes(b"no trace")
        good = next(self.traces.glob("*.rfx"))
        with self.assertWarnsRegex(rfinject.RfinjectWarning, "bad|not a trace|damaged|no trace"):
            self.assertEqual(spark.fold(self.spark, [str(place), str(good)])["runs"].count(), 1)
        with self.assertRaisesRegex(rfinject.RfinjectError, "no trace that can be read"):
            spark.fold(self.spark, str(place))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rfinject", required=True, type=os.path.abspath)
    parser.add_argument("--duckdb", required=True)
    OPTIONS, rest = parser.parse_known_args()
    os.environ["RFINJECT_COMMAND"] = OPTIONS.rfinject
    # Workers run what this interpreter runs.
    os.environ["PYSPARK_PYTHON"] = sys.executable
    sys.path.insert(0, str(ROOT / "python"))
    unittest.main(argv=[sys.argv[0], *rest])
