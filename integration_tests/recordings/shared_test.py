#!/usr/bin/env python3
"""Recordings and small files that lie beside the tree, ../shared: each gives what was worked out by hand for it.

    shared_test.py --rfinject BIN [unittest arguments]

Without that folder nothing is tested, which a line says.
"""
import collections
import csv
import decimal
import gzip
import itertools
import json
import pathlib
import sqlite3
import sys

from command_case import CommandCase, main

SHARED = pathlib.Path(__file__).resolve().parents[3] / "shared"
CASES, H100 = SHARED / "cases", SHARED / "h100" / "recordings"
NSYS, PUBLISHED = SHARED / "recordings" / "nsys", SHARED / "recordings" / "pytorch_profiler"
ACTIVITIES = tuple(f"CUPTI_ACTIVITY_KIND_{kind}" for kind in ("KERNEL", "MEMCPY", "MEMSET"))
GPU = ("Kernel", "Memcpy", "Memset", "kernel", "gpu_memcpy", "gpu_memset")


def kernels_of_operators(path):
    """The rows of kernels by the innermost range in which they were launched, of an export whose threads launch in order."""
    with sqlite3.connect(path) as database:
        ranges = collections.defaultdict(list)
        for thread, start, end, name in database.execute(
                "SELECT n.globalTid, n.start, n.end, COALESCE(n.text, s.value) FROM NVTX_EVENTS n LEFT JOIN StringIds s ON s.id = "
                "n.textId WHERE n.eventType = 59 AND n.end IS NOT NULL ORDER BY n.globalTid, n.start, n.end DESC"):
            ranges[thread].append((start, end, name.split(",")[0]))
        found = collections.defaultdict(list)
        for row, thread, at in database.execute(
                "SELECT k.rowid, r.globalTid, r.start FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN CUPTI_ACTIVITY_KIND_RUNTIME r ON "
                "r.correlationId = k.correlationId AND r.globalTid / 16777216 = k.globalPid / 16777216"):
            inside = [name for start, end, name in ranges[thread] if start <= at < end]
            if inside:
                found[inside[-1]].append(row)
    database.close()
    return found


class Shared(CommandCase):
    def compared(self, before, after):
        compared = json.loads(self.cli("diff", before, after, "--by", "op", "--format", "json").stdout)
        return compared["pairs"][0]["rows"]

    @staticmethod
    def real(rows):
        return [row["op"] for row in rows if row["time_change"] == "real"]

    def by_op(self, path):
        return {(row["phase"], row["op"]): row for row in self.report(path, "--by", "op")["rows"]}


