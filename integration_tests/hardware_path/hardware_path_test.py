"""rfinject measures PyTorch's own CUDA build: on the virtual GPU, whose launches the simulated CUPTI counts and times.

    hardware_path_test.py [--all] [unittest arguments]
Every launch must be where the oracle (oracle.py) says, every counter what the stand-ins say that they stand for. By
default a few networks run; --all, or RFX_HARDWARE_PATH=all, runs them all and prints the table that stands in
docs/inside/HARDWARE_SOURCE.md.
Needs a torch that is a CUDA build; CUPTI 13 stands under one for CUDA 13, CUPTI 12.8 and 12.4 under one for CUDA 12.
"""
import collections
import ctypes
import json
import os
import pathlib
import re
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
import gpu  # noqa: E402
import rfx_trace  # noqa: E402
from cuda_torch import cuda_major, why_no_virtual_gpu  # noqa: E402

RFINJECT = os.environ["RFINJECT"]
ALL = "--all" in sys.argv or os.environ.get("RFX_HARDWARE_PATH") == "all"
NETWORKS = ["resnet18", "gpt_amp", "gpt_checkpointed", "lstm"]
MORE_NETWORKS = ["resnet50", "vgg13", "vit", "unet"]
# The FLOP for an image of 64 x 64 and 10 classes: 2 per multiply-add of ResNet-18's convolutions and its linear
# layer; the backward does not make the gradient of the images.
RESNET18_FORWARD, RESNET18_BACKWARD = 296_101_888, 572_936_192

table = []  # what is printed at the end: a line a program


def unavailable():
    """Why nothing can be tested here; None when it can."""
    why = why_no_virtual_gpu(os.environ["VIRTUAL_GPU_FOLDER"])
    if why is None and not os.path.exists(os.path.join(os.environ["SIM_REAL_CUPTI"], "libcupti.so.13")):
        return "there is no real CUPTI to plan with"
    return why


# What lies below each torch: (CUPTI, board, the profiler that counts).
CUPTI13 = ("cupti13/libcupti.so.13", gpu.A100, "range-profiler")
CUPTI12 = ("cupti12/libcupti.so.12", gpu.A100, "range-profiler")
CUPTI124 = ("cupti124/libcupti.so.12", gpu.V100, "legacy-profiler")
HOPPER = ("cupti13/libcupti.so.13", gpu.H100, "range-profiler")


def usual():
    return CUPTI13 if cuda_major() >= 13 else CUPTI12


def readable(kernel, demangle=[]):
    """The kernel's name as the compiler would spell it in a message."""
    if not demangle:
        demangle.append(ctypes.CDLL("libstdc++.so.6").__cxa_demangle)
        demangle[0].restype = ctypes.c_char_p
    text = demangle[0](kernel.encode(), None, None, None) if kernel.startswith("_Z") else None
    return text.decode() if text else kernel


def of_traces(folder):
    """Launches by (model, layer, phase, kernel, grid), without copies and memory sets."""
    found = collections.Counter()
    for trace in rfx_trace.read_traces(folder):
        for number, key in trace.keys.items():
            kernel = trace.names.get(key.get("kernel", 0), "")
            if kernel.startswith("cuMem"):
                continue
            layer = trace.layers.get(key.get("layer", 0))
            where = (None, None) if layer is None else (trace.model_name(layer), layer.get("path", ""))
            phase = rfx_trace.PHASES[key.get("phase", 0)]
            found[where + (phase, kernel, tuple(key.get("grid", ())))] += trace.launches.get(number, 0)
    return found


