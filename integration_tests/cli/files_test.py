"""Which files are read, added up, left out and replaced."""
import json
import os
import pathlib
import shutil
import stat
import subprocess

from command import CliTest, OPTIONS, main


class MergeTest(CliTest):
    def test_any_order_and_grouping_gives_the_same_bytes(self):
        names = [str(self.trace(f"random:{i}")) for i in range(1, 7)]
        self.assertEqual(self.run_cli("merge", *names, "-o", "all.rfx").returncode, 0)
        self.assertEqual(self.run_cli("merge", *reversed(names), "-o", "reversed.rfx").returncode, 0)
        self.run_cli("merge", *names[:2], "-o", "x.rfx")
        self.run_cli("merge", names[5], *names[2:5], "-o", "y.rfx")
        self.run_cli("merge", "y.rfx", "x.rfx", "-o", "tree.rfx")
        expected = (self.folder / "all.rfx").read_bytes()
        self.assertEqual((self.folder / "reversed.rfx").read_bytes(), expected)
        self.assertEqual((self.folder / "tree.rfx").read_bytes(), expected)
        self.assertEqual(stat.S_IMODE((self.folder / "all.rfx").stat().st_mode), 0o600)

    def test_as_many_processors_as_there_are_give_the_same_bytes_and_messages(self):
        # There are ranks, a copy, a merged trace beside its parts, a trace that was cut, a file that is no trace, and
        # a trace in other units.
        for i in range(1, 41):
            self.trace(f"process:{i}", f"in/{i:02}.rfx")
        shutil.copy(self.folder / "in/07.rfx", self.folder / "in/again-07.rfx")
        whole = (self.folder / "in/12.rfx").read_bytes()
        (self.folder / "in/12.rfx").write_bytes(whole[:-9])
        self.trace("garbage", "in/30-garbage.rfx")
        for i in range(1, 6):
            self.trace(f"random:{i}", f"in/random-{i}.rfx")
        merged = self.folder / "in/13-14.rfx"
        self.assertEqual(self.run_cli("merge", "in/13.rfx", "in/14.rfx", "-o", merged).returncode, 0)
        processors = os.sched_getaffinity(0)
        seen = set()
        for count in sorted({1, 2, len(processors)}):
            few = set(sorted(processors)[:count])
            for again in range(5 if count > 1 else 1):
                result = self.run_cli("merge", "in", "-o", "out.rfx", "--force",
                                      preexec_fn=lambda: os.sched_setaffinity(0, few))
                self.assertEqual(result.returncode, 1)
                seen.add((result.stderr, (self.folder / "out.rfx").read_bytes()))
        self.assertEqual(len(seen), 1, [stderr for stderr, _ in seen])
        self.assertIn("not counted again", next(iter(seen))[0])

    def test_neither_order_nor_grouping_matters(self):
        for i in range(1, 8):
            self.trace(f"process:{i}", f"{i}.rfx")
        names = [f"{i}.rfx" for i in range(1, 8)]
        self.run_cli("merge", "6.rfx", "2.rfx", "-o", "some.rfx")
        self.run_cli("merge", "some.rfx", "7.rfx", "-o", "more.rfx")
        merged = set()
        for words in (names, names[::-1], ["1.rfx", "more.rfx", "3.rfx", "5.rfx", "4.rfx"], [*names, "some.rfx"]):
            result = self.run_cli("merge", *words, "-o", "out.rfx", "--force")
            self.assertEqual(result.returncode, 0, result.stderr)
            merged.add((self.folder / "out.rfx").read_bytes())
        self.assertEqual(len(merged), 1)

    def test_a_merged_trace_reports_as_its_parts(self):
        a, b = self.trace("process:1", "a.rfx"), self.trace("process:2", "b.rfx")
        self.run_cli("merge", a, b, "-o", "ab.rfx")
        one, both = (json.loads(self.run_cli("report", trace, "--format", "json").stdout) for trace in (a, "ab.rfx"))
        self.assertEqual(both["process_count"], 2 * one["process_count"])
        self.assertEqual(both["steps"], 2 * one["steps"])
        for before, after in zip(one["rows"], both["rows"]):
            self.assertEqual((2 * before["launches"], 2 * before["time_ns"]), (after["launches"], after["time_ns"]))
        self.assertEqual(one["summary"]["flop"] * 2, both["summary"]["flop"])
        measured = self.trace("measured")
        self.assertEqual(self.run_cli("merge", measured, self.trace("a100"), "-o", "two.rfx").stderr, "")
        result = self.run_cli("merge", measured, self.trace("hostile"), self.trace("a100"), "-o", "x.rfx")
        self.assertRegex(result.stderr, "did not run the operators of .*, to which it is added: ")

    def test_needs_an_output(self):
        self.assert_complains(self.run_cli("merge", "a.rfx"), 2, "-o FILE is missing")


    def processes(self, path):
        result = self.run_cli("report", path, "--format", "json")
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["processes"]

    def test_nothing_is_counted_twice(self):
        a, b = self.trace("process:1", "in/a.rfx"), self.trace("process:2", "in/b.rfx")
        merged = self.folder / "in" / "all.rfx"
        for _ in range(3):  # from the second time on the folder holds what was merged
            result = self.run_cli("merge", "in", "-o", merged)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(self.processes(merged)), 2)
        self.assertRegex(result.stderr, r"in/a\.rfx: not counted again: what is in it is in in/all\.rfx")
        # A file that is named twice, a copy, a link, a folder and a file of it.
        shutil.copy(a, self.folder / "copy.rfx")
        for words in (["in/a.rfx", "in/a.rfx"], ["in/a.rfx", "copy.rfx"]):
            result = self.run_cli("report", *words, "--format", "json")
            self.assertEqual(result.returncode, 0)
            self.assertIn("not counted again", result.stderr)
            self.assertEqual(len(json.loads(result.stdout)["processes"]), 1)
        self.assertIn("not counted again", self.run_cli("merge", "in", "in/a.rfx", "-o", "twice.rfx").stderr)
        self.assertEqual(len(self.processes("twice.rfx")), 2)
        # Another trace of the same program is another trace.
        self.assertEqual(self.run_cli("merge", a, b, "-o", "ab.rfx").stderr, "")
        # Parts that overlap cannot be told apart.
        self.trace("process:3", "c.rfx")
        self.assertEqual(self.run_cli("merge", b, "c.rfx", "-o", "bc.rfx").returncode, 0)
        result = self.run_cli("merge", "ab.rfx", "bc.rfx", "-o", "abc.rfx")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "not added: 1 of its 2 traces are in ")
        # When the missing part is given beside it, everything is there.
        self.assertEqual(self.run_cli("merge", "c.rfx", "in", "-o", "abc.rfx", "--force").returncode, 0)
        self.assertEqual(len(self.processes("abc.rfx")), 3)

    def test_of_a_copy_taken_on_the_way_and_the_whole_the_whole_counts(self):
        whole = self.trace("process:1", "whole.rfx")
        data = whole.read_bytes()
        second = data.index(b"RFXC", data.index(b"RFXC") + 4)
        (self.folder / "earlier.rfx").write_bytes(data[:second])
        outputs = set()
        for words in (["whole.rfx", "earlier.rfx"], ["earlier.rfx", "whole.rfx"]):
            result = self.run_cli("report", *words, "--format", "json")
            self.assertRegex(result.stderr, "earlier.rfx: not counted again")
            outputs.add(result.stdout)
        self.assertEqual(outputs, {self.run_cli("report", "whole.rfx", "--format", "json").stdout})

    def test_traces_without_an_id_count_once_too(self):
        self.trace("v100", "x.rfx")
        shutil.copy(self.folder / "x.rfx", self.folder / "y.rfx")
        result = self.run_cli("merge", "x.rfx", "y.rfx", "-o", "z.rfx")
        self.assertIn("y.rfx: not counted again", result.stderr)
        result = self.run_cli("merge", "x.rfx", "z.rfx", "-o", "zz.rfx")
        self.assertIn("not counted again", result.stderr)
        self.assertEqual((self.folder / "z.rfx").read_bytes(), (self.folder / "zz.rfx").read_bytes())


