"""What the tests of pages in a browser share: pages of known reports, and what they show, read from the screen.

EMIT_SAMPLE_PAGE (cli/format/testing), the first argument of each test, writes pages of known Reports and, apart from that,
their rows as JSON; what the page shows is compared with those rows. The tests exit with 77 (skipped) where there is no
browser.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

import cdp

PREFIXES = {"": 1, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
            "E": 1e18}
UNITS = ("FLOP/s", "FLOP/B", "FLOP", "B/s", "B", "s", "%")
PHONE = 390  # pixels wide


def number(text):
    """'1.244 TB/s' is 1.244e12; a share in percent comes back as a share of 1."""
    match = re.fullmatch(r"([-+0-9.e\u202f]+)\s*(.*)", text)
    value, unit = float(match[1].replace("\u202f", "")), match[2]
    for known in UNITS:
        if unit.endswith(known):
            unit = unit[:len(unit) - len(known)]
            if known == "%":
                value /= 100
            break
    return value * PREFIXES[unit]


def name_of(row):
    return row["layer"] or row["model"] or ""


class PageTest(unittest.TestCase):
    tool = None  # emit_sample_page's path

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="rfinject-html-")
        cls.browser = cdp.Browser()
        cls.pages = []

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.folder.cleanup()

    def path(self, kind, form="html"):
        path = pathlib.Path(self.folder.name, f"{kind.replace(':', '-')}.{form}")
        if not path.exists():
            with open(path, "wb") as out:
                subprocess.run([self.tool, form, kind], stdout=out, check=True)
        return path

    def rows(self, kind):
        return json.loads(self.path(kind, "rows").read_text())

    def open(self, kind, grouped=False, **options):
        """The page of that kind. Its rows are those of rows(kind), unless it is `grouped`, as a user finds it."""
        page = self.browser.open(self.path(kind), **options)
        page.wait_until("'ready' in document.documentElement.dataset")  # the script has read a long table
        page.settle()
        if not grouped and page.evaluate("(() => { const box = document.querySelector('.grouped'); box?.click(); return !!box; })()"):
            page.settle()
        self.addCleanup(self.check_quiet, page, kind)
        return page

    def check_quiet(self, page, kind):
        self.assertEqual(page.console, [], kind)
        self.assertEqual(page.requests, [self.path(kind).resolve().as_uri()], "the page asked for something")

    # --- What the page shows, read from the screen.

    def marks(self, page, picture="roofline0"):
        """[row, centre x, centre y] of every visible mark, in client coordinates."""
        return page.evaluate(f"""[...document.querySelectorAll('#{picture} .m')]
            .filter(e => getComputedStyle(e).visibility === 'visible' && e.getClientRects().length > 0)
            .map(e => {{ const r = e.getBoundingClientRect(); return [+e.dataset.i, r.x + r.width / 2, r.y + r.height / 2]; }})""")

    def tooltip(self, page):
        """The tooltip's title and its numbers by key, or None when it is hidden."""
        return page.evaluate("""(() => {
            const tip = document.getElementById('tip');
            if (tip.hidden) return null;
            const rows = [...tip.querySelectorAll('tr')].map(r => [r.dataset.key, r.cells[1].textContent]);
            return [tip.querySelector('b').textContent, Object.fromEntries(rows)];
        })()""")

    def table(self, page):
        return page.evaluate("""[...document.querySelectorAll('#layers .rows tbody tr[data-i]')].map(r => +r.dataset.i)""")

    def check_tooltip(self, tip, row):
        self.assertIsNotNone(tip)
        title, shown = tip
        self.assertEqual(title, name_of(row) + (", " + row["phase"] if row["phase"] else "") or "(no layer)")
        for key in ("time_ns", "flop", "dram_bytes", "launches", "time_share", "oi_flop_per_byte",
                    "performance_flop_per_s", "attainable_flop_per_s", "attainable_share", "bandwidth_bytes_per_s"):
            if row[key] == 0:
                self.assertNotIn(key, shown)
                continue
            value = number(shown[key]) * (1e9 if key == "time_ns" else 1)
            self.assertAlmostEqual(value / row[key], 1, delta=6e-3, msg=f"{key}: {shown[key]} for {row[key]}")

    def expected(self, rows, share):
        """The rows that make up the top `share` of the time: as many as it takes to reach it."""
        order, sum_before, result = sorted(range(len(rows)), key=lambda i: -rows[i]["time_share"]), 0, set()
        for i in order:
            if sum_before < share:
                result.add(i)
            sum_before += rows[i]["time_share"]
        return result


def main():
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(f"usage: {sys.argv[0]} EMIT_SAMPLE_PAGE [unittest's arguments]")
    PageTest.tool = os.path.abspath(sys.argv.pop(1))
    if cdp.find_browser() is None:
        print("skipped: no Chromium; scripts/setup installs it, or set $CHROMIUM")
        sys.exit(77)
    unittest.main(verbosity=2)
