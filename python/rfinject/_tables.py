"""The tables of `rfinject export --to sqlite`, with types and units: what Parquet and Spark get."""
import contextlib
import os
import sqlite3
import tempfile
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple, Union

from rfinject import _command

MAX_INTEGER = 2**63 - 1
NAMES = ("runs", "layers", "kernels", "lines", "stacks", "memory", "waits", "advice", "roofs", "alarms")


class Column(NamedTuple):
    """`type` is SQLite's: TEXT, INTEGER or REAL. `unit` and `title` may be empty."""

    name: str
    type: str
    unit: str
    title: str


class Tables:
    """A database that an export left; `runs` has a line for each trace and kind of run in it."""

    def __init__(self, database: sqlite3.Connection) -> None:
        self._database = database

    def columns(self, table: str) -> List[Column]:
        assert table in NAMES
        said = {name: (unit or "", title or "") for name, title, unit in
                self._database.execute('SELECT name, title, unit FROM columns WHERE "table" = ?', (table,))}
        return [Column(name, kind, *said.get(name, ("", "")))
                for _, name, kind, *_ in self._database.execute(f"PRAGMA table_info({table})")]

    def run_ids(self) -> List[int]:
        return [run_id for run_id, in self._database.execute("SELECT run_id FROM runs ORDER BY run_id")]

    def rows(self, table: str, run_ids: Sequence[int]) -> Iterator[Tuple[Any, ...]]:
        """The lines of these runs, in the order of the export, each value of its column's type."""
        as_type: Dict[str, Callable[[Any], Any]] = {"TEXT": str, "REAL": float, "INTEGER": _integer}
        types = [as_type[column.type] for column in self.columns(table)]
        for run_id in run_ids:
            for row in self._database.execute(f"SELECT * FROM {table} WHERE run_id = ? ORDER BY rowid", (run_id,)):
                yield tuple(value if value is None else kind(value) for kind, value in zip(types, row))


def _integer(value: Union[int, float]) -> int:
    # SQLite keeps a count that is beyond its integers as a real.
    return min(int(value), MAX_INTEGER)


@contextlib.contextmanager
def export(paths: Sequence[str], every_run: bool) -> Iterator[Tables]:
    """The tables of the traces in `paths`. With `every_run` a folder stands for all of its runs, and not for the newest."""
    with tempfile.TemporaryDirectory(prefix="rfinject-") as folder:
        file = os.path.join(folder, "tables.sqlite")
        options = ["--all"] if every_run else []
        _command.run(["export", "--to", "sqlite", *options, "-o", file, "--", *paths], makes=file)
        with contextlib.closing(sqlite3.connect(file)) as database:
            for table in NAMES:  # a cluster has thousands of runs, and tables are read run by run
                database.execute(f"CREATE INDEX {table}_of_run ON {table}(run_id)")
            yield Tables(database)
