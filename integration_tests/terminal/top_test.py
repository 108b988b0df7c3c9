#!/usr/bin/env python3
"""`rfinject top` in a real terminal, tmux's, over traces that grow meanwhile.

    top_test.py RFINJECT MAKE_TRACE [unittest's arguments]

Exits with 77 (skipped) where there is no tmux.
"""

import os
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

from terminal_test import RESNET, Terminal

FILE_HEADER = FRAME_HEADER = 16
KEYS = "q quit  s sort  b layer, op, kernel  p pause  h help"


class GrowingTrace:
    """A rank's trace that grows frame by frame: what it is, nine steps, the end."""

    STEPS, WHOLE = 9, 11

    def __init__(self, folder, rank):
        self.path = folder / f"rank{rank}.rfx"
        whole = folder.parent / f"whole{rank}"
        subprocess.run([MAKE_TRACE, f"rank:{rank}", whole], check=True)
        self.bytes = whole.read_bytes()
        self.ends = [FILE_HEADER]
        while self.ends[-1] < len(self.bytes):
            length, = struct.unpack_from("<I", self.bytes, self.ends[-1] + 4)
            self.ends.append(self.ends[-1] + FRAME_HEADER + length)
        self.size = 0

    def grow(self, frames, further=0):
        """Up to so many frames, and bytes of the next one."""
        size = self.ends[frames] + further
        with open(self.path, "ab") as file:
            file.write(self.bytes[self.size:size])
        self.size = size

    def is_old(self, seconds):
        """Gives the file the time at which it would have been written `seconds` ago."""
        os.utime(self.path, (time.time() - seconds,) * 2)