class Measured(unittest.TestCase):
    """Programs under the real command, on a GPU that is not there."""

    maxDiff = 4000

    def measure(self, program, *arguments, under=None, launcher=(), devices=1, noise=0.02, **more):
        cupti, board, collector = under or usual()
        # Programs are so short here that a hundredth of their steps would be less than one.
        variables = gpu.environment(board, cupti, devices, RFINJECT_OVERHEAD=50, RFX_SIM_NOISE=noise, **more)
        if launcher:
            folder = tempfile.TemporaryDirectory(prefix="rfinject-hardware-path-")
            result = gpu.run([RFINJECT, "-o", folder.name + "/", gpu.PYTHON, *launcher, gpu.PROGRAMS / program, *arguments],
                             variables, traces=folder.name)
        else:
            result, folder = gpu.run_in_child(variables, gpu.PROGRAMS / program, *arguments, command=(RFINJECT,))
        self.addCleanup(folder.cleanup)
        self.assertEqual((result.returncode, result.stdout.splitlines()[-1:]), (0, ["trained"]), result.stderr)
        traces = list(rfx_trace.read_traces(folder.name))
        for trace in traces:
            self.assertEqual((trace.source, trace.run["collector"], trace.tier), ("measured", collector, "A"))
            self.assertEqual(trace.drops, {})
            self.assertIn("simulated-gpu", trace.diagnostic_ids())
        return folder.name, traces, result

    def oracle(self, program, *arguments, under=None, devices=1):
        _, board, _ = under or usual()
        with tempfile.NamedTemporaryFile(prefix="rfinject-oracle-") as out:
            result, nothing = gpu.run_in_child(gpu.environment(board, "", devices), HERE / "oracle.py", out.name,
                                               gpu.PROGRAMS / program, *arguments)
            nothing.cleanup()
            self.assertEqual(result.returncode, 0, result.stderr)
            found = collections.Counter()
            for model, layer, phase, kernel, grid, launches in json.load(out):
                found[model, layer, phase, readable(kernel), tuple(grid)] += launches
        return found

    def report(self, folder, *options):
        result = gpu.run([RFINJECT, "report", folder, "--rows", "0", "--format", "json", *options], dict(os.environ))
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)

    def hold_against_oracle(self, name, program, *arguments, under=None, devices=1):
        folder, traces, _ = self.measure(program, *arguments, under=under, devices=devices)
        expected, found = self.oracle(program, *arguments, under=under, devices=devices), of_traces(folder)
        differ = {key: (expected[key], found[key]) for key in expected.keys() | found.keys()
                  if expected[key] != found[key]}
        table.append((name, (under or usual())[0].split("/")[0], len(expected), sum(expected.values()), len(differ)))
        self.assertGreater(sum(expected.values()), 0)
        self.assertEqual(differ, {}, "of the oracle and of rfinject")
        return folder, traces


class Attribution(Measured):
    def test_every_launch_has_the_layer_and_the_phase_that_it_has(self):
        for network in NETWORKS + (MORE_NETWORKS if ALL else []):
            with self.subTest(network=network):
                self.hold_against_oracle(network, "train.py", network, 8)

    def test_two_networks_and_two_optimizers(self):
        self.hold_against_oracle("gan", "gan.py", 8)

    def test_a_step_that_a_loss_scaler_skips_is_a_step(self):
        _, (trace,), _ = self.measure("scaled.py", 12)
        self.assertEqual(len(trace.steps), 12)

    def test_two_gpus_in_one_process(self):
        _, (trace,) = self.hold_against_oracle("data_parallel", "parallel.py", 8, "data_parallel", devices=2)
        self.assertEqual({key.get("device", 0) for key in trace.keys.values()}, {0, 1})


