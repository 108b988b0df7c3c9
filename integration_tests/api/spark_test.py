#!/usr/bin/env python3
"""rfinject.spark on a real Spark, with 1,000 traces and executors that fail: equal to DuckDB. Local[2], where a process of an
executor is killed, and a cluster of two executors on this machine; one of them is killed whole, its Java too.

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


# In place of the command. On an executor the first `count` that come (mkdir tells) do their work, and then kill.
FAILING = """#!/bin/sh
if tr '\\0' ' ' </proc/$PPID/cmdline | grep -q pyspark.daemon; then
  for number in {numbers}; do
    if mkdir "{failures}/$number" 2>/dev/null; then
      {command} "$@"
      {kill}
    fi
  done
fi
exec {command} "$@"
"""
KILL_WORKER = "kill -KILL $PPID"
# The worker's parent is a daemon, whose parent is the executor.
KILL_EXECUTOR = """parent() { cut -d ' ' -f 4 "/proc/$1/stat"; }
      java=$(parent "$(parent $PPID)")
      grep -q CoarseGrainedExecutorBackend "/proc/$java/cmdline" && kill -KILL "$java" && echo "$java" >"%s"
      exit 1"""


def setUpModule():
    folder = tempfile.TemporaryDirectory(prefix="rfinject-spark-test-")
    unittest.addModuleCleanup(folder.cleanup)
    SparkTest.folder = pathlib.Path(folder.name)
    SparkTest.traces = SparkTest.folder / "traces"
    subprocess.run(["/usr/bin/python3", "-B", ROOT / "integration_tests/api/many_traces.py", SparkTest.traces, str(TRACES)],
                   check=True)
    said = subprocess.run([OPTIONS.duckdb, "-B", "-c", DUCKDB, ROOT / "python", SparkTest.traces, SparkTest.folder / "dataset"],
                          check=True, stdout=subprocess.PIPE).stdout
    SparkTest.wanted = {tuple(row[:4]): row[4:] for row in json.loads(said)}


class SparkTest(unittest.TestCase):
    folder = traces = wanted = spark = None  # the first three of setUpModule

    @classmethod
    def start(cls, master, **settings):
        from pyspark.sql import SparkSession
        builder = (SparkSession.builder.master(master).config("spark.ui.enabled", "false")
                   .config("spark.sql.files.openCostInBytes", "1048576"))
        for name, value in settings.items():
            builder = builder.config("spark." + name.replace("_", "."), value)
        cls.spark = builder.getOrCreate()
        cls.addClassCleanup(cls.spark.stop)
        cls.spark.sparkContext.setLogLevel("OFF")

    def assert_sums_are_right(self):
        from rfinject import spark
        rows = spark.fold(self.spark, str(self.traces))["kernels"].groupBy("kernel", "op", "phase", "layer").sum(
            "launches", "flop", "dram_bytes", "time_ns").collect()
        found = {tuple(row[:4]): list(map(float, row[4:])) for row in rows}
        self.assertGreater(len(found), 20)
        self.assertEqual(set(found), set(self.wanted))
        for key, numbers in self.wanted.items():
            for one, other in zip(found[key], numbers):
                self.assertAlmostEqual(one, other, delta=1e-9 * abs(other), msg=str(key))

    def fail_executors(self, kill, numbers):
        """From here on the command is one that kills; returns the folder that has an entry for each time that it did."""
        failures = self.folder / self.id()
        failures.mkdir()
        command = failures.with_suffix(".bin") / "rfinject"
        command.parent.mkdir()
        command.write_text(FAILING.format(numbers=numbers, failures=failures, command=OPTIONS.rfinject, kill=kill))
        command.chmod(0o755)
        os.environ["RFINJECT_COMMAND"] = str(command)
        self.addCleanup(os.environ.__setitem__, "RFINJECT_COMMAND", OPTIONS.rfinject)
        return failures


class Cluster(SparkTest):
    """Executors are processes of their own, as on a cluster."""

    @classmethod
    def setUpClass(cls):
        import pyspark
        # Spark keeps what executors work on beside its own files: those of the package stay as they are.
        package, home = pathlib.Path(pyspark.__path__[0]), cls.folder / "spark"
        home.mkdir()
        for entry in package.iterdir():
            (home / entry.name).symlink_to(entry)
        os.environ["SPARK_HOME"] = str(home)
        cls.addClassCleanup(os.environ.pop, "SPARK_HOME")
        cls.start("local-cluster[2,1,512]", executor_memory="512m")

    def test_an_executor_is_killed(self):
        killed = self.folder / "killed"
        failures = self.fail_executors(KILL_EXECUTOR % killed, "1")
        self.assert_sums_are_right()
        self.assertEqual(len(list(failures.iterdir())), 1)
        self.assertFalse(pathlib.Path("/proc", killed.read_text().strip()).exists())


class Local(SparkTest):
    @classmethod
    def setUpClass(cls):
        cls.start("local[2,4]")  # two cores, and a task may fail three times

    def test_the_sums_are_those_of_duckdb(self):
        self.assert_sums_are_right()

    def test_two_workers_are_killed(self):
        failures = self.fail_executors(KILL_WORKER, "1 2")
        self.assert_sums_are_right()
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
