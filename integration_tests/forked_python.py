"""An interpreter that has imported torch already, for commands that start the interpreter of a program themselves.

ForkedPython(python).path names an executable. Started by `rfinject`, it hands its arguments, environment, folder, streams
and namespaces to a process that the library has come into with the same settings, which runs the program in a child; so
only the first program of some settings imports torch. What the library does when torch is imported it does in that
process: the child finds the file of RFINJECT_TRY in its environment, and runs it in front of the program. Traces are where
RFINJECT_OUTPUT of the program says. Who tests how a program starts, or how a change gets into it, takes `python` itself.
"""
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading

# A message is one packet: JSON, and with it the three streams.
MOST_BYTES = 1 << 17

# What is started in the program's place. It ends as the program did.
CLIENT = """#!{python} -IS
import json, os, signal, socket, sys
server = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
server.connect({path!r})
request = {{"pid": os.getpid(), "folder": os.getcwd(), "arguments": sys.argv[1:], "variables": dict(os.environ)}}
socket.send_fds(server, [json.dumps(request).encode()], [0, 1, 2])
status = json.loads(server.recv(100))
if os.WIFSIGNALED(status):
    signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
    os.kill(os.getpid(), os.WTERMSIG(status))
os._exit(os.WEXITSTATUS(status))
"""

# Runs programs, which it is told of by packets, each in a child of its own. The frames of all this have a name that begins
# with "<", as changes expect of what is not the program's.
SERVER = """
import atexit, ctypes, gc, json, os, socket, sys, tempfile
import torch
try:
    import torch._dynamo  # as the first step of an optimizer does
except ImportError:  # before torch 2
    pass
gc.freeze()  # else a collection in a child copies every page that has an object of torch's
own = socket.socket(fileno=int(sys.argv[1]))
while True:
    text, streams, _, _ = socket.recv_fds(own, int(sys.argv[2]), 3)
    if not text:
        os._exit(0)
    child = os.fork()
    if child == 0:
        break
    for stream in streams:
        os.close(stream)
    own.send(json.dumps(os.waitpid(child, 0)[1]).encode())
own.close()
request = json.loads(text)
for number, stream in enumerate(streams):
    os.dup2(stream, number)
    os.close(stream)
for kind in ("user", "mnt"):
    theirs = "/proc/{}/ns/{}".format(request["pid"], kind)
    if os.readlink(theirs) != os.readlink("/proc/self/ns/" + kind):
        namespace = os.open(theirs, os.O_RDONLY)
        if ctypes.CDLL(None, use_errno=True).setns(namespace, 0) != 0:
            sys.exit("setns: " + os.strerror(ctypes.get_errno()))
        os.close(namespace)
os.chdir(request["folder"])
os.environ.clear()
os.environ.update(request["variables"])
tempfile.tempdir = None  # which TMPDIR names
sys.argv = request["arguments"]
sys.path[0] = os.path.dirname(os.path.abspath(sys.argv[0]))
code = 0
try:
    if os.environ.get("RFINJECT_TRY"):
        with open(os.environ["RFINJECT_TRY"]) as file:
            exec(compile(file.read(), "<rfinject>", "exec"), {})
    with open(sys.argv[0]) as file:
        exec(compile(file.read(), sys.argv[0], "exec"), {"__name__": "__main__", "__file__": sys.argv[0]})
except SystemExit as end:
    code = end.code if isinstance(end.code, int) else end.code is not None
except BaseException:
    sys.excepthook(*sys.exc_info())
    code = 1
atexit._run_exitfuncs()
sys.stdout.flush()
sys.stderr.flush()
os._exit(code)  # as a child of multiprocessing ends: what Python and torch would take down costs more than most programs
"""

# Variables of rfinject's that each run has of its own; all others are settings, which a process reads once.
OF_A_RUN = ("RFINJECT_JOB", "RFINJECT_LATEST", "RFINJECT_LAUNCHED", "RFINJECT_OUTPUT", "RFINJECT_TRY")
OUTPUT = "FORKED_PYTHON_OUTPUT"


class ForkedPython:
    def __init__(self, python):
        self.python, self.servers = python, {}
        self.folder = tempfile.mkdtemp(prefix="rfinject-python-")
        self.path = os.path.join(self.folder, os.path.basename(python))
        name = os.path.join(self.folder, "socket")
        with open(self.path, "w") as file:
            file.write(CLIENT.format(python=sys.executable, path=name))
        os.chmod(self.path, 0o700)
        self.listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listening.bind(name)
        self.listening.listen()
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def _serve(self):
        while True:
            try:
                client, _ = self.listening.accept()
            except OSError:  # it was closed
                return
            with client:
                text, streams, _, _ = socket.recv_fds(client, MOST_BYTES, 3)
                request = json.loads(text)
                request["variables"][OUTPUT] = request["variables"].get("RFINJECT_OUTPUT", "").strip("/")
                server = self._server(request["variables"])
                socket.send_fds(server, [json.dumps(request).encode()], streams)
                for stream in streams:
                    os.close(stream)
                client.send(server.recv(100))

    def _server(self, variables):
        """The socket of the process that has the settings of these variables."""
        settings = {key: value for key, value in variables.items()
                    if key.startswith(("RFINJECT", "CUDA_")) and key not in OF_A_RUN}
        key = json.dumps(settings, sort_keys=True)
        if key not in self.servers:
            ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            own = {key: value for key, value in variables.items() if key not in OF_A_RUN}
            own["RFINJECT_OUTPUT"] = "/%q{" + OUTPUT + "}/"
            with theirs:
                process = subprocess.Popen([self.python, "-c", SERVER, str(theirs.fileno()), str(MOST_BYTES)], env=own,
                                           cwd=self.folder, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL,
                                           stdout=subprocess.DEVNULL)
            self.servers[key] = ours, process
        return self.servers[key][0]

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        self.thread.join()
        for ours, process in self.servers.values():
            ours.close()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