class Cases(Shared):
    def test_the_innermost_operator_with_operands_has_the_cost(self):
        rows = self.by_op(CASES / "b_outer_operator_without_shapes.json")
        elements = 512 * 64 * 128 * 128
        self.assertEqual(rows["forward", "aten::gelu"]["compulsory_bytes"], 2 * 2 * elements)
        product = rows["forward", "aten::cudnn_convolution_transpose"]
        self.assertEqual(product["flop_bf16_tc"], 2 * 512 * 256 * 64 * 64 * 64 * 4)
        for row in rows.values():
            self.assertGreater(row["attainable_share"], 0.2, row["op"])
            self.assertLess(row["attainable_share"], 1, row["op"])

    def test_a_copy_inside_of_a_product_is_a_copy(self):
        report = self.report(CASES / "b_product_behind_a_longer_copy.json", "--by", "op")
        rows = {row["op"]: row for row in report["rows"]}
        self.assertEqual(rows["aten::addmm"]["flop_bf16_tc"], 2 * 2097152 * 128 * 256)
        self.assertEqual(rows["aten::addmm"]["time_ns"], 1_043_000)
        self.assertEqual((rows["aten::copy_"]["flop"] or 0, rows["aten::copy_"]["time_ns"]), (0, 1_500_000))
        self.assertEqual(report["alarms"], [])

    def test_a_precision_is_one_that_the_gpu_has(self):
        report = self.report(CASES / "o_bf16_product_on_v100.json", "--by", "op")
        row = report["rows"][0]
        self.assertEqual(row["flop_fp32"], 2 * 4096**3)
        self.assertAlmostEqual(row["attainable_share"], 2 * 4096**3 / 12e-3 / 15.7e12, 3)
        self.assertEqual(row["bound"], "compute")

    def test_causal_attention_executes_what_its_mask_leaves(self):
        row = self.report(CASES / "a2_2_causal_recording.json", "--by", "op")["rows"][0]
        self.assertEqual(row["flop_bf16_tc"], 1_099_578_736_640)
        self.assertAlmostEqual(row["attainable_share"], 0.61, 2)

    def test_nvjet_says_what_it_multiplies(self):
        row = self.report(CASES / "a3_6_nvjet_bf16.sqlite", "--by", "op")["rows"][0]
        self.assertEqual((row["flop_bf16_tc"], row["dram_bytes"]), (2 * 4096 * 4096 * 4096, 100_663_296))
        self.assertAlmostEqual(row["performance_flop_per_s"] / 1e12, 687, 0)

    def test_a_board_has_no_other_boards_roofs(self):
        self.assertIsNone(self.report(CASES / "a2_4_v100_sxm3.json")["device"]["roofs_of"])


    def test_operators_whose_names_have_words_of_phases(self):
        rows = self.by_op(CASES / "a3_8_words_in_operator_names.sqlite")
        times = {"aten::convolution_backward": ("backward", 10), "flash_attn::_flash_attn_forward": ("forward", 20),
                 "aten::native_layer_norm_backward": ("backward", 30),
                 "FSDP::pre_forward (encoder.block.14.layer.0)": ("forward", 40), "aten::mm": ("other", 50),
                 "RegisterPostBackwardFunction": ("backward", 60), "aten::_log_softmax_backward_data": ("backward", 70),
                 "FSDP::all_gather": ("other", 80), "xformers_flash::flash_bwd": ("backward", 90),
                 "_forward_unimplemented_layer": ("forward", 100)}
        self.assertEqual({op: (phase, round(row["time_ns"])) for (phase, op), row in rows.items()}, times)

    def test_a_backward_without_sizes_joins_its_forward(self):
        path = CASES / "a3_9_seq_without_sizes.sqlite"
        rows = self.report(path, "--by", "layer")["rows"]
        self.assertEqual([(row["layer"], round(row["time_ns"])) for row in rows], [("m.fc1", 2500)])
        phases = {row["phase"]: round(row["time_ns"]) for row in self.report(path, "--by", "phase")["rows"]}
        self.assertEqual(phases, {"forward": 1000, "backward": 1500})

    def test_ranges_of_another_kind_are_counted(self):
        self.assertIn("1 NVTX range of another kind was not used", self.cli("report", CASES / "a3_7_start_end_range.sqlite").stdout)


    def test_every_kernel_between_gpus_is_communication(self):
        rows = self.report(CASES / "a3_5_communication_kernels.json", "--by", "phase")["rows"]
        self.assertEqual([(row["phase"], row["launches"]) for row in rows], [("communication", 10)])

    def test_a_details_page_with_lines_that_end_early(self):
        for path in (CASES / "b_ncu_details_short_lines.csv", NSYS / "nsightful_copy_blocked_ncu_details.csv"):
            row = self.report(path, "--by", "kernel")["rows"][0]
            self.assertEqual((row["time_ns"], row["dram_bytes"]), (21_058_944, 4_137_159_648))
            self.assertIn("21.1 ms of GPU time", self.cli("doctor", path).stdout)

    def test_the_raw_page_names_the_board(self):
        path = next((SHARED / "h100" / "ncu").glob("*.csv.gz"))
        self.assertEqual(self.report(path)["device"]["roofs_of"], "H100-SXM5-80GB")

    def said(self, name):
        return {one["id"]: one["text"] for one in self.report(CASES / name)["diagnostics"]}

    def kernels(self, name):
        return {row["kernel"]: round(row["time_ns"]) for row in self.report(CASES / name, "--by", "kernel")["rows"]}

    def test_what_is_wrong_in_a_recording_is_counted(self):
        self.assertEqual(self.kernels("a3_1_unescaped_quote_in_a_name.json"), {"k_one": 10_000, "k_two": 20_000})
        self.assertIn("1 event is no JSON", self.said("a3_1_unescaped_quote_in_a_name.json")["events-unreadable"])
        self.assertEqual(self.kernels("a3_2_overlap_in_one_stream.json"), {"A": 100_000, "B": 50_000, "C": 50_000})
        self.assertTrue(self.said("a3_2_overlap_in_one_stream.json")["kernels-overlap"].endswith(" of A"))
        self.assertIn("of 3 launches 2 have no kernel", self.said("a3_3_launches_without_kernels.json")["kernels-not-recorded"])
        self.assertIn("2 GPUs, whose times are added up", self.said("o_two_gpus_in_one_file.json")["several-gpus"])

    def test_what_a_recording_cannot_tell_is_said(self):
        name = "a1_9_10_recording_of_grouped_mm_and_varlen.json"
        rows = self.by_op(CASES / name)
        self.assertEqual(rows["forward", "aten::_grouped_mm"]["model_flop"], 2 * 8192 * 4096 * 14336)
        self.assertEqual(rows["forward", "flash_attn::_flash_attn_varlen_forward"]["model_flop"] or 0, 0)
        self.assertIn("_flash_attn_varlen_forward: the file has no lengths of its sequences", self.said(name)["work-not-known"])

    def test_who_is_late_at_a_collective(self):
        for rank in (0, 1):
            (self.folder / f"rank{rank}.json").write_bytes((CASES / f"a3_11_rank{rank}.json").read_bytes())
        said = self.cli("report", "rank0.json", "rank1.json", "--by", "rank").stdout.replace("\n  ", " ")
        self.assertIn("rank 1 is late by 50.0 ms, the transfer takes 10.0 ms, and rank 0 waits 50.0 ms", said)

    def test_other_sources_of_a_recording_are_used(self):
        self.assertIn("dram__throughput.avg.pct_of_peak_sustained_elapsed 37.5 (5)",
                      self.said("a3_13_hardware_counters.json")["counters-over-time"])
        name = "a3_15_inductor_args_and_graph_fqn.json"
        rows = {row["kernel"]: row for row in self.report(CASES / name, "--by", "kernel")["rows"]}
        compiled = rows["triton_poi_fused_add_0"]
        self.assertEqual((compiled["flop"], compiled["compulsory_bytes"]), (1_048_576, 12_582_912))
        self.assertEqual(rows["ampere_sgemm_128x64_tn"]["layer"], "model.layers.0.mlp.up_proj")
        self.assertIn("Inductor's own", self.said(name)["work-of-the-compiler"])