class Top(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-top-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name) / "run"
        self.folder.mkdir()
        self.terminal = Terminal(folder.name, height=40)
        self.addCleanup(self.terminal.close)

    def start(self, *words):
        """Starts it; the shell says afterwards what it returned."""
        self.terminal.run("true")  # clears the screen
        self.terminal.keys(f"echo before; {RFINJECT} top {' '.join(map(str, words)) or self.folder}; echo code $?", "Enter")
        self.terminal.await_screen(KEYS)

    def assert_restored(self, code):
        """What was there before is there again, and what is typed is seen."""
        screen = self.terminal.await_screen(rf"^code {code}$")
        self.assertIn("before", [line.removeprefix("$ ") for line in screen])  # the prompt may come late
        self.assertFalse([line for line in screen if KEYS in line])
        self.terminal.keys("echo so", "Enter")
        self.terminal.await_screen(r"^\$ echo so$")
        settings = "\n".join(self.terminal.run("stty -a"))
        for word in (" icanon", " echo "):
            self.assertIn(word, settings)

    def pid(self):
        pane, = self.terminal.call("display-message", "-p", "-t", "test", "#{pane_pid}").split()
        return int(pathlib.Path(f"/proc/{pane}/task/{pane}/children").read_text().split()[0])

    def test_keys(self):
        self.start(RESNET)
        self.terminal.await_screen(r"^By layer, by what could be won, a step +\(~ estimated\)$")
        self.terminal.await_screen(r"of GPU time; \d")  # the semicolon is in the last column
        self.terminal.keys("s")
        self.terminal.await_screen(r"^By layer, by time")
        self.terminal.keys("b")
        self.terminal.await_screen(r"^By op, by time")
        self.terminal.keys("Up", "b")  # an arrow is no key of ours, and nothing that comes with it
        self.terminal.await_screen(r"^By kernel, by time")
        self.terminal.keys("h")
        self.terminal.await_screen(r"^p  pause: ")
        self.terminal.keys("h")
        self.terminal.await_screen(r"^By kernel, by time")
        self.terminal.keys("p")
        self.terminal.await_screen(r"\(paused\)")
        self.terminal.keys("q")
        self.assert_restored(0)

    @staticmethod
    def fills(screen, width, height):
        if len(screen) != height or screen[-1] != KEYS[:width].rstrip():
            return False
        heads = [line for line in screen if line.startswith("  layer ")]
        totals = [line for line in screen if line.startswith("~ total ")]
        return height < 30 or bool(totals) and [line.endswith("to win") for line in heads] == [True]

    def test_resize(self):
        self.start(RESNET)
        for width, height in ((60, 30), (120, 50), (80, 30), (30, 5), (80, 40)):
            with self.subTest(width=width, height=height):
                self.terminal.call("resize-window", "-t", "test", "-x", str(width), "-y", str(height))
                # The keys' line is the last one, and where there is room the table ends above it.
                end = time.monotonic() + 30
                while not self.fills(self.terminal.screen(), width, height) and time.monotonic() < end:
                    time.sleep(0.02)
                screen = self.terminal.screen()
                self.assertTrue(self.fills(screen, width, height), "\n".join(screen))
        self.terminal.keys("q")
        self.assert_restored(0)

    def test_a_small_screen_has_rows(self):
        self.start(RESNET)
        for width, height in ((40, 20), (80, 24)):
            with self.subTest(width=width, height=height):
                self.terminal.call("resize-window", "-t", "test", "-x", str(width), "-y", str(height))
                self.terminal.await_screen(f"^{KEYS[:width].rstrip()}")
                end = time.monotonic() + 30
                screen = []
                while time.monotonic() < end and not (len(screen) == height and any(
                        line.startswith("~ total ") for line in screen)):
                    screen = self.terminal.screen()
                heads = [number for number, line in enumerate(screen) if line.startswith("  layer ")]
                self.assertEqual(len(heads), 1, "\n".join(screen))
                self.assertRegex(screen[heads[0] + 1], r"^~ \S*\w", "\n".join(screen))
                self.assertNotIn("total", screen[heads[0] + 1])
                self.assertIn("main.py", screen[0])  # what it shows is said in any case
                # A number that lost its unit's letters would be another one: "9.44 us" as "9.4s".
                self.assertTrue(screen[heads[0]].endswith("to win"), screen[heads[0]])
                self.assertRegex(screen[heads[0] + 1], r" [0-9.]+ [num]?s$")
        self.terminal.keys("q")
        self.assert_restored(0)

    def test_signals_restore_the_terminal(self):
        for name in ("INT", "TERM", "HUP"):
            with self.subTest(name):
                self.start(RESNET)
                number = getattr(signal, "SIG" + name)
                if name == "INT":
                    self.terminal.keys("C-c")
                    # dash ends the list of commands with the one that was interrupted.
                    self.terminal.await_screen(r"^\$$")
                    self.terminal.keys("echo code $?", "Enter")
                else:
                    os.kill(self.pid(), number)
                self.assert_restored(128 + number)

    def test_stop_and_go_on(self):
        self.start(RESNET)
        self.terminal.keys("C-z")
        self.terminal.await_screen("Stopped")
        # The shell may have read the command before it wrote its prompt.
        self.assertRegex("\n".join(self.terminal.screen()), r"(?m)^(\$ )?before$")
        self.terminal.keys("fg", "Enter")
        self.terminal.await_screen(KEYS)
        self.terminal.keys("q")
        self.terminal.await_screen("Stopped")  # the shell's own screen

    def test_a_job_that_grows_loses_a_rank_and_ends(self):
        ranks = [GrowingTrace(self.folder, rank) for rank in range(2)]
        for rank in ranks:
            rank.grow(3)
        self.start()
        self.terminal.await_screen(r"train.py: running for \d+ s$")
        self.terminal.await_screen(r"^Ranks: 2, 2 writes$")
        self.terminal.await_screen(r"^ *0 +writes +\d s +2 +1\d\.\d ms")
        # Another step of each, and a half of the next.
        ranks[0].grow(4, further=20)
        ranks[1].grow(4)
        self.terminal.await_screen(r"^ *1 +writes +\d s +3 +1\d\.\d ms")
        self.terminal.await_screen(r"^The last \d steps? took ")
        # Rank 1 is killed: its trace gets no end, and nothing more.
        ranks[0].grow(6)
        ranks[1].is_old(60)
        self.terminal.await_screen(r"^Rank 1 has written nothing for \d+ (s|min \d+ s) and has not said that it ended")
        self.terminal.await_screen(r"^Ranks: 2, 1 writes, 1 quiet$")
        ranks[0].grow(GrowingTrace.WHOLE)
        self.terminal.await_screen(r"^Ranks: 2, 1 ended, 1 quiet$")
        self.terminal.await_screen(r"train.py: nothing is written any more$")
        # The rank was only held up.
        ranks[1].grow(GrowingTrace.WHOLE)
        self.terminal.await_screen(r"^Ranks: 2, 2 ended$")
        screen = self.terminal.await_screen(r"train.py: ended; it began at ")
        self.assertFalse([line for line in screen if "written nothing" in line or "Damaged" in line], screen)
        self.terminal.keys("q")
        self.assert_restored(0)

    def test_traces_that_go_end_it(self):
        trace = GrowingTrace(self.folder, 0)
        trace.grow(3)
        self.start()
        shutil.rmtree(self.folder)
        self.terminal.await_screen(r"^rfinject: .*/run: no such file or folder$")
        self.assert_restored(1)

    def test_colours(self):
        def sequences():
            return "\033[1m" in self.terminal.call("capture-pane", "-p", "-e", "-t", "test")
        self.start(RESNET)
        self.assertTrue(sequences())
        self.terminal.keys("q")
        self.assert_restored(0)
        self.terminal.keys("export NO_COLOR=1; clear", "Enter")
        self.start(RESNET)
        self.assertFalse(sequences())
        self.terminal.keys("q")
        self.assert_restored(0)


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all(os.access(word, os.X_OK) for word in sys.argv[1:3]):
        sys.exit(__doc__)
    RFINJECT, MAKE_TRACE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    if shutil.which("tmux") is None:
        print("skipped: no tmux; scripts/setup installs it")
        sys.exit(77)
    unittest.main(verbosity=2)