class CopiesTest(CliTest):
    def test_many_copies_are_one_line(self):
        first = self.trace("process:1", "in/a.rfx")
        for number in range(40):
            shutil.copy(first, self.folder / f"in/copy{number:02}.rfx")
        for words in (["runs", "in"], ["merge", "in", "-o", "all.rfx"]):
            result = self.run_cli(*words)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(result.stderr, "rfinject: 40 files are not counted again, because what is in them is in others: "
                             "in/copy00.rfx is the first, and what is in it is in in/a.rfx\n")


class OverwritingTest(CliTest):
    def refused(self, *words, path, why):
        before = pathlib.Path(path).read_bytes()
        self.assert_complains(self.run_cli(*words), 1, why)
        self.assertEqual(pathlib.Path(path).read_bytes(), before)

    def test_an_input_is_never_replaced(self):
        path = self.trace("process:1", "in/a.rfx")
        os.link(path, self.folder / "link.rfx")
        for words in (["report", path, "-o", path], ["report", "in", "-o", path], ["report", path, "-o", path, "--force"],
                      ["report", path, "-o", "in/../in/a.rfx"], ["report", path, "-o", "link.rfx", "--force"],
                      ["diff", path, path, "-o", path, "--force"], ["merge", path, "-o", path, "--force"],
                      ["merge", "in", "-o", path], ["report", path, "--theory", "link.rfx", "-o", "link.rfx", "--force"]):
            self.refused(*words, path=path, why="is one of the inputs, which are never replaced")
        csv_file = self.folder / "kernels.csv"
        csv_file.write_text("x")
        self.refused("import", "ncu", csv_file, "-o", csv_file, "--force", path=csv_file, why="is one of the inputs")

    def test_a_merged_trace_is_replaced_by_what_holds_it(self):
        self.trace("process:1", "in/a.rfx")
        self.assertEqual(self.run_cli("merge", "in", "-o", "in/all.rfx").returncode, 0)
        (self.folder / "in/a.rfx").unlink()
        self.trace("process:2", "in/b.rfx")
        self.assertEqual(self.run_cli("merge", "in", "-o", "in/all.rfx").returncode, 0)
        self.assertEqual(len(json.loads(self.run_cli("report", "in/all.rfx", "--format", "json").stdout)["processes"]), 2)
        # It is not replaced when a part of it could not be read.
        data = bytearray((self.folder / "in/all.rfx").read_bytes())
        data[-20] ^= 1
        (self.folder / "in/all.rfx").write_bytes(data)
        result = self.run_cli("merge", "in", "-o", "in/all.rfx")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "not replaced|never replaced")
        self.assertEqual((self.folder / "in/all.rfx").read_bytes(), data)

    def test_what_exists_is_replaced_only_if_asked(self):
        path = self.trace("a100")
        process = self.trace("process:1", "process.rfx")
        for text in (b"notes\n", b"\0" * 10000, process.read_bytes(),
                     self.run_cli("report", path, "--format", "csv").stdout.encode()):
            for words in (["report", path], ["diff", path, path], ["merge", path]):
                out = self.folder / "out"
                out.write_bytes(text)
                self.refused(*words, "-o", out, path=out, why="--force replaces it")
                self.assertEqual(self.run_cli(*words, "-o", out, "--force").returncode, 0)
                self.assertNotEqual(out.read_bytes(), text)
        self.assertEqual(sorted(p.name for p in self.folder.iterdir()), ["a100.rfx", "out", "process.rfx"])

    def test_an_empty_file_is_filled(self):
        (self.folder / "empty").touch()
        self.assertEqual(self.run_cli("report", self.trace("a100"), "-o", "empty").returncode, 0)
        self.assertEqual(stat.S_IMODE((self.folder / "empty").stat().st_mode), 0o600)

    def test_a_closed_stream_is_not_the_output_file(self):
        cut = self.folder / "cut.rfx"  # so that there is something to say on standard error
        cut.write_bytes(self.trace("process:1", "whole").read_bytes()[:-3])
        for closed in ("0<&-", "1>&-", "2>&-", "0<&- 1>&- 2>&-"):
            subprocess.run(["sh", "-c", f'exec "$0" "$@" {closed}', OPTIONS.rfinject, "report", cut, "-o", "out.json"],
                           cwd=self.folder, env=self.environment, stderr=subprocess.DEVNULL, timeout=60)
            json.loads((self.folder / "out.json").read_text())


