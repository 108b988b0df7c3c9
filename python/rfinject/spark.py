"""Traces of a cluster, added up by Spark.

    tables = rfinject.spark.fold(spark, "hdfs:///traces/2026-01/")
    tables["kernels"].groupBy("kernel").sum("time_ns")

Each executor runs the command, which is sent to it, on its share of the files and makes one trace of their sums; sums of
sums are made until one trace is left. Sums are exact and their order does not matter, so that a task that failed and ran
again, or ran twice, changes nothing. Needs PySpark (pip install rfinject[spark]) without Spark Connect.
"""
import atexit
import hashlib
import os
import shutil
import subprocess
import tempfile
import warnings
import zipfile
from typing import TYPE_CHECKING, Any, Dict, Iterable, Iterator, List, Union

from rfinject import _command, _tables

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# How many files an executor has on its disk at one time, before it adds them up.
MAX_FILES = 500
MAX_BYTES = 256 << 20
# How many traces one task, or the driver, adds up.
FAN_IN = 64


def fold(spark: "SparkSession", paths: Union[str, List[str]]) -> "Dict[str, DataFrame]":
    """DataFrames of all .rfx files below `paths`, which may be in any file system of Hadoop's.

    They are runs, layers, kernels, lines, waits and the other tables of docs/use/IMPORT_AND_EXPORT.md.
    Their columns are those of `rfinject export --to sqlite`; a field's metadata has its unit. All processes that ran the
    same on the same GPU are one run, as `rfinject merge` makes it, with sums over all of their steps.
    Raises RfinjectError where nothing can be read. A trace that is left out, or used in part, is a RfinjectWarning.
    """
    context = spark.sparkContext
    with tempfile.TemporaryDirectory(prefix="rfinject-spark-") as folder:
        command = _send(context)
        files = (spark.read.format("binaryFile").option("pathGlobFilter", "*.rfx").option("recursiveFileLookup", "true")
                 .load(paths).select("content"))
        complaints = context.accumulator([], _Complaints())
        sums = files.rdd.map(lambda row: bytes(row[0])).mapPartitions(lambda part: _add_up(part, command, complaints))
        while sums.getNumPartitions() > FAN_IN:
            fewer = -(-sums.getNumPartitions() // FAN_IN)
            sums = sums.repartition(fewer).mapPartitions(lambda part: _add_up(part, command, complaints))
        partial = sums.collect()
        if not partial:
            raise _command.RfinjectError(f"there is no trace that can be read below {paths}")
        said: List[str] = []
        merged = next(_merge_bytes(_command.find(), partial, folder, said))
        for text in [*complaints.value, *said]:
            warnings.warn(text, _command.RfinjectWarning, stacklevel=2)
        whole = os.path.join(folder, "all.rfx")
        with open(whole, "wb") as file:
            file.write(merged)
        with _tables.export([whole], every_run=True) as tables:
            return {name: _data_frame(spark, tables, name) for name in _tables.NAMES}


# By the id of an application.
_sent: Dict[str, str] = {}


def _folder_of(context: Any) -> str:
    """Where what is sent lies. Spark reads it there whenever an executor starts, also one that takes a lost one's place."""
    if context.applicationId not in _sent:
        _sent[context.applicationId] = tempfile.mkdtemp(prefix="rfinject-spark-")
        atexit.register(shutil.rmtree, _sent[context.applicationId], ignore_errors=True)
    return _sent[context.applicationId]


def _send(context: Any) -> str:
    """The command and this package go to the executors, which need nothing installed. Returns the command's name there."""
    here = os.path.dirname(os.path.abspath(__file__))
    with tempfile.TemporaryDirectory(prefix="rfinject-package-") as folder:
        package = os.path.join(folder, "package.zip")
        with zipfile.ZipFile(package, "w") as archive:
            for name in sorted(os.listdir(here)):
                if name.endswith(".py"):
                    archive.write(os.path.join(here, name), f"rfinject/{name}")
        context.addPyFile(_named_by_content(package, _folder_of(context), "rfinject-package-", ".zip"))
    command = _named_by_content(_command.find(), _folder_of(context), "rfinject-", "")
    context.addFile(command)
    return os.path.basename(command)


def _named_by_content(path: str, folder: str, before: str, after: str) -> str:
    """A copy whose name depends on its content, because in one session Spark refuses a second file of the same name
    with other content."""
    with open(path, "rb") as file:
        digest = hashlib.sha256(file.read()).hexdigest()[:16]
    copy = os.path.join(folder, before + digest + after)
    if not os.path.exists(copy):
        shutil.copy(path, copy)
    return copy


def _add_up(traces: Iterable[bytes], name: str, complaints: Any) -> Iterator[bytes]:
    """Runs on an executor: yields one trace with the sums of all `traces`, or nothing where there are none."""
    from pyspark import SparkFiles
    command = SparkFiles.get(name)
    said: List[str] = []
    waiting: List[bytes] = []
    size = 0
    with tempfile.TemporaryDirectory(prefix="rfinject-shard-") as folder:
        for trace in traces:
            waiting.append(trace)
            size += len(trace)
            if len(waiting) >= MAX_FILES or size >= MAX_BYTES:
                waiting = list(_merge_bytes(command, waiting, folder, said))
                size = sum(map(len, waiting))
        result = list(_merge_bytes(command, waiting, folder, said))
    if said:
        complaints.add(said)
    yield from result


def _merge_bytes(command: str, traces: List[bytes], folder: str, said: List[str]) -> Iterator[bytes]:
    """The sums of `traces` as a trace; nothing where none of them can be read."""
    if not traces:
        return
    with tempfile.TemporaryDirectory(dir=folder) as place:
        for number, trace in enumerate(traces):
            with open(os.path.join(place, f"{number}.rfx"), "wb") as file:
                file.write(trace)
        output = os.path.join(folder, "sums.rfx")
        done = subprocess.run([command, "merge", "-o", output, "--force", place], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=_command.environment(), check=False)
    text = _command.complaint(done.stderr.decode("utf-8", "replace"))
    if done.returncode not in (0, 1):
        raise _command.RfinjectError(text or f"the command ended with {done.returncode}", [command], done.returncode)
    if done.returncode == 1:
        said.append(text)
    if os.path.exists(output):
        with open(output, "rb") as file:
            yield file.read()
        os.unlink(output)


def _data_frame(spark: "SparkSession", tables: _tables.Tables, name: str) -> "DataFrame":
    from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType
    types = {"TEXT": StringType(), "INTEGER": LongType(), "REAL": DoubleType()}
    columns = tables.columns(name)
    schema = StructType([StructField(column.name, types[column.type], True,
                                     {"unit": column.unit, "title": column.title}) for column in columns])
    rows = list(tables.rows(name, tables.run_ids()))
    return spark.createDataFrame(rows, schema)


class _Complaints:
    """Adds lists of texts up, the first hundred; what Spark calls an AccumulatorParam."""

    MOST = 100

    def zero(self, _: List[str]) -> List[str]:
        return []

    def addInPlace(self, one: List[str], other: List[str]) -> List[str]:  # pylint: disable=invalid-name
        return (one + other)[:self.MOST]
