"""What traces say, as Python objects."""
import base64
import html
import json
import os
import warnings
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Union

from rfinject import _command

if TYPE_CHECKING:
    import pandas
    import pyarrow

Path = Union[str, "os.PathLike[str]"]
Row = Dict[str, Any]

# How the command ends when an option has a value that it does not know.
MISUSED = 2
# The columns that say which report a row is of, in front of the columns of `rfinject report --format csv`.
OF_REPORT = ("run", "device", "steps")
OPENING_LINES = 5


def load(path: Union[None, Path, List[Path]] = None) -> "Profile":
    """The profile of a trace, of the newest run in a folder, or of several of them.

    Without a path it is the latest run below the working folder, `rfinject-out/latest`. Raises RfinjectError with the
    command's own line when there is nothing that can be read, and for a path that is empty.
    """
    if path is None:
        path = "rfinject-out/latest"
    paths = path if isinstance(path, list) else [path]
    if not paths:
        raise ValueError("no trace is named")
    return Profile([_command.absolute(one) for one in paths])


class Profile:
    """Traces as they were when they were loaded: reports, rows and pictures of them.

    A profile of several runs (two GPUs, training and validation) has a report each; `summary` is the first one's.
    """

    def __init__(self, paths: List[str]) -> None:
        self.paths = paths
        self._documents: Dict[str, Dict[str, Any]] = {}
        self._picture: Optional[str] = None
        self.document()

    def document(self, by: str = "layer") -> Dict[str, Any]:
        """The JSON of `rfinject report --by BY`, any of its views. Asked for once; an interface that only grows.

        Raises ValueError, with the command's list of its views, where it has none of that name.
        """
        if by not in self._documents:
            try:
                text = _command.run(["report", "--format", "json", "--by", by, "--", *self.paths])
            except _command.RfinjectError as error:
                # Of all that the command is given, only BY can be wrong in form: paths stand behind the "--".
                if error.code == MISUSED:
                    raise ValueError(str(error)) from error
                raise
            self._documents[by] = json.loads(text)
        return self._documents[by]

    def _reports(self, by: str) -> List[Dict[str, Any]]:
        document = self.document(by)
        return list(document["reports"]) if "reports" in document else [document]

    @property
    def reports(self) -> List[Dict[str, Any]]:
        """A dictionary each, schema rfinject.report/1."""
        return self._reports("layer")

    @property
    def summary(self) -> Dict[str, Any]:
        """Sums and ratios of the first report, units in the names."""
        return dict(self.reports[0]["summary"])

    @property
    def alarms(self) -> List[Dict[str, Any]]:
        """The alarms of all reports, in their order; `rfinject explain R005` says what one means."""
        return [alarm for report in self.reports for alarm in report["alarms"]]

    @property
    def opening(self) -> List[str]:
        """The lines that every report begins with: how long, held back by what, and what would win most."""
        return [line for report in self.reports for line in report["summary"]["headline"][:OPENING_LINES]]

    def rows(self, by: str = "layer") -> List[Row]:
        """The rows of `rfinject report --by BY`, BY any view that the command has; `rfinject report -h` lists them.

        Names and units are those of its CSV, and what has no value is None. Sums run over all measured steps, where a
        name does not say otherwise. `run` counts the reports from 1.
        """
        document = self.document(by)
        if by == "run":
            return [dict(row) for row in document["runs"]]
        rows: List[Row] = []
        if "runs" in document:
            for number, run in enumerate(document["runs"], 1):
                # What a run says of itself stands beside its rows. A name that both have means the row's.
                of_run = {name: value for name, value in run.items() if not isinstance(value, (list, dict))}
                rows += [{"run": number, **of_run, **row} for row in run.get("rows", run.get("stacks"))]
            return rows
        for number, report in enumerate(self._reports(by), 1):
            of_report = dict(zip(OF_REPORT, (number, report["device"]["name"], report["steps"])))
            rows += [{**of_report, **row} for row in report["rows"]]
        return rows

    def to_pandas(self, by: str = "layer") -> "pandas.DataFrame":
        """The rows as a pandas.DataFrame. Needs pandas: pip install rfinject[pandas]."""
        try:
            import pandas
        except ImportError as error:
            raise ImportError("to_pandas needs pandas: pip install rfinject[pandas]") from error
        return pandas.DataFrame(self.rows(by))

    def to_arrow(self, by: str = "layer") -> "pyarrow.Table":
        """The rows as a pyarrow.Table. Needs pyarrow: pip install rfinject[parquet]."""
        try:
            import pyarrow
        except ImportError as error:
            raise ImportError("to_arrow needs pyarrow: pip install rfinject[parquet]") from error
        rows = self.rows(by)
        names = list(dict.fromkeys(name for row in rows for name in row))
        return pyarrow.table({name: [row.get(name) for row in rows] for name in names})

    def svg(self) -> str:
        """The roofline as an SVG document."""
        if self._picture is None:
            self._picture = _command.run(["report", "--format", "svg", "--", *self.paths])
        return self._picture

    def log_to(self, writer: Any, step: Optional[int] = None, prefix: str = "rfinject") -> Dict[str, float]:
        """Logs the numbers of the summary, and time, FLOP and bytes of each phase, as scalars; returns them by tag.

        `writer` has add_scalar(tag, value, step), as a SummaryWriter of TensorBoard has it, or log(numbers, step=step), as
        wandb and its runs have it. Reports after the first have their number after the prefix.
        """
        scalars: Dict[str, float] = {}
        for number, report in enumerate(self._reports("phase"), 1):
            place = prefix if number == 1 else f"{prefix}/{number}"
            for name, value in report["summary"].items():
                if _is_number(value):
                    scalars[f"{place}/{name}"] = value
            for row in report["rows"]:
                # A row in no model is the work of a phase outside of modules.
                of_row = "/".join(word for word in (place, row["phase"], row["model"]) if word)
                for name in ("time_ns", "flop", "dram_bytes", "attainable_share"):
                    if _is_number(row.get(name)):
                        scalars[f"{of_row}/{name}"] = row[name]
        if callable(getattr(writer, "add_scalar", None)):
            for tag, value in scalars.items():
                writer.add_scalar(tag, value, step)
        elif callable(getattr(writer, "log", None)):
            if step is None:
                writer.log(scalars)
            else:
                writer.log(scalars, step=step)
        else:
            raise TypeError(f"log_to wants something with add_scalar or log, not {type(writer).__name__}")
        return scalars

    def __repr__(self) -> str:
        return "\n".join(self.opening)

    def _repr_html_(self) -> str:
        """The opening lines and the picture. The picture is an image of its own, so that its styles stay in it."""
        lines = "".join(f"<div>{html.escape(line)}</div>" for line in self.opening)
        try:
            picture = base64.b64encode(self.svg().encode()).decode()
        except _command.RfinjectError as error:
            warnings.warn(str(error), _command.RfinjectWarning, stacklevel=2)
            return lines
        return f'{lines}<img alt="roofline" style="max-width:100%" src="data:image/svg+xml;base64,{picture}"/>'


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