class LimitTest(CliTest):
    """What a small file can name does not make a large output, and the output says what it left out."""

    def output(self, *words):
        result = self.run_cli(*words)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result

    def test_runs(self):
        path = self.trace("runs:40")
        said = "only the 3 of 40 runs with the most launches are shown"
        for form in ("table", "json", "html", "svg"):
            all_of_them = self.output("report", path, "--format", form)
            self.assertEqual(all_of_them.stderr, "")
            some = self.output("report", path, "--format", form, "--limit", "runs=3")
            self.assertIn(said, some.stderr)
            self.assertIn(said, some.stdout.replace("\n  ", " "), form)
            self.assertLess(len(some.stdout), len(all_of_them.stdout) / 3, form)
        self.assertIn(said, self.output("report", path, "--format", "csv", "--limit=runs=3").stderr)
        self.assertIn(said, self.output("diff", path, path, "--limit=runs=3").stderr)
        self.assertEqual(self.output("report", path, "--by", "run", "--limit", "runs=0").stderr, "")

    def test_runs_by_default(self):
        path = self.trace("runs:1500")
        result = self.output("report", path, "--by", "run", "--format", "csv")
        self.assertIn("only the 1000 of 1500 runs", result.stderr)

    def test_rows(self):
        path = self.trace("measured")
        result = self.output("report", path, "--by", "kernel", "--format", "json", "--limit", "rows=5")
        self.assertIn("(beyond the limit)", result.stdout)
        self.assertIn("launch keys with the least time are added up", result.stderr)
        whole = json.loads(self.output("report", path, "--by", "kernel", "--format", "json").stdout)
        some = json.loads(result.stdout)
        self.assertLess(len(some["rows"]), len(whole["rows"]))
        self.assertAlmostEqual(some["summary"]["time_ns"], whole["summary"]["time_ns"], delta=whole["summary"]["time_ns"] * 1e-5)

    def test_names(self):
        path = self.trace("name:1500000")
        for form in ("table", "json", "csv", "html", "svg"):
            result = self.output("report", path, "--by", "kernel", "--format", form)
            self.assertIn("texts of more than 16384 bytes are cut", result.stderr)
            self.assertLess(len(result.stdout), 2000000, form)
        exact = self.output("report", path, "--by", "kernel", "--format", "json", "--limit", "name=0")
        self.assertIn("x" * 1500000, exact.stdout)

    def test_mistakes(self):
        path = self.trace("a100")
        for text in ("runs", "runs=", "runs=x", "lines=3", "runs=1,,"):
            self.assert_complains(self.run_cli("report", path, "--limit", text), 2, "--limit wants")


if __name__ == "__main__":
    main()
