#!/usr/bin/env python3
"""What a user sees in a terminal: rfinject in a real one, tmux's, with the screen read back as text.

    terminal_test.py RFINJECT MAKE_TRACE [unittest's arguments]

One tmux server with a socket of its own serves all tests; a test that wants another width resizes its window. Exits with
77 (skipped) where there is no tmux.
"""

import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "studies"))
import make_fixtures  # noqa: E402

TRACES = pathlib.Path(__file__).resolve().parents[1] / "golden" / "traces"
RESNET = str(TRACES / "est-resnet18.rfx")
# ResNet-18 of batch 8, three steps, as scripts/demo runs it, and the same with a PyTorch for CUDA on the virtual GPU.
OWN = pathlib.Path(__file__).resolve().parent / "traces"
DEMO, VIRTUAL = str(OWN / "demo-v100.rfx"), str(OWN / "virtual-v100.rfx")
DOCUMENT = pathlib.Path(__file__).resolve().parents[2] / "docs/use/READING_A_REPORT.md"


class Terminal:
    """A shell in a window of tmux. `run` types a command and returns what stands on the screen when it has ended."""

    def __init__(self, folder, width=80, height=200):
        self.folder = folder
        self.tmux = ["tmux", "-f", "/dev/null", "-S", os.path.join(folder, "socket")]
        environment = {key: value for key, value in os.environ.items() if key not in ("COLUMNS", "LINES", "NO_COLOR")}
        subprocess.run([*self.tmux, "new-session", "-d", "-s", "test", "-x", str(width), "-y", str(height), "-c", folder,
                        "env", "PS1=$ ", "LC_ALL=C.UTF-8", "sh"], check=True, env=environment)

    def call(self, *words):
        return subprocess.run([*self.tmux, *words], check=True, capture_output=True, text=True).stdout

    def resize(self, width, height=200):
        self.call("resize-window", "-t", "test", "-x", str(width), "-y", str(height))
        # tmux tells the program a moment later.
        self.run(f"until [ \"$(stty size)\" = '{height} {width}' ]; do sleep 0.01; done")

    def run(self, command):
        self.call("send-keys", "-t", "test", f"clear; {command}; tmux -S {self.folder}/socket wait-for -S done", "Enter")
        self.call("wait-for", "done")
        lines = self.call("capture-pane", "-p", "-J", "-t", "test").split("\n")
        # The prompt's line, with the command or what wrapping left of it, is above; clear has taken it away.
        return [line.rstrip() for line in lines if line.rstrip() and not line.startswith("$")]

    def screen(self):
        """What stands on the screen now, line by line, below a full-screen program's or a shell's last output."""
        return [line.rstrip() for line in self.call("capture-pane", "-p", "-t", "test").rstrip("\n").split("\n")]

    def keys(self, *keys):
        self.call("send-keys", "-t", "test", *keys)

    def await_screen(self, pattern, patience_s=30):
        """The screen once PATTERN is somewhere on it, as it is or with lines that were broken between words as one."""
        end = time.monotonic() + patience_s
        while True:
            screen = self.screen()
            text = "\n".join(screen)
            if any(re.search(pattern, one, re.MULTILINE) for one in (text, re.sub(r"\n +", " ", text))):
                return screen
            if time.monotonic() > end:
                raise AssertionError(f"no {pattern!r} on the screen:\n" + "\n".join(screen))
            time.sleep(0.02)

    def close(self):
        self.call("kill-server")