class Values(Measured):
    def check_resnet18(self, under):
        folder, (trace,), _ = self.measure("train.py", "resnet18", 600, under=under)
        # Bytes are never sampled beside the legacy profiler.
        self.assertFalse(trace.sampled_windows and under[2] != "range-profiler")
        report = self.report(folder, "--by", "kernel")
        flop = collections.Counter()
        for row in report["rows"]:
            self.assertGreater(row["time_ns"], 0, row)
            if re.search("prop|grad|gemm", row["kernel"]):
                flop[row["phase"]] += row["flop"]
        images = 4 * report["steps"]
        self.assertAlmostEqual(flop["forward"] / (images * RESNET18_FORWARD), 1, delta=1e-9)
        self.assertAlmostEqual(flop["backward"] / (images * RESNET18_BACKWARD), 1, delta=1e-9)

    def test_flop_are_those_of_the_network(self):
        for under in {13: [CUPTI13] + ([HOPPER] if ALL else []), 12: [CUPTI12, CUPTI124]}[cuda_major()]:
            with self.subTest(cupti=under[0], board=under[1]["name"]):
                self.check_resnet18(under)

    def test_the_same_seed_gives_the_same_values(self):
        # Which step is armed follows from how long the others took, so each value is compared with all values that
        # the seed gives.
        def times(seed):
            _, (trace,), _ = self.measure("train.py", "lstm", 30, noise=0.1, RFX_SIM_SEED=seed)
            number = next(number for number, metric in trace.metrics.items() if metric["name"] == "rf.time")
            return {(trace.names[trace.keys[key]["kernel"]], value) for (key, metric), total in trace.sums.items()
                    if metric == number and total["n"] for value in (total["min"], total["max"])}

        one, again, other = times(7), times(7), times(8)
        self.assertGreater(len(one), 20)
        self.assertGreater(len(one & again), 2 * len(one & other))

    def test_a_program_that_is_too_short_says_so(self):
        def sampled(trace):
            return {trace.metrics[metric]["name"] for (_, metric), total in trace.sums.items() if total["n"]}

        _, (short,), _ = self.measure("train.py", "lstm", 2)  # nothing is sampled before the fourth step
        self.assertNotIn("rf.time", sampled(short))
        self.assertIn("too-few-steps", short.diagnostic_ids())
        _, (enough,), _ = self.measure("train.py", "lstm", 1500)  # short kernels are told apart over several windows
        self.assertNotIn("too-few-steps", enough.diagnostic_ids())
        self.assertLessEqual({"rf.time", "rf.dram_bytes", "rf.flop.fp32"}, sampled(enough))

    def test_what_is_simulated_says_so_everywhere(self):
        folder, _, result = self.measure("train.py", "lstm", 4)
        self.assertEqual(result.stderr.count("counters and times are made up"), 1, result.stderr)
        self.assertTrue(self.report(folder)["device"]["name"].startswith("Simulated "))
        for format_, words in (("table", "SIMULATED, not measured"), ("html", "SIMULATED by a test"),
                               ("csv", "Simulated A100"), ("svg", "SIMULATED")):
            text = gpu.run([RFINJECT, "report", folder, "--format", format_], dict(os.environ)).stdout
            self.assertIn(words, re.sub(r"\s+", " ", text), format_)
            self.assertNotIn("MEASURED by", text, format_)


class Profilers(Measured):
    """torch.profiler in the program gets every kernel, by its own clock, as it does alone."""

    ATTEMPTS = 6

    def recorded(self, cupti, **more):
        # The simulated GPU's time is the program's processor time: on a machine with much to do it falls behind the
        # counter of ticks that Kineto's window is told by, and Kineto leaves out what lies before it, also alone.
        variables = gpu.environment(gpu.A100, cupti, RFINJECT_OVERHEAD=50, RFX_SIM_NOISE=0)
        variables.update(more)
        most, seen = 0, []
        for _ in range(self.ATTEMPTS):
            alone = gpu.run([gpu.PYTHON, gpu.PROGRAMS / "profiled.py", 60, 30], variables)
            with tempfile.TemporaryDirectory(prefix="rfinject-hardware-path-") as folder:
                beside = gpu.run([RFINJECT, "-o", folder + "/", gpu.PYTHON, gpu.PROGRAMS / "profiled.py", 60, 30],
                                 variables, traces=folder)
                (trace,) = rfx_trace.read_traces(folder)
            for result in alone, beside:
                self.assertEqual((result.returncode, result.stdout.splitlines()[-1:]), (0, ["trained"]), result.stderr)
            self.assertIn("program-profiler", trace.diagnostic_ids())
            self.assertEqual(len(trace.steps), 240)
            counts = [re.findall(r"recorded (\d+) kernels, (\d+) in time", result.stdout) for result in (alone, beside)]
            seen.append(counts)
            most = max(most, *(int(kernels) for kernels, _ in counts[0]))
            if most > 100 and counts[1] == [(str(most), str(most))] * 2:
                return beside
        self.fail(f"kernels, and those in time, of two recordings alone and beside rfinject: {seen}")

    def test_of_the_process(self):
        self.recorded(usual()[0])

    def test_beside_our_own_records(self):
        if cuda_major() < 13:
            self.skipTest("no CUPTI of that version has several subscribers")
        # An installed cupti-python makes rfinject share CUPTI with several.
        with tempfile.TemporaryDirectory(prefix="rfinject-hardware-path-") as packages:
            os.mkdir(packages + "/cupti")
            open(packages + "/cupti/cupti.pyi", "w").close()
            beside = self.recorded("cupti133/libcupti.so.13", RFINJECT_LOG="3",
                                   PYTHONPATH=f"{packages}{os.pathsep}{gpu.HERE / 'site'}")
        self.assertIn("cuptiActivityEnable_v2 ", beside.stderr)
        self.assertNotIn("cuptiActivityEnable ", beside.stderr)


