#!/usr/bin/env python3
"""`rfinject export --to parquet`, read by DuckDB, and held against `--to sqlite`. support.py has the usage."""
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess
import sysconfig
import tempfile
import unittest
import venv

import support
from support import GOLDEN, OPTIONS, ROOT

NAMES = ("runs", "layers", "kernels", "lines", "stacks", "memory", "waits", "advice", "roofs", "alarms")
TRACES = [str(GOLDEN / f"{name}.rfx") for name in ("a100", "v100", "est-resnet18", "measured", "hostile")]

RUNS = 5


@support.needs_tools
class Parquet(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-parquet-test-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.dataset = self.folder / "week"

    def write(self, *traces, **options):
        from rfinject import parquet
        return parquet.write([str(trace) for trace in traces], str(self.dataset), **options)

    def connect(self):
        """DuckDB, with a view for each table."""
        import duckdb
        database = duckdb.connect()
        self.addCleanup(database.close)
        for name in NAMES:
            database.execute(f"CREATE VIEW {name} AS SELECT * FROM read_parquet('{self.dataset}/{name}/*/*/*.parquet', "
                             "hive_partitioning = true, hive_types = {'job': VARCHAR, 'day': VARCHAR})")
        return database

    def sqlite(self, *traces):
        path = self.folder / "week.sqlite"
        subprocess.run([OPTIONS.rfinject, "export", "--to", "sqlite", "--force", *traces, "-o", path], check=True,
                       capture_output=True)
        database = sqlite3.connect(path)
        self.addCleanup(database.close)
        return database

    def assert_same(self, traces, tables):
        self.write(*traces)
        duck, lite = self.connect(), self.sqlite(*traces)
        for table in tables:
            columns = [name for _, name, *_ in lite.execute(f"PRAGMA table_info({table})") if name != "run_id"]
            names = ", ".join(columns)
            wanted = lite.execute(f"SELECT {names} FROM {table}").fetchall()
            stored = duck.execute(f"SELECT {names} FROM {table}").fetchall()
            self.assertEqual(sorted(map(repr, stored)), sorted(map(repr, wanted)), table)
            self.assertTrue(wanted, table)

    def test_every_number_is_that_of_sqlite(self):
        self.assert_same(TRACES, ("runs", "layers", "kernels", "lines", "stacks", "waits", "advice", "roofs"))

    def test_alarms_are_those_of_sqlite(self):
        self.assert_same([str(GOLDEN / "random2.rfx")], ("alarms",))

    def test_runs_are_told_apart_and_joined(self):
        self.write(*TRACES[:2])
        self.write(*TRACES[2:])
        duck = self.connect()
        self.assertEqual(duck.execute("SELECT count(DISTINCT run_id), count(*) FROM runs").fetchone(), (RUNS, RUNS))
        for kernels, of_run in duck.execute("SELECT sum(kernels.launches), any_value(runs.launches) FROM kernels "
                                            "JOIN runs USING (run_id) GROUP BY run_id").fetchall():
            self.assertEqual(kernels, of_run)

    def test_a_run_comes_in_once(self):
        self.assertEqual(self.write(TRACES[0]), 1)
        self.assertEqual(self.write(*TRACES), RUNS - 1)
        self.assertEqual(self.write(*TRACES), 0)
        self.assertEqual(self.connect().execute("SELECT count(*) FROM runs").fetchone(), (RUNS,))
        self.assertEqual(self.write(*TRACES, force=True), RUNS)
        self.assertEqual(self.connect().execute("SELECT count(*) FROM runs").fetchone(), (RUNS,))

    def test_units_and_modes(self):
        import pyarrow.parquet
        self.write(TRACES[0])
        files = list(self.dataset.rglob("*.parquet"))
        self.assertEqual(len(files), len(NAMES))
        self.assertEqual({os.stat(file).st_mode & 0o777 for file in files}, {0o600})
        kernels, = (self.dataset / "kernels").rglob("*.parquet")
        field = pyarrow.parquet.read_schema(kernels).field("time_ns")
        self.assertEqual(field.metadata, {b"unit": b"ns", b"title": b"GPU time, all steps"})

    def test_partitions_are_folders_of_the_dataset(self):
        from rfinject import parquet
        for job in ("../../etc", "a/b", "x" * 500, "%", "", "job=1"):
            name = parquet._folder_name("job", job)
            self.assertNotIn("/", name)
            self.assertLess(len(name), 255)
        self.write(TRACES[2])
        self.assertEqual([path.relative_to(self.dataset).parts[1:3] for path in (self.dataset / "runs").rglob("*.parquet")],
                         [("job=__HIVE_DEFAULT_PARTITION__", "day=2026-11-22")])

    def test_the_documents_questions(self):
        text = (ROOT / "docs/use/IMPORT_AND_EXPORT.md").read_text(encoding="utf-8")
        queries = re.findall(r"```sql\n(.*?)```", text, re.DOTALL)
        said, = re.findall(r"in DuckDB:? `([^`]*)`", text)
        traces = TRACES[:4]
        self.write(*traces)
        duck, lite = self.connect(), self.sqlite(*traces)

        def rounded(rows):
            return sorted(repr([float(f"{value:.9g}") if isinstance(value, (int, float)) else value for value in row]) for row in rows)

        for query in queries:
            # The one function that DuckDB and SQLite spell differently.
            query = query.replace("LIMIT 20", "")  # times that are equal but for rounding change places
            mine = re.sub(r"strftime\('%Y-%W', started_unix_ns / 1000000000, 'unixepoch'\)", said, query)
            answer = duck.execute(mine).fetchall()
            self.assertEqual(rounded(answer), rounded(lite.execute(query).fetchall()), query)

    def test_the_command(self):
        # This is how it is installed: the command beside the python that has the package.
        place = self.folder / "venv"
        venv.create(place, symlinks=True)
        shutil.copy2(OPTIONS.rfinject, place / "bin/rfinject")
        command = [place / "bin/rfinject", "export", "--to", "parquet", *TRACES[:2], "-o", self.dataset]
        without = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((without.returncode, without.stderr),
                         (1, 'rfinject: --to parquet needs the Python package: pip install "rfinject[parquet]"\n'))
        packages, = (place / "lib").glob("python*/site-packages")
        (packages / "here.pth").write_text(f"{ROOT / 'python'}\n")
        without = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual((without.returncode, without.stderr),
                         (1, "rfinject: Parquet needs pyarrow: pip install rfinject[parquet]\n"))
        (packages / "here.pth").write_text(f"{ROOT / 'python'}\n{sysconfig.get_path('platlib')}\n")
        for code, said in ((0, ""), (0, f"rfinject: {self.dataset}: all of these runs are in it already; --force makes their "
                                        "partitions anew\n")):
            result = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual((result.returncode, result.stderr), (code, said))
        self.assertEqual(self.connect().execute("SELECT count(*) FROM runs").fetchone(), (2,))
        result = subprocess.run([*command, "--force", "/nonexistent.rfx"], capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("/nonexistent.rfx: no such file", result.stderr)


class Alone(unittest.TestCase):
    def test_the_command_without_a_python_beside_it_says_what_is_missing(self):
        with tempfile.TemporaryDirectory() as folder:
            shutil.copy2(OPTIONS.rfinject, folder)
            result = subprocess.run([f"{folder}/rfinject", "export", "--to", "parquet", TRACES[0], "-o", f"{folder}/x"],
                                    capture_output=True, text=True)
            self.assertEqual(result.returncode, 1)
            self.assertIn('pip install "rfinject[parquet]"', result.stderr)
            self.assertFalse(os.path.exists(f"{folder}/x"))


if __name__ == "__main__":
    support.main()
