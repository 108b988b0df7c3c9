"""A real torch process on the simulated GPU: its layers' FLOP, bytes and times are exactly those of its kernels, and
whatever CUPTI answers, its stdout and exit code are those of a run without us."""

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import rfx_trace  # noqa: E402

FOLDER = os.environ["SIM_FOLDER"]
LIBRARY = os.environ["RFINJECT_LIBRARY"]
PYTHON = os.environ.get("RFINJECT_PYTHON", sys.executable)


def run(output, chip, *failure, preload=True, guest=False):
    environment = dict(os.environ, SIM_REAL_CUPTI=os.environ["SIM_REAL_CUPTI"], RFINJECT_OUTPUT=str(output) + "/",
                       RFINJECT_LOG="-1",
                       # Steps are so short that the program would be over before anything was counted.
                       RFINJECT_STEPS="599")
    if guest:
        environment["GUEST"] = "1"
    if preload:
        environment["LD_PRELOAD"] = LIBRARY
    return subprocess.run([PYTHON, str(HERE / "torch_program.py"), FOLDER, chip, *failure], env=environment,
                          capture_output=True, text=True, timeout=120)


class TorchProcess(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with tempfile.TemporaryDirectory() as output:
            cls.plain = run(output, "GA100", preload=False)
        assert cls.plain.returncode == 0, cls.plain.stderr

    def check_layers(self, chip, collector, tensor):
        with tempfile.TemporaryDirectory() as output:
            measured = run(output, chip)
            self.assertEqual((measured.returncode, measured.stdout), (0, self.plain.stdout), measured.stderr)
            self.assertEqual(measured.stderr, "")
            (trace,) = rfx_trace.read_traces(output)
            self.assertEqual((trace.source, trace.run["collector"]), ("measured", collector))
            self.assertFalse(trace.sampled_windows and chip == "GV100")  # never beside the legacy profiler
            names = {metric["name"]: number for number, metric in trace.metrics.items()}
            seen = set()
            for number, key in trace.keys.items():
                kernel = trace.names.get(key.get("kernel", 0), "")
                if not kernel.startswith("simulated_"):
                    continue
                phase = rfx_trace.PHASES[key.get("phase", 0)]
                expected = {"simulated_forward": ("forward", 5000, 128, 4096, 64),
                            "simulated_backward": ("backward", 9000, 200, 8192, 128)}[kernel]
                seen.add((trace.layers[key["layer"]]["path"], phase))
                self.assertEqual(phase, expected[0])
                self.assertEqual(trace.launches[number], 598)  # of the 599 of the window; the source starts at the end of the first
                for name, value in zip(("rf.time", "rf.dram_bytes", tensor, "rf.flop.fp32"), expected[1:]):
                    if name == "rf.dram_bytes" and chip != "GV100":
                        continue  # these kernels are shorter than a sample
                    total = trace.sums[(number, names[name])]
                    self.assertGreater(total["n"], 0, (kernel, name))
                    self.assertEqual(total["sum"], value * total["n"], (kernel, name))
            self.assertEqual(seen, {(layer, phase) for layer in "012" for phase in ("forward", "backward")})

    def test_every_layer_has_exactly_its_kernels_work_on_ga100(self):
        self.check_layers("GA100", "range-profiler", "rf.flop.tf32_tc")

    def test_every_layer_has_exactly_its_kernels_work_on_gh100(self):
        self.check_layers("GH100", "range-profiler", "rf.flop.tf32_tc")

    def test_every_layer_has_exactly_its_kernels_work_on_gv100(self):
        self.check_layers("GV100", "legacy-profiler", "rf.flop.fp16_tc")

    def test_a_profiler_of_the_program_is_not_refused(self):
        # CUPTI has one subscriber, which is the library; PyTorch's profiler gives up where it is refused.
        with tempfile.TemporaryDirectory() as output:
            alone = run(output, "GH100", preload=False, guest=True)
            beside = run(output, "GH100", guest=True)
            self.assertEqual((beside.returncode, beside.stdout), (0, alone.stdout), beside.stderr)
            self.assertIn("guest 0 1\nguest's end 0\n", beside.stdout)
            (trace,) = rfx_trace.read_traces(output)
            self.assertEqual({trace.launches[number] for number, key in trace.keys.items()
                              if trace.names.get(key.get("kernel", 0), "").startswith("simulated_")}, {598})

    def check_failure(self, chip, function, code):
        with self.subTest(function=function, code=code), tempfile.TemporaryDirectory() as output:
            failing = run(output, chip, function, code, "1")
            self.assertEqual((failing.returncode, failing.stdout), (0, self.plain.stdout), failing.stderr)
            (trace,) = rfx_trace.read_traces(output)
            self.assertTrue(set(trace.diagnostic_ids()) - {"counter-backend"})

    # All codes that each function may fail with are failures_test.cc's; here each has the lack of permission, which the
    # library knows, or one that it does not.
    def check_failures(self, chip, functions):
        for number, function in enumerate(functions):
            self.check_failure(chip, function, ("35", "999")[number % 2])

    def test_nothing_that_fails_reaches_the_program(self):
        self.check_failures("GA100", ("cuptiGetVersion", "cuptiSubscribe_v2", "cuptiProfilerGetCounterAvailability",
                                      "cuptiRangeProfilerStart", "cuptiRangeProfilerDecodeData", "cuptiActivityEnable"))

    def test_nothing_that_fails_in_the_legacy_profiler_reaches_the_program(self):
        self.check_failures("GV100", ("cuptiProfilerBeginSession", "cuptiProfilerEndPass", "cuptiProfilerFlushCounterData",
                                      "NVPW_InitializeHost", "NVPW_MetricsEvaluator_EvaluateToGpuValues"))


if __name__ == "__main__":
    unittest.main()
