from . import profiler

__all__ = ["profiler"]
