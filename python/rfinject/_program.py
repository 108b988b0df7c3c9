"""What a program can tell rfinject while it is profiled. In a program that is not profiled, all of it does nothing."""
import contextlib
import ctypes
from types import TracebackType
from typing import Any, List, Optional, Type


class _Library:
    """The functions that librfinject.so offers, where it is preloaded into this process."""

    def __init__(self) -> None:
        self.begin: Any = None
        self.end: Any = None
        self.measure: Any = None
        try:
            # PyDLL keeps the GIL during the calls, each of which takes about a microsecond.
            process = ctypes.PyDLL(None)
            begin, end, measure = process.rfinject_range_begin, process.rfinject_range_end, process.rfinject_measure
        except (AttributeError, OSError):
            return
        begin.argtypes, begin.restype = [ctypes.c_char_p], ctypes.c_uint64
        end.argtypes, end.restype = [ctypes.c_uint64], None
        measure.argtypes, measure.restype = [ctypes.c_int], None
        self.begin, self.end, self.measure = begin, end, measure


_library = _Library()


def is_injected() -> bool:
    """Whether this process runs under `rfinject`."""
    return _library.begin is not None


def start() -> None:
    """Measures again from the next step on, after stop() or in a program that was started with --start-stopped."""
    if _library.measure is not None:
        _library.measure(1)


def stop() -> None:
    """Measures no step that begins after this, until start(). Its steps are in no sum, and reports say how many."""
    if _library.measure is not None:
        _library.measure(0)


class range(contextlib.ContextDecorator):  # pylint: disable=redefined-builtin,invalid-name
    """Names what runs outside of modules, and its backward, in reports: `with rfinject.range("loss"):`,
    `@rfinject.range(...)`.

    It is shown as a layer, beside models. Ranges nest; modules that are called inside keep their own names; inside of a
    module a range does nothing. It ends on the thread that began it.
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str) or not name:
            raise TypeError("a range wants a name")
        self._name = name.encode("utf-8", "replace")
        self._open: List[int] = []

    def __enter__(self) -> "range":
        if _library.begin is not None:
            self._open.append(_library.begin(self._name))
        return self

    def __exit__(self, kind: Optional[Type[BaseException]], error: Optional[BaseException],
                 traceback: Optional[TracebackType]) -> None:
        if _library.end is not None and self._open:
            _library.end(self._open.pop())