class InATerminal(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-tmux-")
        cls.terminal = Terminal(cls.folder.name)

    @classmethod
    def tearDownClass(cls):
        cls.terminal.close()
        cls.folder.cleanup()

    def rfinject(self, *words):
        screen = self.terminal.run(shlex.join([RFINJECT, *words]))
        self.assertFalse([line for line in screen if "?[" in line], "a colour's letters, which something took for a name's")
        return screen

    def rows(self, screen, head):
        """The lines of a table below its head, up to the total."""
        start = next(i for i, line in enumerate(screen) if re.match(head, line)) + 1
        end = next(i for i in range(start, len(screen)) if "total" in screen[i].split()[:2])
        return screen[start:end]

    def column(self, screen, head, title):
        """The numbers below a title of a table, whose columns end where their titles end."""
        end = re.search(r"(^| )" + re.escape(title) + r"( |$)", next(line for line in screen if re.match(head, line))).end()
        return [line[:end].split()[-1] for line in self.rows(screen, head)]

    def test_a_table_fits_and_says_what_it_hides(self):
        for width in (60, 80, 120):
            self.terminal.resize(width)
            screen = self.rfinject("report", RESNET, "--full")
            self.assertLessEqual(max(map(len, screen)), width)
            hidden = [line for line in screen if " hidden (" in line]
            self.assertEqual(len(hidden), 1, screen)
            self.assertRegex(" ".join(screen), r"\d columns? hidden \(.*\): +--wide")
        self.terminal.resize(80)

    def test_width_wide_and_COLUMNS(self):
        def of_layers(screen):
            return next(line for line in screen if re.match(" *layer +", line))
        shown = of_layers(self.rfinject("report", RESNET, "--full"))
        self.assertNotIn("launches", shown)
        self.terminal.resize(200)
        wide = of_layers(self.rfinject("report", RESNET, "--wide"))
        for title in ("class", "launches", "time", "share", "bytes", "DRAM/s", "of roof", "bound", "to win"):
            self.assertIn(title, wide)
        self.assertFalse([line for line in self.rfinject("report", RESNET, "--wide") if "hidden" in line])
        narrow = self.rfinject("report", RESNET, "--width", "60")
        self.assertLessEqual(max(map(len, narrow)), 60)
        self.assertEqual(self.terminal.run(f"COLUMNS=60 {RFINJECT} report {RESNET} --full"), narrow)
        # A pipe has no width; what the user exports is taken.
        self.assertEqual(self.terminal.run(f"COLUMNS=60 {RFINJECT} report {RESNET} | cat"), narrow)
        self.terminal.resize(80)
        self.assertIn("40 to 10000", " ".join(self.rfinject("report", RESNET, "--width", "7")))

    def test_sort(self):
        screen = self.rfinject("report", RESNET, "--sort", "FLOP/B", "--rows", "6")
        values = self.column(screen, " *layer +", "FLOP/B")
        self.assertEqual(values[:6], sorted(values[:6], key=float, reverse=True))
        self.assertEqual(len(values), 7)  # and the rest
        # The same by the name that the CSV has, and by a text.
        self.assertEqual(self.rfinject("report", RESNET, "--sort", "oi_flop_per_byte", "--rows", "6"), screen)
        names = [line.split()[1] for line in self.rows(self.rfinject("report", RESNET, "--sort", "layer"), " *layer +")]
        inside = [name for name in names if "." in name]
        self.assertEqual(inside, sorted(inside))
        self.assertIn("explain columns", " ".join(self.rfinject("report", RESNET, "--sort", "nothing")))

    def test_depth_folds_layers(self):
        names = [line.split()[1] for line in self.rows(self.rfinject("report", RESNET, "--depth", "1"), " *layer +")]
        self.assertEqual([name for name in names if not name.startswith("(")][:8],
                         ["conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3", "layer4"])

        def total(*words):
            screen = self.rfinject("report", RESNET, "--full", *words)
            return [line for line in screen if line.split()[1:2] == ["total"]][-1].split()[2:5]
        self.assertEqual(total("--depth", "1"), total())
        self.assertIn("from 1 on", " ".join(self.rfinject("report", RESNET, "--depth", "0")))

    def test_layers_that_are_alike_are_one_row(self):
        screen = self.rfinject("report", RESNET, "--by", "class")
        rows = " \n".join(self.rows(screen, " *layers +"))
        self.assertIn("Conv2d 3x3 512->512 x3", rows)
        self.assertIn("Conv2d 7x7 3->64 ", rows)
        self.assertIn("(optimizer, no layer)", rows)

    def test_words_and_columns_are_explained(self):
        for word in ("bound", "slack", "tier"):
            self.assertTrue(self.rfinject("explain", word)[0].startswith(word + ": "))
        self.assertTrue(self.rfinject("explain", "attainable_share")[0].startswith("attainable_share (share of 1): "))
        self.assertTrue(self.terminal.run(f"{RFINJECT} explain columns | head -n 5")[1].startswith("  model (text): "))

    def test_the_first_table_comes_soon_and_what_to_change_is_last(self):
        screen = self.rfinject("report", RESNET, "--full")
        self.assertRegex(screen[0], "^ESTIMATED on .* a step takes ")
        head = next(i for i, line in enumerate(screen) if re.match(" *layer +", line))
        self.assertLessEqual(head, 6)
        # A line goes on where it is indented.
        begin = next(i for i, line in enumerate(screen) if line.startswith("What to change in 2.99 ms of GPU time a step"))
        self.assertLessEqual(len(screen) - begin, 23)  # all of it is seen on a terminal of 24 lines
        after = [line for line in screen[begin + 1:] if not line.startswith(" ")]
        self.assertEqual(len(after), 4, after)
        self.assertTrue(after[0].startswith("Held back by "))
        for number, line in enumerate(after[1:4], 1):
            self.assertRegex(line, rf"^{number}\. (at most )?-[0-9.]+ [num]?s \(")

    def test_advice(self):
        first = next(line for line in self.rfinject("report", RESNET, "--full") if line.startswith("1. "))
        text = " ".join(line.strip() for line in self.rfinject("advise", RESNET))
        self.assertIn(re.sub(r"^1\. (-\S+ \S+) .*", r"\1", first), text)

    def test_every_word_of_the_glossary_is_explained(self):
        self.terminal.resize(80)
        unknown = self.rfinject("explain", "nothing")
        words = " ".join(line.strip() for line in unknown).split("one of: ")[1].split(" (rfinject")[0].split(", ")
        self.assertGreater(len(words), 15)
        for word in words:
            screen = self.rfinject("explain", word)
            self.assertTrue(" ".join(screen).lower().startswith(word.lower() + ": "), screen)
            self.assertLessEqual(max(map(len, screen)), 80)

    def test_all_columns_that_are_printed_are_explained(self):
        def columns(*words):
            head = self.terminal.run(shlex.join([RFINJECT, *words, "--format", "csv"]) + " | head -n 1")
            return "".join(head).split(",")
        self.terminal.resize(4000)
        text = " ".join(self.terminal.run(f"{RFINJECT} explain columns | grep -o '^  .*:' | tr '\\n' ' '"))
        leading = {"record", "run", "pair", "before", "after", "per_step", "device", "roofs_of", "samples", "allocated_bytes",
                   "reserved_bytes", "column_a", "column_b", "spearman_rho", "correlated_runs"}
        for words in (["report", RESNET, "--full"], ["report", RESNET, "--by", "run"], ["diff", RESNET, str(TRACES / "v100.rfx")],
                      ["report", RESNET, "--by", "wait"], ["report", RESNET, "--by", "memory"], ["runs", RESNET]):
            for column in columns(*words):
                if column not in leading and not column.startswith(("roof_", "ridge_")):
                    self.assertIn(f" {column} (", text, words)
        self.terminal.resize(80)
        self.assertIn("rfinject diff", self.rfinject("explain", "time_visible_ns")[0])

    def test_columns_of_runs_that_have_no_room_are_named(self):
        hidden = [line for line in self.rfinject("runs", RESNET) if "hidden" in line]
        self.assertEqual(len(hidden), 1, hidden)
        self.assertIn("started", hidden[0])
        self.assertIn("--wide", hidden[0])

    def test_what_a_newcomer_types(self):
        write = self.terminal.run
        write("mkdir -p empty; : > run.nsys-rep; : > train.py; chmod -x train.py")
        for words, remedy in ((["train.py"], "python"), (["report", "empty/"], "rfinject PROGRAM"),
                              (["report", "run.nsys-rep"], "nsys export --type sqlite"),
                              (["report", "train.py"], "train.py")):
            self.assertIn(remedy, " ".join(self.rfinject(*words)), words)
        self.assertTrue(self.rfinject("version")[0].startswith("rfinject "))
        self.assertEqual(self.rfinject("help", "advise"), self.rfinject("advise", "-h"))

    def test_a_kind_of_gpu_is_its_commonest_board(self):
        for kind, board in (("A100", "A100-SXM4-40GB"), ("v100", "V100-SXM2-16GB"), ("H100", "H100-SXM5-80GB"),
                            ("b200", "B200")):
            shown = self.terminal.run(f"{RFINJECT} --estimate {kind} sh -c 'echo =$RFINJECT_ESTIMATE='")
            self.assertTrue(any(line.startswith(f"={board}") for line in shown), shown)
            self.assertIn(f"--estimate {kind} is {board}", " ".join(shown))
        unknown = " ".join(self.rfinject("--estimate", "foo", "true"))
        self.assertIn("no such GPU", unknown)
        self.assertNotIn("T4", unknown)

    def test_an_output_without_a_slash_is_a_folder(self):
        shown = self.terminal.run(f"{RFINJECT} --estimate A100-SXM4-40GB -o newdir sh -c 'echo =$RFINJECT_OUTPUT='")
        self.assertTrue(any(re.fullmatch("=.*/newdir/=", line) for line in shown), shown)

    def test_an_import_is_reported_by_kernel(self):
        row = "002", "vgg11", "A100-SXM4-40GB"
        source = pathlib.Path(self.folder.name) / "vgg11_A100-SXM4-40GB.csv"
        source.write_text(make_fixtures.fixture(*row), encoding="utf-8")
        self.rfinject("import", "ncu", str(source), "-o", "imported.rfx", "--force")
        self.terminal.resize(100)
        screen = self.rfinject("report", "imported.rfx", "--rows", "5")
        self.assertEqual(len(self.rows(screen, " *kernel +")), 6)  # and the rest
        self.assertIn("By layer", " ".join(self.rfinject("report", "imported.rfx", "--by", "layer")))
        self.assertIn("By layer", " ".join(self.rfinject("report", "imported.rfx", "--depth", "1")))
        self.terminal.resize(80)

    def test_names_of_kernels_keep_what_tells_them_apart(self):
        self.rfinject("import", "nsys", str(TRACES / "nsys_small.sqlite"), "-o", "nsys.rfx", "--force")
        names = [line.split()[0] for line in self.rows(self.rfinject("report", "nsys.rfx", "--full"), " *kernel +")]
        self.assertEqual(len(set(names)), len(names))

    def test_a_comparison_of_estimates_says_which_times(self):
        text = " ".join(line.strip() for line in self.rfinject("diff", str(TRACES / "v100.rfx"), str(TRACES / "a100.rfx")))
        step = re.search(r"GPU time a step, expected: (\S+ \S+) to (\S+ \S+), ", text)
        self.assertTrue(step, text)
        for name, value in zip(("v100", "a100"), step.groups()):
            opening = " ".join(self.rfinject("report", str(TRACES / f"{name}.rfx"), "--full"))
            self.assertIn(f"a step takes {value} of", opening)
        self.assertRegex(text, "ideal, by the datasheet: ")

    def test_waits_by_the_clock_and_by_rank(self):
        for rank in (0, 1):
            subprocess.run([MAKE_TRACE, f"waits:{rank}", os.path.join(self.folder.name, f"rank{rank}.rfx")], check=True)
        screen = self.rfinject("report", "rank0.rfx", "--by", "wait")
        for part in ("by the clock", "GPU busy", "GPU idle in launch gaps", "host waits for data",
                     "host waits for the GPU", "host does its own: Python, launching"):
            line = next(line for line in screen if line.strip().startswith(part + "  "))
            self.assertRegex(line, r"[0-9] [mun]?s +[0-9.]+ % +[0-9.]+ [mun]?s +[0-9.]+ [mun]?s$")
        self.terminal.run(f"{RFINJECT} merge rank0.rfx rank1.rfx -o both.rfx --force")
        ranks = self.rfinject("report", "both.rfx", "--by", "rank")
        self.assertIn("Rank 1 is the slowest", " ".join(ranks))
        self.assertLessEqual(max(map(len, ranks)), 80)
        self.assertLessEqual(max(map(len, self.rfinject("report", "rank0.rfx", "--by", "wait", "--width", "60"))), 60)

    def test_the_document_explains_the_lines_that_stand_there(self):
        """Each indented line of the document is one of the demo's report, but for how wide its columns are."""
        def words(line):
            return " ".join(line.split())
        self.terminal.resize(80)
        screen = {words(line) for line in self.rfinject("report", DEMO, "--full")}
        shown = [words(line) for line in DOCUMENT.read_text().splitlines() if line.startswith("    ")]
        self.assertGreater(len(shown), 30)
        for line in shown:
            if line.endswith("..."):
                self.assertTrue(any(one.startswith(line[:-3].strip()) for one in screen), line)
            else:
                self.assertIn(line, screen)

    def test_ten_questions_have_a_command_each(self):
        """Those of the document, typed as they stand there, and the words of their answers."""
        self.terminal.resize(80)
        self.terminal.run("rm -rf q; mkdir -p q/rfinject-out/demo q/rfinject-out/virtual q/before q/after")
        folder = pathlib.Path(self.folder.name, "q")
        # Of two runs the one on the virtual GPU is the newest: it alone knows of memory and the clock.
        for trace, into in ((VIRTUAL, "rfinject-out/virtual"), (TRACES / "v100.rfx", "before"), (TRACES / "a100.rfx", "after")):
            shutil.copy(trace, folder / into)
        table = re.findall(r"(?m)^\| (\d+)\. [^|]+ \| `([^`]+)`", DOCUMENT.read_text())
        self.assertEqual([int(number) for number, _ in table], list(range(1, 11)))
        answers = [r"-\d\S* [mu]s \(", r"At the peak .* were allocated", "host waits for data +[0-9]", r"main\.py:\d+ train_epoch",
                   r"expected: \S+ ms to \S+ ms, -", "By layer, a step", None, "By phase, a step", None, "gpu +"]
        for (number, command), answer in zip(table, answers):
            words = command.replace("rfinject ", f"{RFINJECT} ", 1)
            if answer is None and number == "9":
                continue  # a program's run
            screen = self.terminal.run(f"cd q; {words}; echo exit $?; cd ..")
            self.assertNotIn("exit 2", screen, command)
            if answer is not None:
                self.assertRegex(" ".join(screen), answer, command)
        self.assertGreater((folder / "report.html").stat().st_size, 50_000)

    def test_what_a_step_waits_for_is_in_its_second_line(self):
        """Of a measured run with launch gaps as well; the virtual GPU's clock holds what observing a launch costs."""
        subprocess.run([MAKE_TRACE, "waits:0", os.path.join(self.folder.name, "waits.rfx")], check=True)
        text = " ".join(line.strip() for line in self.rfinject("report", "waits.rfx", "--full"))
        self.assertIn("the GPU is busy for 40 % of a step, and the host waits 30 % for data, 10 % for the GPU; "
                      "launch gaps are 30 % of it", text)
        self.assertNotIn("launch gaps", " ".join(self.rfinject("report", VIRTUAL, "--full")))
        self.assertIn("launch gaps", " ".join(self.rfinject("report", VIRTUAL, "--by", "wait")))

    def test_us_and_the_micro_sign_are_one(self):
        """Output has us alone; --host-us is what takes it, and a search of the page's numbers finds one spelling."""
        for words in (("report", RESNET, "--full"), ("advise", RESNET), ("runs", str(TRACES)), ("gpus",)):
            screen = " ".join(self.rfinject(*words))
            self.assertNotRegex(screen, "[\u00b5\u03bc]s", words)


if __name__ == "__main__":
    if len(sys.argv) < 3 or not all(os.access(tool, os.X_OK) for tool in sys.argv[1:3]):
        sys.exit(__doc__)
    RFINJECT, MAKE_TRACE = (os.path.abspath(sys.argv.pop(1)) for _ in range(2))
    if shutil.which("tmux") is None:
        print("skipped: no tmux; scripts/setup installs it")
        sys.exit(77)
    unittest.main(verbosity=2)