class Operators(Measured):
    """A measured run says of operators what an estimate of the same program says: both on the virtual GPU."""

    def estimated(self, program, *arguments):
        """An estimate without the first step, which nothing measures."""
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("RFINJECT_") and name != "LD_PRELOAD"}
        result, folder = gpu.run_in_child(variables, gpu.PROGRAMS / program, *arguments,
                                          command=(RFINJECT, "--estimate", "A100-SXM4-40GB", "--skip", "1"))
        self.addCleanup(folder.cleanup)
        self.assertEqual(result.returncode, 0, result.stderr)
        return folder.name

    def work(self, folder):
        """Of a step, by layer, phase and operator: model FLOP and compulsory bytes; and the signatures."""
        report = self.report(folder, "--by", "kernel")
        sums, signatures = collections.defaultdict(collections.Counter), collections.defaultdict(set)
        for row in report["rows"]:
            if not (row["op"] or "").startswith("aten::"):
                continue
            where = row["model"], row["layer"], row["phase"], row["op"]
            for what in ("model_flop", "compulsory_bytes"):
                sums[where][what] += (row[what] or 0) / report["steps"]
            if row["signature"]:
                signatures[where].add(row["signature"])
        # What several kernels of a call share, and what launches that are alike were seen to do, may be parts of a byte.
        return {where: {what: round(amount) for what, amount in sum_.items()} for where, sum_ in sums.items()}, signatures

    def test_launches_have_the_work_that_an_estimate_gives_their_operators(self):
        for network in NETWORKS + (MORE_NETWORKS if ALL else []):
            with self.subTest(network=network):
                # Two sweeps, a slice of a step each.
                folder, _, _ = self.measure("train.py", network, 60)
                found, signatures = self.work(folder)
                expected, expected_signatures = self.work(self.estimated("train.py", network, 60))
                self.assertGreater(len(expected), 10)
                self.assertEqual({where: (expected.get(where), found.get(where)) for where in expected.keys() | found.keys()
                                  if expected.get(where) != found.get(where)}, {}, "estimated and measured")
                self.assertEqual({where: (expected_signatures[where], signatures[where]) for where in expected
                                  if expected_signatures[where] != signatures[where]}, {})


    def test_the_programs_operators_are_called_as_often_and_give_the_same(self):
        outputs = {}
        for operators in ("none", "auto", "slices", "all"):
            folder, traces, result = self.measure("results.py", 40, RFINJECT_OPERATORS=operators)
            outputs[operators] = result.stdout
            rows = self.report(folder, "--by", "kernel")["rows"]
            self.assertEqual(any(row["signature"] for row in rows), operators != "none", operators)
        self.assertEqual({operators: output for operators, output in outputs.items() if output != outputs["none"]}, {})


