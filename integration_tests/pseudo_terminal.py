"""Programs whose output goes to a terminal."""
import os
import pty
import select
import subprocess


def run(words, stream, timeout_s, **options):
    """Runs a command whose `stream`, "stdout" or "stderr", is a terminal; `options` are subprocess.Popen's.

    Returns the finished process, whose streams hold bytes: the terminal's, with its line ends, and those of pipes."""
    terminal, end = pty.openpty()
    process = subprocess.Popen([str(word) for word in words], **{stream: end}, **options)
    os.close(end)
    shown = b""
    while select.select([terminal], [], [], timeout_s)[0]:
        try:
            part = os.read(terminal, 1 << 16)
        except OSError:  # EIO: the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(terminal)
    out, err = process.communicate(timeout=timeout_s)
    said = {"stdout": out, "stderr": err, stream: shown}
    return subprocess.CompletedProcess(process.args, process.returncode, **said)
