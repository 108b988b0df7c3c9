"""What PyTorch's device threads do to a program that ends right after its last backward.

The thread that ran the backward lets go of the last graph after the program has been told that it is done. Where that is
the last owner of a Python object, it asks for the GIL; if the interpreter is being finalised by then, CPython ends the
thread by pthread_exit(), whose unwinding meets a noexcept function of torch's, and the process aborts. Nothing of
rfinject's is on that stack, a machine whose cores are busy shows it in a few runs of a hundred, and a real GPU has the
same threads. rfinject waits for them when Python begins to end (injector/torch/engine_threads.h), which ends most of it:
Python before 3.9, and programs that do not end by Python's own way, are left, and tests run such a program again. Jobs of gloo's process group have ended with the same words, in a rank of one
job of hundreds, and none of 120 single ranks did without rfinject nor with it; its threads are taken to do the same.
"""

import glob
import os
import subprocess

MESSAGE = "terminate called without an active exception"
ATTEMPTS = 3


def repeated(run, forget):
    """What run() returns, a subprocess.CompletedProcess with texts; again where torch ended the program so, after forget()
    has removed what that attempt left."""
    for attempt in range(ATTEMPTS):
        result = run()
        if result.returncode == 0 or MESSAGE not in result.stderr or attempt + 1 == ATTEMPTS:
            return result
        forget()
    return None


def run(command, traces, **options):
    """subprocess.run with texts; again where torch ended the program so, without the traces that it left in `traces`."""
    def forget():
        for path in glob.glob(os.path.join(traces, "*.rfx")):
            os.unlink(path)

    return repeated(lambda: subprocess.run(command, capture_output=True, text=True, **options), forget)