class Exports(Shared):
    def test_operators_have_the_time_of_their_ranges(self):
        for name in ("nsysai_h100_2gpu_1s", "nsysai_mfu_2gpu_after"):
            path = self.folder / f"{name}.sqlite"
            path.write_bytes(gzip.decompress((NSYS / f"{name}.sqlite.gz").read_bytes()))
            with open(NSYS / f"{name}_truth_by_op.csv", encoding="utf-8") as file:
                truth = {row["innermost_range"]: (int(row["kernels"]), int(row["ns"])) for row in csv.DictReader(file)}
            report = self.report(path, "--by", "kernel")
            found = collections.defaultdict(lambda: [0, 0])
            for row in report["rows"]:
                if not row["kernel"].lower().startswith(("memcpy", "memset")):
                    found[row["op"]][0] += row["launches"]
                    found[row["op"]][1] += round(row["time_ns"])
            self.assertEqual({op: tuple(sums) for op, sums in found.items()}, truth)
            self.assertEqual(report["alarms"], [])


    def unpacked(self, name, *statements):
        """The export of two GPUs without steps, with some SQL done to it."""
        path = self.folder / f"{name}.sqlite"
        path.write_bytes(gzip.decompress((NSYS / "nsysai_mfu_2gpu_after.sqlite.gz").read_bytes()))
        with sqlite3.connect(path) as database:
            for statement in statements:
                database.execute(statement)
        database.close()
        return path

    def slower(self, path, rows):
        """A copy of an export in which the kernels of these rows take 5 % longer, and what begins later on their GPU is later."""
        copy = path.with_name("slower.sqlite")
        copy.write_bytes(path.read_bytes())
        with sqlite3.connect(copy) as database:
            ran = sorted((device, start, table, row, end) for table in ACTIVITIES for device, start, row, end in
                         database.execute(f"SELECT deviceId, start, rowid, end FROM {table}"))
            later, slow = collections.Counter(), set(rows)
            moved = collections.defaultdict(list)
            for device, start, table, row, end in ran:
                longer = (end - start) * 5 // 100 if table == ACTIVITIES[0] and row in slow else 0
                moved[table].append((start + later[device], end + later[device] + longer, row))
                later[device] += longer
            for table, times in moved.items():
                database.executemany(f"UPDATE {table} SET start = ?, end = ? WHERE rowid = ?", times)
        database.close()
        return copy

    # Kernels of 1.4 us (rsqrt), kernels that do work of two sizes in turn (cat, addmm, mul) and rows of many keys (copy_)
    # are among the operators.
    def test_one_slower_operator_alone_is_real(self):
        before = self.unpacked("before")
        kernels = kernels_of_operators(before)
        self.assertEqual(len(kernels), 13)
        for op, rows in kernels.items():
            compared = self.compared(before, self.slower(before, rows))
            self.assertEqual(self.real(compared), [op])
            self.assertEqual({row["time_change"] for row in compared}, {"real", "same"})
            changed = next(row for row in compared if row["time_change"] == "real")
            self.assertLess(changed["time_ci95_ns"], changed["time_after_ns"] - changed["time_before_ns"], op)

    # The two GPUs ran the same program. 5 % of a launch of rsqrt are 71 ns, which no two runs have in common; NCCL waits for
    # the other GPU.
    def test_one_slower_operator_of_another_run_is_real(self):
        first, second = (self.unpacked(f"gpu{device}", *(
            f"{statement} {table} {rest}" for table in ACTIVITIES
            for statement, rest in (("DELETE FROM", f"WHERE deviceId <> {device}"), ("UPDATE", "SET deviceId = 0"))))
            for device in (0, 1))
        self.assertEqual(self.real(self.compared(first, second)), [])
        for op, rows in kernels_of_operators(second).items():
            told = op not in ("aten::rsqrt", "ncclGroupEnd")
            self.assertEqual(self.real(self.compared(first, self.slower(second, rows))), [op] if told else [])

    def test_the_order_of_launches_is_in_an_imported_trace(self):
        before = self.unpacked("before")
        after = self.slower(before, kernels_of_operators(before)["aten::cat"])
        changes = [[(row["op"], row["time_change"], row["time_ci95_ns"]) for row in self.compared(before, after)]]
        for path in (before, after):
            self.cli("import", "nsys", path, "-o", path.with_suffix(".rfx"))
        changes.append([(row["op"], row["time_change"], row["time_ci95_ns"])
                        for row in self.compared(before.with_suffix(".rfx"), after.with_suffix(".rfx"))])
        self.assertEqual(*changes)
        self.assertIn("real", [change for _, change, _ in changes[0]])

    def test_what_copies_are_bound_by_is_said_of_copies(self):
        text = self.cli("report", NSYS / "nsightful_power_iteration_nsys.sqlite.gz").stdout
        self.assertIn("FLOP and bytes are known of <0.1 % of GPU", text)
        self.assertNotIn("bound by PCIe", text)
        change = self.cli("report", NSYS / "nsysai_h100_2gpu_1s.sqlite.gz").stdout.split("What to change")[1]
        self.assertIn("Held back by PCIe 96 % of GPU time", change)
        change = " ".join(change.split())
        self.assertIn("data (in no layer), bound by PCIe", change)
        # 50,950,507,602 bytes in 1,841,638,670 ns; PCIe 5 x16.
        self.assertIn("copies between host and GPU run at 27.7 GB/s of the link's 63.0 GB/s", change)
        # Where nothing says which GPU it was, the bytes do not need it.
        (self.folder / "trace.sqlite.gz").write_bytes((NSYS / "nsysai_h100_2gpu_1s.sqlite.gz").read_bytes())
        change = " ".join(self.cli("report", "trace.sqlite.gz").stdout.split("What to change")[1].split())
        self.assertIn("copies between host and GPU are 96 % of GPU time, and run at 27.7 GB/s", change)

    def test_copies_have_their_time_and_bytes(self):
        path = self.folder / "power.sqlite"
        path.write_bytes(gzip.decompress((NSYS / "nsightful_power_iteration_nsys.sqlite.gz").read_bytes()))
        found = collections.defaultdict(lambda: [0, 0, 0])
        for row in self.report(path, "--by", "kernel")["rows"]:
            sums = found[row["kernel"].lower().startswith(("memcpy", "memset"))]
            sums[0] += row["launches"]
            sums[1] += round(row["time_ns"])
            sums[2] += row["pcie_bytes"] or 0
        self.assertEqual(found[False][:2], [3689, 1_131_742_684])
        self.assertEqual(found[True], [89, 322_040, 2_883_944])


