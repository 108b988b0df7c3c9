"""Traces as a dataset of Parquet files, partitioned by job and day: what `rfinject export --to parquet` runs.

    python3 -m rfinject.parquet [--all] [--force] -o FOLDER TRACE|FOLDER...

FOLDER/runs/job=JOB/day=YYYY-MM-DD/*.parquet, and the same for each other table: the tables, names and units are those of
`--to sqlite` (docs/use/IMPORT_AND_EXPORT.md), written with pyarrow. Only `run_id` differs: it tells the runs of all exports
into a folder apart.
"""
import argparse
import contextlib
import datetime
import hashlib
import os
import shutil
import sys
import warnings
from typing import Any, Dict, List, Optional, Sequence, Set, Tuple
from urllib.parse import quote

from rfinject import _command, _tables

# The name that Hive, pyarrow, DuckDB and Spark give a partition without a value.
NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
# The longest name of a folder, in bytes; file systems allow 255.
MAX_NAME = 200
Partition = Tuple[Optional[str], Optional[str]]


def write(paths: Sequence[str], folder: str, every_run: bool = False, force: bool = False) -> int:
    """Adds the runs of traces to the dataset in `folder`, and returns how many these are.

    Runs that are there already are left out. `force`: the partitions (job and day) that get something are made anew, which
    takes what else was in them. Raises ImportError without pyarrow, RfinjectError with the command's line, and OSError.
    """
    _pyarrow()
    with _tables.export([_command.absolute(path) for path in paths], every_run) as tables:
        ids: Dict[int, str] = {}
        partitions: Dict[Partition, List[int]] = {}
        for run in _runs(tables):
            ids[run["run_id"]] = _identity(run, set(ids.values()))
            partitions.setdefault((run["job"], _day(run["started_unix_ns"])), []).append(run["run_id"])
        added = 0
        for partition, runs in partitions.items():
            if force:
                for table in _tables.NAMES:
                    shutil.rmtree(_place(folder, table, partition), ignore_errors=True)
            known = _known(_place(folder, "runs", partition))
            new = [run for run in runs if ids[run] not in known]
            if new:
                # `runs` is written last: a run that it does not name does not exist yet, if this ends half way.
                for table in (*_tables.NAMES[1:], _tables.NAMES[0]):
                    _write_part(tables, table, partition, new, ids, folder)
            added += len(new)
    return added


def _pyarrow() -> Any:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ImportError("Parquet needs pyarrow: pip install rfinject[parquet]") from error
    return pyarrow


def _runs(tables: _tables.Tables) -> List[Dict[str, Any]]:
    names = [column.name for column in tables.columns("runs")]
    return [dict(zip(names, row)) for row in tables.rows("runs", tables.run_ids())]


def _identity(run: Dict[str, Any], taken: Set[str]) -> str:
    """A name for a run that is the same whenever the trace is exported, and however long it has grown: the trace's
    id, and which of its runs this is."""
    # Traces of older versions, and imports that were never merged, have no id.
    base = hashlib.sha256((run["trace_id"] or run["path"]).encode()).hexdigest()[:16]
    number = 1
    while f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def _day(started_unix_ns: Optional[int]) -> Optional[str]:
    if started_unix_ns is None:
        return None
    begin = datetime.datetime(1970, 1, 1) + datetime.timedelta(microseconds=started_unix_ns // 1000)
    return begin.strftime("%Y-%m-%d")


def _folder_name(key: str, value: Optional[str]) -> str:
    name = f"{key}={NO_VALUE if value is None else quote(value, safe='')}"
    return name if len(name) <= MAX_NAME else f"{name[:MAX_NAME - 20]}~{hashlib.sha256(name.encode()).hexdigest()[:16]}"


def _place(folder: str, table: str, partition: Partition) -> str:
    return os.path.join(folder, table, _folder_name("job", partition[0]), _folder_name("day", partition[1]))


def _known(place: str) -> Set[str]:
    """The ids of the runs in a partition."""
    pyarrow = _pyarrow()
    known: Set[str] = set()
    if os.path.isdir(place):
        for name in os.listdir(place):
            if name.endswith(".parquet"):
                with open(os.path.join(place, name), "rb") as file:
                    known.update(pyarrow.parquet.ParquetFile(file).read(columns=["run_id"])["run_id"].to_pylist())
    return known


def _write_part(tables: _tables.Tables, table: str, partition: Partition, runs: List[int], ids: Dict[int, str],
                folder: str) -> None:
    pyarrow = _pyarrow()
    types = {"TEXT": pyarrow.string(), "INTEGER": pyarrow.int64(), "REAL": pyarrow.float64()}
    columns = tables.columns(table)
    rows = list(tables.rows(table, runs))
    fields, values = [], []
    for index, column in enumerate(columns):
        of_column = [row[index] for row in rows]
        kind = types[column.type]
        if column.name == "job":
            continue  # the partition says it
        if column.name == "run_id":
            kind, of_column = pyarrow.string(), [ids[value] for value in of_column]
        said = {name: text for name, text in (("unit", column.unit), ("title", column.title)) if text}
        fields.append(pyarrow.field(column.name, kind, metadata=said))
        values.append(pyarrow.array(of_column, kind))
    part = pyarrow.Table.from_arrays(values, schema=pyarrow.schema(fields))
    place = _place(folder, table, partition)
    os.makedirs(place, mode=0o700, exist_ok=True)
    name = hashlib.sha256("\n".join(ids[run] for run in runs).encode()).hexdigest()[:16]
    path = os.path.join(place, f"{name}.parquet")
    # The file appears as a whole or not at all, and only the user may read it.
    beside = f"{path}.part"
    with contextlib.suppress(FileNotFoundError):
        os.unlink(beside)
    with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        pyarrow.parquet.write_table(part, file)
    os.replace(beside, path)


def main(arguments: Optional[List[str]] = None) -> int:
    """The command line above. Returns the exit code: 0; 1 where something could not be read or written."""
    parser = argparse.ArgumentParser(prog="rfinject export --to parquet", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--all", action="store_true", help="every run in a folder, not its newest")
    parser.add_argument("--force", action="store_true", help="make the partitions that get something anew")
    parser.add_argument("-o", "--output", required=True, metavar="FOLDER", help="the dataset")
    parser.add_argument("traces", nargs="+", metavar="TRACE|FOLDER")
    options = parser.parse_args(arguments)
    code = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            added = write(options.traces, options.output, options.all, options.force)
            if added == 0:
                print(f"rfinject: {options.output}: all of these runs are in it already; --force makes their partitions anew",
                      file=sys.stderr)
        except (ImportError, OSError, _command.RfinjectError) as error:
            print(f"rfinject: {error}", file=sys.stderr)
            code = 1
    for warning in caught:
        print(f"rfinject: {warning.message}", file=sys.stderr)
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
