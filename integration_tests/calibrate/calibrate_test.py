"""`rfinject calibrate`, from the command line to the report that uses what it wrote.

    calibrate_test.py [unittest arguments]
RFINJECT names the command, RFINJECT_PYTHON the interpreter (default: the one that runs this file). What needs a GPU runs on
the virtual one, whose clock is that of the data sheet: calibrate must find the data sheet again. Where torch is no CUDA
build, programs that play the user's Python say what a GPU would.
"""
import csv
import importlib.util
import json
import os
import pathlib
import re
import stat
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))
from cuda_torch import why_no_virtual_gpu  # noqa: E402

RFINJECT = os.environ["RFINJECT"]
PYTHON = os.environ.get("RFINJECT_PYTHON") or sys.executable
LIBRARIES = pathlib.Path(RFINJECT).resolve().parent.parent / "lib" / "virtual_gpu"

# Takes the place of calibrate.py, as on a GPU where the operators take `seconds`, one after the other.
PLAYED = """#!{python}
import sys
said = {said!r}
for line in said:
    print(line)
seconds = {seconds!r}
for number in range(len(sys.argv) - 3):
    print("time", number, seconds[number % len(seconds)], {spread!r}, sep="\\t")
print("end")
"""

TRAINING = """
import torch
device = "cuda" if torch.cuda.is_available() else "cpu"
model = torch.nn.Sequential(torch.nn.Linear(4096, 4096), torch.nn.LayerNorm(4096), torch.nn.Linear(4096, 4096)).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn({rows}, 4096).to(device)
for _ in range(2):
    optimizer.zero_grad()
    model(x).sum().backward()
    optimizer.step()
"""