class OwnRecordings(Shared):
    def test_they_are_right_and_nothing_is_above_a_roof(self):
        paths = sorted(path for path in H100.glob("*.json.gz") if "log" not in path.name)
        self.assertEqual(len(paths), 3)
        for path in paths:
            for by in ("layer", "op", "kernel", "phase"):
                report = self.report(path, "--by", by)
                self.assertEqual(report["alarms"], [], path.name)
                for row in report["rows"]:
                    self.assertLessEqual(row["attainable_share"] or 0, 1.0005, (path.name, row))

    def test_units_are_those_of_the_operands(self):
        wanted = {"gpt_batch_8_precision_bf16": "flop_bf16_tc", "resnet50_batch_128_precision_amp_channelslast": "flop_fp16_tc",
                  "resnet18_batch_256_precision_fp32": "flop_fp32"}
        for name, unit in wanted.items():
            rows = self.report(H100 / f"{name}.json.gz", "--by", "op")["rows"]
            products = [row for row in rows if row["op"].rsplit("::", 1)[-1] in
                        ("mm", "addmm", "bmm", "convolution", "convolution_backward")]
            self.assertGreater(len(products), 1)
            for row in products:
                # The vectors' part of a product is what a bias and a scale add.
                self.assertGreater(row[unit], 0.99 * row["flop"], (name, row["op"]))