class Memory(Measured):
    """What PyTorch's allocator had given out at the peak, beside torch's own statistics and an estimate's."""

    def peaks(self, folder):
        result = gpu.run([RFINJECT, "report", folder, "--by", "memory", "--format", "json"], dict(os.environ))
        self.assertEqual(result.returncode, 0, result.stderr)
        (run,) = json.loads(result.stdout)["runs"][:1]
        step = run["over_step"]
        sums = [sum(bytes_) for bytes_ in zip(*step["bytes"].values())]
        self.assertEqual(len(sums), len(step["phases"]))
        # The first step's is no other's, and the peak is often in it.
        self.assertGreater(step["step"], 0)
        self.assertLessEqual(max(sums), run["allocated_bytes"])
        self.assertGreater(max(sums), run["allocated_bytes"] / 2)
        if step["step"] == run["step"]:
            self.assertEqual(max(sums), run["allocated_bytes"])
        return run["allocated_bytes"], {(row["model"], row["layer"], row["phase"]): row["bytes"] for row in run["rows"]}

    def check(self, program, *arguments):
        folder, _, result = self.measure("peak.py", program, *arguments)
        allocated, places = self.peaks(folder)
        self.assertIn(f"peak {allocated}", result.stdout.splitlines())
        self.assertEqual(sum(places.values()), allocated)
        variables = {name: value for name, value in os.environ.items()
                     if not name.startswith("RFINJECT_") and name != "LD_PRELOAD"}
        estimate, estimated = gpu.run_in_child(variables, gpu.PROGRAMS / "peak.py", program, *arguments,
                                               command=(RFINJECT, "--estimate", "A100-SXM4-40GB"))
        self.addCleanup(estimated.cleanup)
        self.assertEqual(estimate.returncode, 0, estimate.stderr)
        self.assertEqual(self.peaks(estimated.name), (allocated, places))

    def test_the_peak_is_torchs_and_where_it_lay_is_as_in_an_estimate(self):
        for network in NETWORKS + (MORE_NETWORKS if ALL else []):
            with self.subTest(network=network):
                self.check("train.py", network, 6)
        for program in ("gan.py", "scaled.py"):
            with self.subTest(program=program):
                self.check(program, 6)


class Graphs(Measured):
    """Two blocks that run the same kernels, eager and in CUDA graphs: the layers must have the same launches and FLOP."""

    WARM_UP, STEPS = 200, 60  # everything is counted before anything is captured

    def graphed(self, how, ids="ids", warm_up=WARM_UP):
        folder, (trace,), _ = self.measure("graphed.py", self.STEPS, warm_up, how, noise=0, RFX_SIM_GRAPH_IDS=ids,
                                          RFINJECT_STEPS=warm_up + self.STEPS)  # so that counters are waited for
        self.assertEqual(len(trace.steps), warm_up + self.STEPS)
        # PyTorch 2.6 fills in the state of random numbers before each launch of a graph.
        # A graph whose kernels were not all counted before it was captured is a row beside theirs, with their FLOP.
        launches = {key: count for key, count in of_traces(folder).items()
                    if "FillFunctor<long>" not in key[3] and (ids == "swapped" or ids == "grids" or key[3] != "(CUDA graph)")}
        flop = collections.Counter()
        for row in self.report(folder, "--by", "kernel")["rows"]:
            if "FillFunctor<long>" not in row["kernel"]:
                flop[row["phase"] if how == "eager" or row["kernel"] != "(CUDA graph)" else "graph"] += round(row["flop"] or 0)
        return launches, flop, trace, folder

    def test_layers_have_the_launches_and_the_flop_that_they_have_without_graphs(self):
        launches, flop, _, _ = self.graphed("eager")
        for how in ("two", "step"):
            for ids in ("ids", "none"):
                with self.subTest(how=how, ids=ids):
                    found, found_flop, trace, _ = self.graphed(how, ids)
                    self.assertEqual({key: (launches.get(key), found.get(key)) for key in launches.keys() | found.keys()
                                      if launches.get(key) != found.get(key)}, {}, "without graphs and with them")
                    self.assertAlmostEqual(sum(found_flop.values()) / sum(flop.values()), 1, delta=0.01)
                    self.assertEqual([one for one in trace.diagnostic_ids() if "graph" in one], [])

    def test_what_is_captured_while_flop_are_counted_is_seen_soon(self):
        """CUPTI numbers no node: what a graph runs is known once a step with it was timed."""
        self.STEPS = 30
        for warm_up in (4, 40):
            with self.subTest(warm_up=warm_up):
                launches, _, _, _ = self.graphed("eager", warm_up=warm_up)
                found, _, _, _ = self.graphed("step", "none", warm_up)
                self.assertEqual(found, launches)

    def test_what_does_not_run_as_it_was_captured_stays_a_graph(self):
        self.STEPS = 600  # so that a step with the graph is timed before FLOP have their turn
        for ids in ("swapped",) + (("grids",) if ALL else ()):
            with self.subTest(ids=ids):
                found, _, trace, folder = self.graphed("step", ids, warm_up=4)
                self.assertIn("graph-not-told-apart: 16", trace.diagnostic_ids())
                graphs = {key: count for key, count in found.items() if key[3] == "(CUDA graph)"}
                self.assertEqual(sum(graphs.values()), self.STEPS)
                (row,) = [row for row in self.report(folder, "--by", "kernel")["rows"] if row["kernel"] == "(CUDA graph)"]
                self.assertGreater(row["time_ns"], 0)

    def test_a_model_that_is_captured_before_it_trains(self):
        folder, (trace,), _ = self.measure("graph.py", 600, "forward")
        rows = self.report(folder, "--by", "kernel")["rows"]
        self.assertIn("graph-counters", trace.diagnostic_ids())
        # Nothing was counted outside of the graphs, so their counts are rows of their own, and times are the layers'.
        for phase, flop in (("forward", RESNET18_FORWARD), ("backward", RESNET18_BACKWARD)):
            (row,) = [row for row in rows if row["kernel"] == "(CUDA graph)" and row["phase"] == phase]
            self.assertEqual((row["layer"], row["time_ns"]), ("", 0))
            self.assertAlmostEqual(row["flop"] / row["launches"] / (4 * flop), 1, delta=0.02)
            convolutions = [row for row in rows if row["layer"] == "layer1.0.conv2" and row["phase"] == phase]
            self.assertGreater(sum(row["time_ns"] for row in convolutions), 0)
            self.assertEqual({row["launches"] for row in convolutions}, {599})


