"""Processes that `rfinject attach` refuses: one line each, exit code 1, and the process is as it was."""

import os
import signal
import struct
import subprocess
import unittest

from processes import PYTHON, TestCase

# Programs of a few bytes that wait for a signal: `pause` in a loop.
PAUSE_64 = bytes.fromhex("b822000000" "0f05" "ebf7")   # mov eax, 34; syscall; jmp
PAUSE_32 = bytes.fromhex("b81d000000" "cd80" "ebf7")   # mov eax, 29; int 0x80; jmp
BASE = 0x400000


def elf64(code):
    start = 64 + 56
    header = b"\x7fELF" + bytes([2, 1, 1]) + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, BASE + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, BASE, BASE, start + len(code), start + len(code), 4096) + code


def elf32(code):
    start = 52 + 32
    header = b"\x7fELF" + bytes([1, 1, 1]) + bytes(9) + struct.pack("<HHIIIIIHHHHHH", 2, 3, 1, BASE + start, 52, 0, 0, 52, 32, 1, 0, 0, 0)
    return header + struct.pack("<IIIIIIII", 1, 0, BASE, BASE, start + len(code), start + len(code), 5, 4096) + code


class Refusals(TestCase):

    def refused(self, pid, *words, verb="attach", **options):
        said = self.cli(verb, *words, pid, expect=1, **options).stderr
        self.assertEqual(said.count("\n"), 1, said)
        self.assertIn(str(pid), said)
        return said

    def machine_code(self, name, program):
        path = self.folder / name
        path.write_bytes(program)
        path.chmod(0o755)
        return self.start(path)

    def test_no_such_process(self):
        child = os.fork()
        if child == 0:
            os._exit(0)
        os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
        self.assertIn("has ended", self.refused(child))  # nobody has asked for its exit code: a zombie
        os.waitpid(child, 0)
        self.assertIn("there is no process", self.refused(child))

    def test_neither_python_nor_libtorch(self):
        sleep = self.start("sleep", 60)
        self.assertIn("has not loaded PyTorch", self.refused(sleep.pid))
        self.assertIsNone(sleep.poll())

    def test_no_torch(self):
        python = self.start(PYTHON, "-c", "print(1, flush=True); import time; time.sleep(60)")
        python.stdout.readline()
        self.assertIn("has not loaded PyTorch", self.refused(python.pid))
        self.assertIsNone(python.poll())

    def test_stopped(self):
        sleep = self.start("sleep", 60)
        sleep.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, sleep.pid, os.WSTOPPED | os.WNOWAIT)
        self.assertIn("is stopped", self.refused(sleep.pid))

    def test_static_binary(self):
        process = self.machine_code("static", elf64(PAUSE_64))
        self.assertIn("is a static binary", self.refused(process.pid))
        self.assertIsNone(process.poll())

    def test_32_bit_binary(self):
        try:
            process = self.machine_code("small", elf32(PAUSE_32))
        except OSError:
            print("note: this kernel runs no 32-bit programs")
            self.skipTest("this kernel runs no 32-bit programs")
        self.assertIn("is a 32-bit one", self.refused(process.pid))
        self.assertIsNone(process.poll())

    def test_another_users(self):
        if os.geteuid() != 0:
            print("note: only root can be another user's victim here")
            self.skipTest("needs root")
        sleep = self.start("sleep", 60)
        # The second has the right from the kernel's point of view.
        for rights in ([], ["--inh-caps", "+sys_ptrace", "--ambient-caps", "+sys_ptrace"]):
            other = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", *rights, os.environ["RFINJECT"]]
            if subprocess.run([*other, "version"], capture_output=True, cwd="/").returncode != 0:
                print("note: another user cannot reach the command, or be given a capability")
                self.skipTest("another user cannot reach the command, or be given a capability")
            said = subprocess.run([*other, "attach", str(sleep.pid)], cwd="/", capture_output=True, text=True,
                                  env={**self.environment, "HOME": "/"})
            self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said.stderr)
            self.assertIn("is another user's", said.stderr)

    def refused_under(self, *prefix, **options):
        """What is said to a command that runs with fewer rights."""
        if subprocess.run([*prefix, "true"], capture_output=True, **options).returncode != 0:
            print(f"note: {prefix[0] if prefix else 'a filter'} is not allowed here")
            self.skipTest("rights cannot be taken away here")
        sleep = self.start("sleep", 60)
        said = subprocess.run([*prefix, os.environ["RFINJECT"], "attach", str(sleep.pid)], cwd=self.folder, env=self.environment,
                              capture_output=True, text=True, **options)
        self.assertEqual((said.returncode, said.stderr.count("\n")), (1, 1), said.stderr)
        self.assertIn("rfinject --start-stopped PROGRAM", said.stderr)
        self.assertIsNone(sleep.poll())
        return said.stderr

    def test_without_the_capability(self):
        said = self.refused_under("capsh", "--drop=cap_sys_ptrace", "--", "-c", '"$@"', "capsh")
        self.assertIn("--cap-add=SYS_PTRACE", said)

    def test_yama(self):
        """The file says what Yama's says, and the capability is missing: so that the kernel refuses as Yama would."""
        for level, way in (("1", "sysctl kernel.yama.ptrace_scope=0"), ("2", "sudo rfinject attach"),
                           ("3", "stays until the machine is started anew")):
            script = ("mount -t tmpfs none /proc/sys/kernel && mkdir /proc/sys/kernel/yama && "
                      f"echo {level} >/proc/sys/kernel/yama/ptrace_scope && exec capsh --drop=cap_sys_ptrace -- -c '\"$@\"' capsh \"$@\"")
            said = self.refused_under("unshare", "--mount", "sh", "-c", script, "sh")
            self.assertIn(f"kernel.yama.ptrace_scope is {level}", said)
            self.assertIn(way, said)

    def test_traced_by_another(self):
        program = ("import ctypes, os, sys, time\n"
                   "libc = ctypes.CDLL(None)\n"
                   "print(libc.ptrace(0, 0, 0, 0), flush=True)\n"  # PTRACE_TRACEME: this test is its tracer
                   "time.sleep(60)\n")
        python = self.start(PYTHON, "-c", program)
        if python.stdout.readline() != "0\n":
            self.skipTest("this test may trace nothing itself")
        self.assertIn("is traced by process", self.refused(python.pid))

    def test_words(self):
        for words in (["attach"], ["attach", "one"], ["attach", "0"], ["detach"], ["attach", "1", "--report"],
                      ["attach", "1", "--for", "soon"], ["attach", "1", "--wait", "x"]):
            self.assertIn("rfinject", self.cli(*words, expect=2).stderr)


if __name__ == "__main__":
    unittest.main()