class Published(Shared):
    # Four ranks of one job, and one program twice.
    def test_two_runs_of_one_program_show_no_change(self):
        ranks = [PUBLISHED / f"v100_dlrm_rank{rank}.json.gz" for rank in range(4)]
        twice = sorted(PUBLISHED.glob("v100_resnet50_*.json.gz"))
        self.assertEqual(len(twice), 2)
        for before, after in [*itertools.combinations(ranks, 2), twice]:
            rows = self.compared(before, after)
            self.assertEqual(self.real(rows), [], (before.name, after.name))
            self.assertGreater(sum(row["time_change"] == "noise" for row in rows), 15, "they are compared")

    def test_the_rank_that_comes_last_to_an_all_to_all(self):
        ranks = [PUBLISHED / f"v100_dlrm_rank{rank}.json.gz" for rank in range(4)]
        said = self.cli("report", *ranks, "--by", "rank").stdout.replace("\n  ", " ")
        self.assertRegex(said, r"In \d+ collectives the ranks meet at the end: rank 2 is late by .*, and rank 1 waits ")

    def test_all_time_of_a_file_is_in_its_report(self):
        paths = [*PUBLISHED.glob("*.json.gz"), *(path for path in H100.glob("*.json.gz") if "log" not in path.name)]
        self.assertGreater(len(paths), 30)
        for path in sorted(paths):
            with gzip.open(path, "rt", encoding="utf-8") as file:
                events = json.load(file, strict=False, parse_float=decimal.Decimal)
            events = events["traceEvents"] if isinstance(events, dict) else events
            ns = sum(int(decimal.Decimal(event["dur"]) * 1000) for event in events
                     if event.get("ph") == "X" and event.get("cat") in GPU)
            if ns > 0:
                self.assertEqual(round(sum(row["time_ns"] for row in self.report(path)["rows"])), ns, path.name)


if __name__ == "__main__":
    if not CASES.is_dir() or not H100.is_dir():
        print(f"note: {SHARED} is not here")
        sys.exit(77)
    main()