class Calibrate(unittest.TestCase):
    estimated = {}  # by GPU, where and rows: the files of a run

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="rfinject-calibrate-")
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.config = self.folder / "config"
        self.own = self.config / "rfinject" / "calibration.csv"

    def run_command(self, *arguments, code=0, **environment):
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("RFINJECT") and name not in ("CUDA_VISIBLE_DEVICES", "LD_PRELOAD")}
        variables.update(XDG_CONFIG_HOME=str(self.config), HOME=str(self.folder))
        variables.update(environment)
        result = subprocess.run([RFINJECT, *map(str, arguments)], cwd=self.folder, env=variables, capture_output=True,
                                text=True, timeout=300)
        self.assertEqual(result.returncode, code, result.stdout + result.stderr)
        return result

    def play(self, *said, seconds=("0.002",), spread="0.001"):
        """A program in the place of the user's Python."""
        program = self.folder / "python"
        program.write_text(PLAYED.format(python=sys.executable, said=list(said), seconds=list(seconds), spread=spread))
        program.chmod(0o755)
        return program

    def played_gpu(self, name="NVIDIA A10", memory=24 * 10**9, **more):
        return self.play(f"device\t{name}", f"memory\t{memory}", "torch\t2.9.9", "clocks\tSM clock 1410 MHz", **more)

    def values(self, path):
        with open(path, encoding="utf-8") as file:
            rows = csv.DictReader(line for line in file if not line.startswith("#"))
            return {(row["gpu"], row["family"], row["parameter"]): row for row in rows}

    def estimate(self, gpu, on="cpu", rows=32):
        """The folder of an estimated run, which runs once for all tests."""
        traces, key = self.folder / "traces", (gpu, on, rows)
        if key not in self.estimated:
            source = self.folder / "train.py"
            source.write_text(TRAINING.format(rows=rows))
            out = self.folder / f"estimated-{gpu}"
            self.run_command("--estimate", gpu, "--estimate-on", on, "-o", f"{out}/", PYTHON, source)
            self.estimated[key] = {path.name: path.read_bytes() for path in out.iterdir()}
        traces.mkdir(exist_ok=True)
        for name, content in self.estimated[key].items():
            (traces / name).write_bytes(content)
        return traces

    def report(self, traces, *more):
        report = json.loads(self.run_command("report", traces, "--by", "op", "--format", "json", *more).stdout)
        return report["reports"][0] if "reports" in report else report

    @staticmethod
    def step_ns(report):
        return sum(row["time_ns"] for row in report["rows"])

    def test_what_is_written_is_the_users_alone_and_reports_say_that_they_use_it(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no torch")
        traces = self.estimate("A10")
        before = self.report(traces)
        self.assertNotIn("own_calibration", before["summary"])
        result = self.run_command("calibrate", "--python", self.played_gpu(seconds=("0.02",)))
        self.assertIn(str(self.own), result.stderr)
        self.assertEqual(stat.S_IMODE(self.own.stat().st_mode), 0o600)
        self.assertEqual(stat.S_IMODE(self.own.parent.stat().st_mode), 0o700)
        after = self.report(traces)
        self.assertIn("torch 2.9.9", after["summary"]["own_calibration"])
        self.assertIn("SM clock 1410 MHz", after["summary"]["own_calibration"])
        self.assertTrue(any("your own measurements" in line for line in after["summary"]["headline"]))
        # Every operator that was played takes 20 ms, which is longer than this GPU needs for most.
        self.assertGreater(self.step_ns(after), 1.5 * self.step_ns(before))
        self.assertEqual(self.step_ns(self.report(traces, "--calibration", "none")), self.step_ns(before))
        self.assertNotIn("your own measurements", self.run_command("report", traces, RFINJECT_CONFIG="").stdout)
        # Another GPU's estimates stay as they are.
        other = self.estimate("L4", rows=16)
        self.assertNotIn("your own", self.run_command("advise", other).stdout)

    def test_rows_of_other_gpus_stay(self):
        self.run_command("calibrate", "--python", self.played_gpu())
        self.run_command("calibrate", "--python", self.played_gpu("Tesla T4", 15 * 10**9))
        first = self.values(self.own)
        self.assertEqual({gpu for gpu, _, _ in first}, {"A10", "T4"})
        self.run_command("calibrate", "--python", self.played_gpu(seconds=("0.004",)))
        second = self.values(self.own)
        self.assertEqual(first.keys(), second.keys())
        # The GPU's old values were removed, and not only hidden by later ones.
        self.assertEqual(len(self.own.read_text().splitlines()), len(second) + 2)
        for key, row in first.items():
            if key[0] == "T4":
                self.assertEqual(second[key], row)
        share = ("A10", "gpu", "memory_share")
        self.assertLess(float(second[share]["value"]), float(first[share]["value"]))

    def test_doctor_says_of_which_gpus_there_are_own_times(self):
        self.run_command("calibrate", "--python", self.played_gpu())
        # The exit code tells about profiling, which is not tested here.
        variables = {**os.environ, "XDG_CONFIG_HOME": str(self.config)}
        variables.pop("RFINJECT_CONFIG", None)

        def lines():
            result = subprocess.run([RFINJECT, "doctor", "--python", "/no/python"], env=variables, capture_output=True,
                                    text=True, timeout=60)
            return [line for line in result.stdout.splitlines() if line.split()[1:2] == ["estimates"]]
        self.assertRegex(lines()[0], r"^ok .*calibration\.csv: expected times of A10$")
        self.own.write_text("A10,gpu,memory_share,-1\n")
        self.assertRegex(lines()[0], r"^note .*line 1")

    def test_a_chip_without_tensor_cores(self):
        self.run_command("calibrate", "--python", self.played_gpu("Tesla P100-PCIE-16GB", 17 * 10**9))
        self.assertFalse([key for key in self.values(self.own) if "tensor" in key[1]])

    def assert_fails(self, program, *words, timed=False):
        result = self.run_command("calibrate", "--python", program, code=1)
        lines = result.stderr.splitlines()
        if timed:
            self.assertIn("up to a minute", lines.pop(0))
        self.assertEqual(len(lines), 1, result.stderr)  # no minute is announced for what cannot be measured
        for word in words:
            self.assertIn(word, lines[0])
        self.assertFalse(self.own.exists())
        self.assertEqual(result.stdout, "")

    def test_what_cannot_be_measured_says_what_to_do(self):
        self.assert_fails("/no/python", "/no/python", "--python")
        self.assert_fails(self.play("error\tno GPU here"), "no GPU here")
        self.assert_fails(self.played_gpu("NVIDIA Whatever 9000"), "Whatever 9000", "rfinject gpus")
        # Parts of a GPU have other roofs than the GPU.
        self.assert_fails(self.played_gpu("NVIDIA A100-SXM4-40GB MIG 1g.5gb"), "MIG")
        failing = self.folder / "failing"
        failing.write_text("#!/bin/sh\necho first >&2; echo the reason >&2; exit 3\n")
        failing.chmod(0o755)
        self.assert_fails(failing, "exit code 3", "the reason")

    def test_times_that_are_none(self):
        for seconds in ("0", "-1", "nan", "inf", "1e999", "fast", ""):
            with self.subTest(seconds=seconds):
                self.assert_fails(self.played_gpu(seconds=(seconds,)), "time", timed=True)

    def test_an_interpreter_without_torch(self):
        # -S: without the packages of the site.
        bare = self.folder / "bare"
        bare.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S -E "$@"\n')
        bare.chmod(0o755)
        if subprocess.run([bare, "-c", "import torch"], capture_output=True).returncode == 0:
            self.skipTest("torch is no package of the site here")
        self.assert_fails(bare, "cannot import torch", "--python")

    def test_without_a_gpu(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no torch")
        if os.path.exists("/dev/nvidiactl"):
            self.skipTest("NVIDIA's driver is here")
        if why_no_virtual_gpu(LIBRARIES) is None:
            self.assert_fails(PYTHON, "finds no GPU", "nvidia-smi")
        else:
            self.assert_fails(PYTHON, "without CUDA", "--python")

    def test_unsteady_times_are_said(self):
        self.assertIn("vary", self.run_command("calibrate", "--python", self.played_gpu(spread="0.4")).stderr)
        self.assertNotIn("vary", self.run_command("calibrate", "--python", self.played_gpu()).stderr)

    def test_a_virtual_gpu_is_not_taken_for_a_real_one(self):
        virtual = self.play("device\tNVIDIA A10", "memory\t24000000000", "torch\t2.9.9", "virtual")
        self.assert_fails(virtual, "virtual GPU", "-o FILE")
        self.run_command("calibrate", "--python", virtual, "-o", self.folder / "virtual.csv")
        self.assertIn("VIRTUAL", (self.folder / "virtual.csv").read_text())

    def test_somebodys_file_is_not_replaced(self):
        work = self.folder / "work.csv"
        work.write_text("gpu,mine\n")
        self.run_command("calibrate", "--python", self.played_gpu(), "-o", work, code=1)
        self.assertEqual(work.read_text(), "gpu,mine\n")

    def test_a_file_that_cannot_be_used(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("no torch")
        traces = self.estimate("A10")
        shipped = self.report(traces)
        self.run_command("calibrate", "--python", self.played_gpu(seconds=("0.02",)))
        good = self.own.read_text()
        bad = {"a value that is no number": good.replace("memory_share,0.", "memory_share,x", 1),
               "a value that no GPU has": re.sub(r"memory_share,[0-9.e-]+", "memory_share,1e30", good, count=1),
               "a parameter of the model": good + "A10,conv_fp32,tile_edge,0,1,1,me\n",
               "a GPU that is none": good + "Z80,gpu,memory_share,1,1,1,me\n",
               "a file without an end": good + "A10," + "x" * (2 << 20)}
        for what, text in bad.items():
            with self.subTest(what):
                self.own.write_text(text)
                result = self.run_command("report", traces, "--by", "op", "--format", "json")
                self.assertEqual(result.stderr.count("is not used"), 1, result.stderr)
                self.assertEqual(self.step_ns(json.loads(result.stdout)), self.step_ns(shipped))
                # One that is named must be good.
                result = self.run_command("report", traces, "--calibration", self.own, code=1)
                self.assertIn("is not used", result.stderr)
        self.own.write_text(good)
        self.own.chmod(0o666)
        self.assertIn("others may write", self.run_command("report", traces).stderr)
        self.own.unlink()
        self.assertEqual(self.run_command("report", traces).stderr, "")
        self.run_command("report", traces, "--calibration", self.own, code=1)

    def test_the_virtual_gpus_clock_is_found_again(self):
        why = why_no_virtual_gpu(LIBRARIES)
        if why is not None:
            self.skipTest(why)
        own = self.folder / "own.csv"
        for gpu in ("V100-SXM2-16GB", "T4"):
            with self.subTest(gpu):
                result = self.run_command("--estimate", gpu, RFINJECT, "calibrate", "--python", PYTHON, "-o", own)
                # By the virtual GPU's clock every operator takes the larger of FLOP over peak and bytes over
                # bandwidth.
                value = {key[1:]: float(row["value"]) for key, row in self.values(own).items() if key[0] == gpu}
                for family, parameter in (("gpu", "memory_share"), ("softmax", "share_persistent")):
                    self.assertAlmostEqual(value[family, parameter], 1, delta=0.05, msg=family)
                # The model has a time for each row that hides in part behind the traffic, the clock does not: 1.11 and
                # 1.03.
                self.assertAlmostEqual(value["layer_norm", "share"], 1.07, delta=0.05)
                # The model has a second reading of the input, the clock does not.
                self.assertAlmostEqual(value["batch_norm", "share"], 1.5, delta=0.05)
                times = [re.fullmatch(r"(\S.*?) +([0-9.]+) +([0-9.]+) +([0-9.]+)", line)
                         for line in result.stdout.splitlines()[1:]]
                self.assertEqual(len(times), 27)
                for time in times:
                    measured, now = float(time[2]), float(time[4])
                    # This clock knows neither Winograd nor what implicit GEMM pays for its input; one number for the
                    # 1x1, the 3x3 and the strided 3x3 lies between them.
                    near = 0.35 if "conv" in time[1] and "FP32" in time[1] else 0.15 if "conv" in time[1] else 0.05
                    self.assertAlmostEqual(now / measured, 1, delta=near, msg=time[1])
                # So the expected time of a program is the time that this GPU's clock would show.
                report = self.report(self.estimate(gpu, on="virtual-gpu", rows=8192), "--calibration", own)
                ideal = sum(row["ideal_time_ns"] for row in report["rows"])
                self.assertAlmostEqual(self.step_ns(report) / ideal, 1, delta=0.1)
                self.assertIn("VIRTUAL", report["summary"]["own_calibration"])
                for trace in (self.folder / "traces").iterdir():
                    trace.unlink()
        self.assertEqual({key[0] for key in self.values(own)}, {"V100-SXM2-16GB", "T4"})


if __name__ == "__main__":
    unittest.main()
