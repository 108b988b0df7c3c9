#!/usr/bin/env python3
"""Pictures and pages are well-formed, whatever the names and the numbers in them are.

    well_formed_test.py EMIT_SAMPLE_PAGE RFINJECT MAKE_TRACE [unittest's arguments]

Python's XML parser (expat) reads each SVG, and its HTML parser each page. The reports are those of EMIT_SAMPLE_PAGE
(cli/format/testing) and what RFINJECT makes of the traces of MAKE_TRACE (cli/testing), hostile names and broken UTF-8
among them.
"""

import base64
import html.parser
import json
import pathlib
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree
import zlib

SVG = "{http://www.w3.org/2000/svg}"
SAMPLES = ("small", "resnet", "kernels", "both", "measured", "hostile", "long", "empty", "none", "large:700")
TRACES = ("v100", "a100", "measured", "tiny", "hostile", "random:2", "random:3", "random:4")
ORDERS = ("model", "phase", "layer", "op", "kernel")

VOID = {"meta", "br", "input"}
# Elements whose end tag HTML lets one omit: the next such element, or the end of what holds them, ends them.
OPTIONAL_END = {"th"}
TAGS = VOID | {"html", "head", "title", "style", "body", "header", "h1", "h2", "button", "div", "ul", "li", "section", "b",
               "code", "noscript", "p", "span", "label", "output", "main", "figure", "table", "thead", "tbody", "tfoot", "tr",
               "th", "td", "details", "summary", "dl", "dt", "dd", "script", "svg", "desc", "rect", "polyline", "g", "path",
               "text", "pre"}


class Page(html.parser.HTMLParser):
    """Checks that each element that opens is ours and closes, and that no text holds a bare "<" or "&"."""

    def __init__(self, text):
        super().__init__(convert_charrefs=False)
        self.open, self.problems, self.scripts, self.script_text = [], [], [], None
        self.feed(text)
        self.close()
        if self.open:
            self.problems.append(f"never closed: {self.open}")

    def problem(self, text):
        self.problems.append(f"line {self.getpos()[0]}: {text}")

    def handle_starttag(self, tag, attrs):
        if tag not in TAGS:
            self.problem(f"<{tag}> is none of ours")
        names = [name for name, _ in attrs]
        if any(name.startswith("on") for name in names) or len(names) != len(set(names)):
            self.problem(f"attributes of <{tag}>: {names}")
        if tag in OPTIONAL_END and self.open and self.open[-1] == tag:
            self.open.pop()
        if tag not in VOID:
            self.open.append(tag)
        if tag == "script":
            self.scripts.append(dict(attrs))

    def handle_startendtag(self, tag, attrs):
        if "svg" not in self.open:
            self.problem(f"<{tag}/> outside of SVG")

    def handle_endtag(self, tag):
        while self.open and self.open[-1] in OPTIONAL_END and self.open[-1] != tag:
            self.open.pop()
        if not self.open or self.open.pop() != tag:
            self.problem(f"</{tag}> ends nothing")

    def handle_data(self, data):
        where = self.open[-1] if self.open else ""
        if where == "script" and self.scripts[-1].get("type") == "application/json":
            self.script_text = (self.script_text or "") + data
        elif where not in ("script", "style") and ("<" in data or "&" in data):
            self.problem(f"bare text {data[:60]!r}")

    def handle_comment(self, data):
        self.problem(f"a comment: {data[:60]!r}")


class WellFormed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-pictures-")
        cls.traces = {}
        for kind in TRACES:
            path = pathlib.Path(cls.folder.name, kind.replace(":", "-") + ".rfx")
            subprocess.run([MAKE_TRACE, kind, path], check=True)
            cls.traces[kind] = path

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def output_of(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def check_svg(self, data):
        root = xml.etree.ElementTree.fromstring(data)
        self.assertEqual(root.tag, SVG + "svg")
        for element in root.iter():
            self.assertTrue(element.tag.startswith(SVG), element.tag)
            self.assertNotIn(element.tag, (SVG + "script", SVG + "foreignObject", SVG + "a"))
            self.assertFalse([name for name in element.attrib if name.startswith("on") or name.endswith("href")])
        return root

    def check_html(self, data, scripts, with_data=True):
        text = data.decode("utf-8")
        page = Page(text)
        self.assertEqual(page.problems, [])
        self.assertEqual(len(page.scripts), scripts)
        if with_data:
            packed = page.scripts[0].get("data-encoding") == "deflate"
            json.loads(zlib.decompress(base64.b64decode(page.script_text)) if packed else page.script_text)
        for part in text.split("<svg ")[1:]:  # each picture is XML by itself, too
            self.check_svg("<svg " + part.split("</svg>")[0] + "</svg>")

    def test_samples(self):
        for kind in SAMPLES:
            with self.subTest(kind=kind, form="svg"):
                if kind != "none":  # which has no picture
                    self.check_svg(self.output_of(TOOL, "svg", kind))
            with self.subTest(kind=kind, form="html"):
                self.check_html(self.output_of(TOOL, "html", kind), 1 if kind == "none" else 2, with_data=kind != "none")

    def test_reports(self):
        for kind, trace in self.traces.items():
            for order in ORDERS:
                with self.subTest(kind=kind, order=order):
                    self.check_svg(self.output_of(RFINJECT, "report", trace, "--by", order, "--format", "svg"))
                    self.check_html(self.output_of(RFINJECT, "report", trace, "--by", order, "--format", "html"), 2)

    def test_comparisons(self):
        for before, after in (("v100", "a100"), ("random:2", "random:4"), ("hostile", "hostile")):
            with self.subTest(before=before, after=after):
                diff = (RFINJECT, "diff", self.traces[before], self.traces[after], "--format")
                self.check_svg(self.output_of(*diff, "svg"))
                self.check_html(self.output_of(*diff, "html"), 1, with_data=False)

    def test_sweeps(self):
        runs = [self.traces[kind] for kind in ("v100", "a100", "measured")]
        sweep = (RFINJECT, "report", *runs, "--by", "run", "--format")
        self.check_svg(self.output_of(*sweep, "svg"))
        self.check_html(self.output_of(*sweep, "html"), 2)

    def test_what_a_step_takes_less_than_the_clock_tells(self):
        # Kernels of the first steps alone take less than 1 ns a step in a long run.
        root = self.check_svg(self.output_of(TOOL, "svg", "long"))
        titles = [path.findtext(SVG + "title") or "" for path in root.iter(SVG + "path")]
        self.assertTrue(any("\n<1 ns a step" in title for title in titles), titles)


if __name__ == "__main__":
    TOOL, RFINJECT, MAKE_TRACE = sys.argv[1:4]
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)