class Ranks(Measured):
    def check(self, collectives, *words, **more):
        folder, traces, _ = self.measure(*words, devices=2, **more)
        self.assertEqual(len(traces), 2)
        for trace in traces:
            self.assertNotIn("communication-not-counted", trace.diagnostic_ids())
        found = collections.Counter()
        for (model, layer, phase, kernel, _), launches in of_traces(folder).items():
            if "nccl" in kernel:
                self.assertEqual(phase, "communication", kernel)
                found[kernel.rpartition("_")[2]] += launches
        self.assertEqual(set(found), collectives)
        # Work that is no communication has its layer, but for the loss and the optimizer.
        lost = {key for key in of_traces(folder) if key[2] == "forward" and key[0] is None}
        self.assertEqual(lost, set())

    def test_ddp(self):
        self.check({"AllReduce", "Broadcast"}, "parallel.py", 12, "ddp",
                   launcher=("-m", "torch.distributed.run", "--nproc_per_node", "2"))

    def test_fsdp(self):
        self.check({"AllGather", "ReduceScatter", "AllReduce"},  # the last is the barrier's
                   HERE.parent / "forked_ranks.py", 2, gpu.PROGRAMS / "parallel.py", 12, "fsdp")


@unittest.skipUnless(ALL, "torch.compile takes half a minute: --all runs it")
class Compiled(Measured):
    def test_compiled_kernels_have_the_layer_that_was_compiled(self):
        for mode in ("default", "reduce-overhead"):
            with self.subTest(mode=mode):
                folder, _, _ = self.measure("compiled.py", 30, mode)
                rows = self.report(folder, "--by", "kernel")["rows"]
                ours = [row for row in rows if row["kernel"].startswith("triton_") and row["phase"] != "optimizer"]
                self.assertEqual({row["phase"] for row in ours}, {"forward", "backward"})
                for row in ours:
                    self.assertEqual((row["model"], row["time_ns"] > 0), ("Sequential", True), row)


if __name__ == "__main__":
    reason = unavailable()
    if reason is not None:
        print(f"note: skipped: {reason}")
        sys.exit(77)
    program = unittest.main(argv=[word for word in sys.argv if word != "--all"], exit=False)
    print("| program | CUPTI | different (layer, phase, kernel, grid) | launches | differ |\n|---|---|---:|---:|---:|")
    for line in table:
        print("|", " | ".join(map(str, line)), "|")
    sys.exit(not program.result.wasSuccessful())
