"""rfinject from Python: how far each layer of a training run is from what its GPU could do.

    run = rfinject.load("rfinject-out/latest/")     # traces that `rfinject python train.py` left
    run.summary["step_gpu_time_ns"], run.rows(by="op"), run.to_pandas(by="kernel")

    with rfinject.range("loss"):                    # in a program that is profiled; does nothing in any other
        loss = ((output - target) ** 2).mean()

Everything here is made of what the command `rfinject` prints; docs/use/PYTHON.md says more. Nothing but the standard
library is needed to import it: pandas, pyarrow, IPython and PySpark are asked for where they are used.
"""
from rfinject._command import RfinjectError, RfinjectWarning
from rfinject._profile import Profile, load
from rfinject._program import is_injected, range, start, stop  # pylint: disable=redefined-builtin

__all__ = ["Profile", "RfinjectError", "RfinjectWarning", "is_injected", "load", "range", "start", "stop"]


def load_ipython_extension(shell: object) -> None:
    """`%load_ext rfinject` in IPython or Jupyter: brings the cell magic %%rfinject."""
    from rfinject import _magic
    _magic.register(shell)
