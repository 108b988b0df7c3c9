#!/usr/bin/env python3
"""The HTML report as a user meets it: in a headless Chromium, with real mouse and keyboard events.

    html_report_test.py EMIT_SAMPLE_PAGE [unittest's arguments]

EMIT_SAMPLE_PAGE (cli/emit/testing) writes pages of known Reports and, apart from that, their rows as JSON; what the page
shows is compared with those rows. RFINJECT_SCREENSHOTS=FOLDER keeps pictures of the pages for looking at. Exits with 77
(skipped) where there is no browser.
"""

import csv
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

import cdp

PREFIXES = {"": 1, "p": 1e-12, "n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15,
            "E": 1e18}
UNITS = ("FLOP/s", "FLOP/B", "FLOP", "B/s", "B", "s", "%")
KINDS = ("small", "resnet", "both", "measured", "kernels", "hostile", "deep:60", "empty", "none")
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


class HtmlReport(unittest.TestCase):
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
                subprocess.run([TOOL, form, kind], stdout=out, check=True)
        return path

    def rows(self, kind):
        return json.loads(self.path(kind, "rows").read_text())

    def open(self, kind, **options):
        page = self.browser.open(self.path(kind), **options)
        page.wait_until("'ready' in document.documentElement.dataset")  # the script has read a long table
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

    # --- The tests.

    def test_hovering_shows_the_numbers_of_the_point(self):
        for kind in ("small", "measured"):
            page, rows = self.open(kind), self.rows(kind)
            seen = set()
            # The text above the picture may push its lower marks off the screen.
            page.evaluate("document.getElementById('pictures').scrollIntoView()")
            page.settle()
            for index, x, y in self.marks(page):
                page.move_mouse(x, y)
                tip = self.tooltip(page)
                self.assertIsNotNone(tip, rows[index])
                # Where marks lie on one another, the smallest answers; its title says which one that is.
                row = next(r for r in rows if f"{r['layer'] or r['model'] or '(no layer)'}, {r['phase']}" == tip[0]
                           or (not name_of(r) and tip[0].endswith(", " + r["phase"])))
                title = (name_of(row) or "(no layer)") + ", " + row["phase"]
                self.check_tooltip((tip[0].replace(title, name_of(row) + ", " + row["phase"]), tip[1]), row)
                seen.add(tip[0])
            self.assertGreater(len(seen), 6)
            page.move_mouse(2, 2)
            self.assertIsNone(self.tooltip(page))

    def test_hovering_draws_the_line_to_the_roof(self):
        page, rows = self.open("small"), self.rows("small")
        conv = next(i for i, row in enumerate(rows) if row["layer"] == "features.conv")
        _, x, y = next(mark for mark in self.marks(page) if mark[0] == conv)
        page.move_mouse(x, y)
        line = page.evaluate("""(() => { const r = document.querySelector('.over[data-kind=roofline] line.focus').getBoundingClientRect();
                                         return [r.width, r.height, r.bottom]; })()""")
        self.assertLess(line[0], 2)  # straight up
        self.assertGreater(line[1], 3)
        self.assertAlmostEqual(line[2], y, delta=2)

    def test_clicking_a_point_selects_its_row_and_back(self):
        page, rows = self.open("resnet"), self.rows("resnet")
        shortest = min(self.marks(page), key=lambda mark: rows[mark[0]]["time_ns"])
        self.assertNotIn(shortest[0], self.table(page)[:20])  # far down in the table
        page.click(shortest[1], shortest[2])
        page.settle()
        row = page.evaluate("""(() => { const r = document.querySelector('#layers .rows tr.selected'); if (!r) return null;
            const box = r.getBoundingClientRect(), view = document.querySelector('#layers .scroller').getBoundingClientRect();
            return [+r.dataset.i, box.top > view.top && box.bottom < view.bottom]; })()""")
        self.assertIsNotNone(row)
        self.assertTrue(row[1], "the row was not scrolled into view")
        # A row's click rings its point.
        page.evaluate("document.querySelector('#layers .scroller').scrollTop = 0")
        page.settle()
        wanted = self.table(page)[3]
        page.click_on(f"#layers .rows tr[data-i='{wanted}'] td")
        ring = page.evaluate("""(() => { const r = document.querySelector('.over[data-kind=roofline] .chosen').getBoundingClientRect();
                                         return [r.x + r.width / 2, r.y + r.height / 2]; })()""")
        _, x, y = next(mark for mark in self.marks(page) if mark[0] == wanted)
        self.assertAlmostEqual(ring[0], x, delta=1.5)
        self.assertAlmostEqual(ring[1], y, delta=1.5)

    def expected(self, rows, share):
        """The rows that make up the top `share` of the time: as many as it takes to reach it."""
        order, sum_before, result = sorted(range(len(rows)), key=lambda i: -rows[i]["time_share"]), 0, set()
        for i in order:
            if sum_before < share:
                result.add(i)
            sum_before += rows[i]["time_share"]
        return result

    def test_slider_keeps_the_rows_that_make_up_most_of_the_time(self):
        page, rows = self.open("resnet"), self.rows("resnet")
        drawn = {i for i, row in enumerate(rows) if row["time_ns"] > 0}
        self.assertEqual({m[0] for m in self.marks(page)}, drawn)
        page.evaluate("document.querySelector('.share').focus()")
        page.key("Home", 36)  # 50 %
        page.settle()
        top = self.expected(rows, 0.5)
        self.assertLess(len(top), len(drawn) / 2)
        self.assertEqual({m[0] for m in self.marks(page)}, top)
        self.assertEqual(page.evaluate("document.querySelector('.share-text').textContent"), "50 %")
        text = page.evaluate("document.querySelector('.shown').textContent")
        self.assertTrue(text.startswith(f"{len(top)} of {len(rows)} rows, "), text)
        share = 100 * sum(rows[i]["time_share"] for i in top)
        self.assertAlmostEqual(float(text.split(", ")[1].split()[0]), share, delta=0.06)
        foot = page.evaluate("[...document.querySelectorAll('#layers .rows tfoot tr')].map(r => r.cells[0].textContent)")
        self.assertEqual(foot, [f"Shown: {len(top)} rows", "All"])
        page.key("End", 35)
        page.settle()
        self.assertEqual({m[0] for m in self.marks(page)}, drawn)

    def test_phases_and_search_filter_picture_and_table(self):
        page, rows = self.open("resnet"), self.rows("resnet")
        page.click_on(".facets label:nth-child(2) input")
        page.settle()
        left = {i for i, row in enumerate(rows) if row["phase"] != "backward" and row["time_ns"] > 0}
        self.assertEqual({m[0] for m in self.marks(page)}, left)
        page.click_on(".search")
        page.type("LAYER3")
        page.settle()
        left = {i for i in left if rows[i]["layer"].startswith("layer3")}
        self.assertTrue(left)
        self.assertEqual({m[0] for m in self.marks(page)}, left)
        self.assertEqual(set(self.table(page)), left)
        page.evaluate("document.querySelector('[data-view=time]').click()")
        self.assertTrue({m[0] for m in self.marks(page, "time0")} <= left)

    def test_clicking_a_head_sorts(self):
        page, rows = self.open("resnet"), self.rows("resnet")
        head = "th:nth-child({}) button"
        titles = page.evaluate("[...document.querySelectorAll('#layers .rows thead th')].map(t => t.firstChild.firstChild.data)")
        for title, key in (("OI", "oi_flop_per_byte"), ("Performance", "performance_flop_per_s")):
            button = head.format(titles.index(title) + 1)
            page.click_on(button)
            first = self.table(page)[0]
            self.assertEqual(rows[first][key], max(row[key] for row in rows))
            page.click_on(button)
            first = self.table(page)[0]
            self.assertEqual(rows[first][key], min(row[key] for row in rows))
        page.click_on(head.format(titles.index("Layer") + 1))
        shown = [rows[i]["layer"] for i in self.table(page)]
        self.assertEqual(shown, sorted(shown))

    def test_scrolling_sideways_fills_the_cells(self):
        page, rows = self.open("resnet"), self.rows("resnet")

        def in_view():
            """[row, column's title, text] of the cells of one row that are wholly in view."""
            return page.evaluate("""(() => {
                const view = document.querySelector('#layers .scroller').getBoundingClientRect();
                const titles = [...document.querySelectorAll('#layers .rows thead th')].map(t => t.firstChild.firstChild.data);
                const row = document.querySelector('#layers .rows tbody tr[data-i]');
                return [...row.cells].map((c, k) => [+row.dataset.i, titles[k], c.textContent, c.getBoundingClientRect()])
                    .filter(([, , , r]) => r.left >= view.left && r.right <= view.right).map(c => c.slice(0, 3));
            })()""")

        seen = set()
        for left in (0, 400, 800, 1200, 1600, 100000, 300):
            page.evaluate(f"document.querySelector('#layers .scroller').scrollLeft = {left}")
            page.settle()
            for index, title, text in in_view():
                seen.add(title)
                for key, name in (("time_ns", "GPU time, all steps"), ("flop", "FLOP"), ("dram_bytes", "DRAM bytes"),
                                  ("launches", "Launches, all steps"), ("oi_flop_per_byte", "OI")):
                    if title == name and rows[index][key]:
                        self.assertTrue(text, f"{title} is empty at {left}")
        self.assertTrue({"OI", "DRAM bytes", "Launches, all steps"} <= seen, seen)
        # Cells out of view cost nothing.
        page.evaluate("document.querySelector('#layers .scroller').scrollLeft = 0")
        page.settle()
        row = page.evaluate("[...document.querySelector('#layers .rows tbody tr[data-i]').cells].map(c => c.textContent)")
        self.assertEqual(set(row[-3:]), {""})

    def test_keyboard_reaches_every_point(self):
        page, rows = self.open("resnet"), self.rows("resnet")
        page.evaluate("document.getElementById('roofline0').focus()")
        order = sorted((row["time_ns"] for row in rows if row["time_ns"] > 0), reverse=True)
        for expected in order[:5]:
            page.key("ArrowRight", 39)
            tip = self.tooltip(page)
            self.assertAlmostEqual(number(tip[1]["time_ns"]) * 1e9 / expected, 1, delta=6e-3)
        self.assertTrue(page.evaluate("document.getElementById('live').textContent"))
        page.key("Enter", 13)
        self.assertEqual(page.evaluate("document.querySelectorAll('#layers .rows tr.selected').length"), 1)
        page.key("Escape", 27)
        self.assertIsNone(self.tooltip(page))
        self.assertEqual(page.evaluate("document.querySelectorAll('#layers .rows tr.selected').length"), 0)

    def test_dark_and_light_by_preference_and_by_button(self):
        def ground(page):
            return page.evaluate("""[getComputedStyle(document.body).backgroundColor,
                                     getComputedStyle(document.querySelector('#roofline0 .bg')).fill]""")

        def is_dark(colour):
            return sum(map(int, re.findall(r"\d+", colour)[:3])) < 3 * 64

        for dark in (False, True):
            page = self.open("resnet", dark=dark)
            for colour in ground(page):
                self.assertEqual(is_dark(colour), dark)
            page.click_on("#theme")
            for colour in ground(page):
                self.assertEqual(is_dark(colour), not dark)
            page.click_on("#theme")
            for colour in ground(page):
                self.assertEqual(is_dark(colour), dark)

    def test_csv_holds_what_is_shown(self):
        page, rows = self.open("hostile"), self.rows("hostile")
        self.browser.call("Browser.setDownloadBehavior",
                          {"behavior": "allow", "downloadPath": self.folder.name})
        page.click_on("#layers .csv")
        path = pathlib.Path(self.folder.name, "rfinject-layers.csv")
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            page.settle()
        with open(path, newline="", encoding="utf-8") as lines:
            table = list(csv.DictReader(lines))
        self.assertEqual(len(table), len(rows))
        for line, row in zip(table, sorted(rows, key=lambda row: -row["time_share"])):
            self.assertEqual(line["layer"], row["layer"])  # every character of the strangest names
            self.assertEqual(float(line["time_ns"]), row["time_ns"])
            self.assertEqual(float(line["oi_flop_per_byte"]), row["oi_flop_per_byte"])
            self.assertEqual(float(line["attainable_flop_per_s"]), row["attainable_flop_per_s"])

    def test_names_stay_text(self):
        page = self.open("hostile")
        self.assertTrue(page.evaluate("document.title").startswith("rfinject: Evil</script><script>"))
        self.assertEqual(page.evaluate("document.querySelectorAll('script').length"), 2)
        self.assertEqual(page.evaluate("document.querySelectorAll('img, b b, body > svg, group').length"), 0)
        shown = page.evaluate("""[...document.querySelectorAll('#layers .rows tbody td:first-child')]
                                     .map(c => c.title || c.textContent)""")
        self.assertIn("</script><script>document.title='owned'</script>", shown)
        self.assertIn("right<U+202E>tfel", shown)
        self.assertIn("control<U+0001><U+0002><U+001B>[31mred<U+007F>", shown)
        self.assertIn("שכבה.0", shown)

    def test_every_page_and_picture_is_well_formed_and_silent(self):
        for kind in KINDS:
            page = self.open(kind)
            self.assertTrue(page.evaluate("document.querySelector('.shown').textContent").endswith("% of GPU time"))
            tree = xml.etree.ElementTree.parse(self.path(kind, "svg"))
            self.assertTrue(tree.getroot().tag.endswith("}svg"))
            svg = self.browser.open(self.path(kind, "svg"))
            self.assertEqual(svg.console, [])
            self.assertEqual(len(svg.requests), 1)

    def test_fits_every_width(self):
        keep = os.environ.get("RFINJECT_SCREENSHOTS")
        folder = keep or self.folder.name
        for kind, width, dark in (("resnet", 1400, False), ("resnet", 1400, True), ("resnet", 900, False),
                                  ("both", 1400, False), ("both", 1400, True), ("both", 900, False),
                                  ("measured", 1920, False), ("kernels", 1400, False), ("small", PHONE, False),
                                  ("both", PHONE, True), ("deep:60", 1400, False), ("deep:60", PHONE, False)):
            page = self.open(kind, width=width, height=1000, dark=dark)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width, kind)
            # Every text of the pictures is inside its picture, with this machine's fonts.
            outside = page.evaluate("""[...document.querySelectorAll('figure svg text')].filter(t => {
                const box = t.getBoundingClientRect(), view = t.closest('svg').getBoundingClientRect();
                return box.width > 0 && (box.left < view.left - 1 || box.right > view.right + 1 ||
                                         box.top < view.top - 1 || box.bottom > view.bottom + 1);
            }).map(t => t.textContent)""")
            self.assertEqual(outside, [], f"{kind} at {width}")
            path = os.path.join(folder, f"{kind.replace(':', '-')}-{width}-{'dark' if dark else 'light'}.png")
            page.screenshot(path, full=True)
            with open(path, "rb") as image:
                head = image.read(24)
            self.assertEqual(struct.unpack(">I", head[16:20])[0], width)

    def test_texts_of_pictures_do_not_overlap_on_the_screen(self):
        for kind in ("small", "resnet", "both", "measured", "kernels", "large:5000"):
            page = self.open(kind)
            for view in ("roofline", "time"):
                page.evaluate(f"document.querySelector('button[data-view={view}]').click()")
                overlaps = page.evaluate("""(() => {
                    const found = [];
                    for (const svg of document.querySelectorAll('figure svg')) {
                      const texts = [...svg.querySelectorAll('text:not([transform])')].map(t => [t, t.getBoundingClientRect()])
                                        .filter(([, b]) => b.width > 0);
                      texts.forEach(([a, p], i) => texts.slice(i + 1).forEach(([b, q]) => {
                        // A box has the font's whole height; letters leave a fifth of it free.
                        const x = Math.min(p.right, q.right) - Math.max(p.left, q.left);
                        const y = Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top);
                        if (x > 1 && y > 0.3 * Math.min(p.height, q.height)) found.push(a.textContent + ' / ' + b.textContent);
                      }));
                    }
                    return found;
                })()""")
                self.assertEqual(overlaps, [], f"{kind}, {view}")

    def columns_in_view(self, page):
        """The titles of the columns that are wholly in view where the table stands when the page opens."""
        return page.evaluate("""(() => {
            const view = document.querySelector('#layers .scroller').getBoundingClientRect();
            return [...document.querySelectorAll('#layers .rows thead th')].filter(t => {
                const r = t.getBoundingClientRect();
                return r.left >= view.left - 1 && r.right <= view.right + 1;
            }).map(t => t.firstChild.firstChild.data);
        })()""")

    def test_the_columns_that_tell_most_are_in_view(self):
        for kind in ("resnet", "deep:60", "measured"):
            page = self.open(kind, width=1280, height=800)
            self.assertEqual(self.columns_in_view(page)[:7],
                             ["Layer", "Phase", "Time share", "GPU time a step", "OI", "Of roof", "Bound by"], kind)
            page = self.open(kind, width=PHONE, height=800)
            self.assertEqual(self.columns_in_view(page),
                             ["Layer", "Phase", "Time share", "GPU time a step", "Of roof", "Bound by"], kind)
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), PHONE)

    def test_a_phone_has_a_picture_that_can_be_read(self):
        page = self.open("resnet", width=PHONE, height=800)
        for view in ("roofline", "time"):
            page.evaluate(f"document.querySelector('button[data-view={view}]').click()")
            sizes = page.evaluate("""[...document.querySelectorAll('figure svg text')].filter(t => t.getClientRects().length)
                .map(t => parseFloat(t.getAttribute('font-size')) * Math.hypot(t.getScreenCTM().a, t.getScreenCTM().b))""")
            self.assertGreater(len(sizes), 20)
            self.assertGreaterEqual(min(sizes), 8.5, view)  # pixels; the picture for a desk would have 4.7
        marks = page.evaluate("[...document.querySelectorAll('#roofline0 .m')].filter(e => e.getClientRects().length).length")
        self.assertEqual(marks, 0, "the picture for a desk is there as well")
        page.evaluate("document.querySelector('.segmented [data-view=roofline]').click()")
        rows = self.rows("resnet")
        self.assertEqual({m[0] for m in self.marks(page, "roofline0-narrow")},
                         {i for i, row in enumerate(rows) if row["time_ns"] > 0})

    def test_marks_stand_inside_their_frame(self):
        """Whole, at its edge where their values lie outside, so that none covers axes or legend."""
        for kind in ("resnet", "both", "measured", "kernels", "hostile", "deep:60"):
            page = self.open(kind)
            for view in ("roofline", "time"):
                page.evaluate(f"document.querySelector('button[data-view={view}]').click()")
                outside = page.evaluate("""[...document.querySelectorAll('figure .m')].filter(e => {
                    const mark = e.getBoundingClientRect();
                    if (mark.width === 0) return false;
                    return ![...e.closest('svg').querySelectorAll('.fr')].some(f => {
                        const frame = f.getBoundingClientRect();
                        return mark.left > frame.left - 1.5 && mark.right < frame.right + 1.5 &&
                               mark.top > frame.top - 1.5 && mark.bottom < frame.bottom + 1.5;
                    });
                }).map(e => e.dataset.i)""")
                self.assertEqual(outside, [], f"{kind}, {view}")

    def test_no_line_to_a_roof_strikes_a_label(self):
        for kind in ("small", "resnet", "both", "measured", "kernels", "deep:60"):
            page = self.open(kind)
            for view in ("roofline", "time"):
                page.evaluate(f"document.querySelector('button[data-view={view}]').click()")
                struck = page.evaluate("""[...document.querySelectorAll('figure svg')].flatMap(svg => {
                    const labels = [...svg.querySelectorAll('text.la:not([transform])')].map(t => [t.textContent, t.getBBox()]);
                    return [...svg.querySelectorAll('.dr')].flatMap(line => {
                        const length = line.getTotalLength(), points = [];
                        for (let at = 0; at <= length; at += 2) points.push(line.getPointAtLength(at));
                        // A box has the font's whole height; letters leave a fifth of it free.
                        return labels.filter(([, b]) => points.some(p => p.x > b.x + 1 && p.x < b.x + b.width - 1 &&
                            p.y > b.y + 0.2 * b.height && p.y < b.y + 0.8 * b.height)).map(([text]) => text);
                    });
                })""")
                self.assertEqual(struck, [], f"{kind}, {view}")

    def test_every_roof_that_is_drawn_is_named(self):
        """At its line, or at the end of a leader that begins there."""
        for kind in ("small", "resnet", "both", "measured", "kernels"):
            page = self.open(kind)
            nameless = page.evaluate("""[...document.querySelectorAll('figure svg[data-kind=roofline]')].flatMap(svg => {
                if (!svg.getClientRects().length) return [];
                const labels = [...svg.querySelectorAll('text.la')].filter(t => /FLOP\\/s/.test(t.textContent)).map(t => t.getBBox());
                const leaders = [...svg.querySelectorAll('.le')].map(l => [...l.points].map(p => p.y));
                const bottom = Math.max(...[...svg.querySelectorAll('.fr')].map(f => f.getBBox()).map(b => b.y + b.height));
                return [...svg.querySelectorAll('polyline.ro')].filter(line => {
                    const points = [...line.points], end = points.at(-1), before = points.at(-2);
                    // Neither the legend's, nor a bandwidth's, which has no peak, nor the gutter's.
                    if (points[0].y > bottom || points.length < 3 || Math.abs(end.y - before.y) > 0.1) return false;
                    const near = labels.some(b => end.y > b.y - 10 && end.y < b.y + b.height + 10);
                    return !near && !leaders.some(ys => ys.some(y => Math.abs(y - end.y) < 1));
                }).map(line => line.getAttribute('points'));
            })""")
            self.assertEqual(nameless, [], kind)

    def test_an_alarm_says_whose(self):
        page = self.open("alarms")
        heads = page.evaluate("[...document.querySelectorAll('.alarms h2')].map(h => h.textContent)")
        self.assertEqual(len(heads), 2)
        for head in heads:
            self.assertRegex(head, r"^Alarms of .+ on .+")

    def test_the_page_begins_with_five_lines(self):
        for width, height in ((1280, 800), (PHONE, 844)):
            page = self.open("resnet", width=width, height=height)
            lines = page.evaluate("""[...document.querySelectorAll('.opening li')].map(l =>
                [l.textContent, l.getBoundingClientRect().bottom])""")
            self.assertEqual(len(lines), 5)
            self.assertRegex(lines[0][0], "a step takes .* of GPU time")
            self.assertTrue(lines[1][0].startswith("Held back by "))
            for number, (text, bottom) in enumerate(lines[2:], 1):
                self.assertRegex(text, rf"^{number}\. (at most )?-[0-9.]+ [num]?s ")
                self.assertLess(bottom, height)
            # What they rest on is one click away.
            self.assertFalse(page.evaluate("document.querySelector('details.facts').open"))
            page.click_on("details.facts summary")
            self.assertIn("% of FLOP in", page.evaluate("document.querySelector('details.facts').innerText"))
        page = self.open("resnet", width=1280, height=800)
        self.assertLess(page.evaluate("document.querySelector('#roofline0 .fr').getBoundingClientRect().top"), 500)

    def test_marks_that_overlap_keep_their_colour(self):
        for dark in (False, True):
            page = self.open("resnet", dark=dark)
            looks = page.evaluate("""[...document.querySelectorAll('#roofline0 .m')].map(e => {
                const s = getComputedStyle(e); return [s.fill, s.fillOpacity, s.opacity]; })""")
            self.assertEqual({tuple(look[1:]) for look in looks}, {("1", "1")})

    def test_the_headline_leads_to_the_time_view(self):
        page = self.open("resnet")
        page.click_on(".links [data-view=time]")
        self.assertEqual(page.evaluate("document.body.dataset.view"), "time")
        self.assertTrue(page.evaluate("document.getElementById('time0').getClientRects().length"))
        pressed = page.evaluate("[...document.querySelectorAll('.segmented button')].map(b => b.ariaPressed)")
        self.assertEqual(pressed, ["false", "true"])

    def test_layers_that_are_alike_are_one_row_and_open_on_a_click(self):
        page = self.open("deep:60")
        names = "[...document.querySelectorAll('#layers .rows tbody tr[data-i]')].map(r => r.cells[0].textContent)"
        self.assertIn("Conv2d 3x3 64->64 x124", page.evaluate(names))
        closed = len(self.marks(page))
        self.assertLess(closed, 100)
        total = page.evaluate("[...document.querySelectorAll('#layers .rows tfoot tr')].map(r => r.cells[2].textContent)")
        self.assertEqual(total[0], total[1])
        group = page.evaluate("""(() => {
            const row = [...document.querySelectorAll('#layers .rows tbody tr.group')].find(r => r.cells[0].textContent.startsWith('Conv2d 3x3 64'));
            row.scrollIntoView({block: 'center'});
            return +row.dataset.i; })()""")
        page.click_on(f"#layers .rows tr[data-i='{group}'] td")
        page.settle()
        self.assertEqual(page.evaluate(f"document.querySelector('#layers .rows tr[data-i=\"{group}\"]').ariaExpanded"), "true")
        self.assertTrue(any(name.startswith("deep.") for name in page.evaluate(names)))
        marks = {m[0] for m in self.marks(page)}
        self.assertNotIn(group, marks)  # its members are there instead, and nothing counts twice
        self.assertEqual(len(marks), closed - 1 + 124)
        self.assertEqual(page.evaluate("[...document.querySelectorAll('#layers .rows tfoot tr')].map(r => r.cells[2].textContent)"), total)
        page.click_on(f"#layers .rows tr[data-i='{group}'] td")
        page.settle()
        self.assertEqual(len(self.marks(page)), closed)
        # A search for a layer finds it, and the box ungroups all layers.
        page.click_on(".search")
        page.type("deep.7.conv1")
        page.settle()
        self.assertEqual(set(page.evaluate(names)), {"deep.7.conv1"})
        page.evaluate("document.querySelector('.search').value = ''; document.querySelector('.search').oninput()")
        page.click_on(".grouped")
        page.settle()
        self.assertEqual(page.evaluate("document.querySelectorAll('#layers .rows tr.group').length"), 0)
        self.assertGreater(len(self.marks(page)), 300)

    def test_tables_can_be_heard(self):
        page = self.open("both")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('th')].filter(t => !t.scope).length"), 0)
        sorts = page.evaluate("[...document.querySelectorAll('#layers .rows thead th')].map(t => t.ariaSort)")
        self.assertEqual(sorted(set(sorts)), ["descending", "none"])
        self.assertEqual(sorts.count("descending"), 1)

    def test_words_are_explained(self):
        page = self.open("resnet")
        words = page.evaluate("[...document.querySelectorAll('details dt')].map(t => t.textContent)")
        self.assertTrue({"bound", "slack", "tier"} <= set(words), words)

    def open_diff(self, kind, **options):
        path = pathlib.Path(self.folder.name, f"diff-{kind}.html")
        if not path.exists():
            with open(path, "wb") as out:
                subprocess.run([TOOL, "diff", kind], stdout=out, check=True)
        page = self.browser.open(path, **options)
        self.addCleanup(lambda: self.assertEqual(page.console, [], kind))
        return page

    def test_the_page_of_a_comparison(self):
        for kind in ("faster", "same", "noisy"):
            for width in (1400, PHONE):
                page = self.open_diff(kind, width=width)
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width, kind)
            text = page.evaluate("document.body.innerText")
            self.assertNotRegex(text, r"\b0 largest")
            self.assertNotRegex(text, "(?i)verdict|correction|null")
            self.assertEqual(page.evaluate("[...document.querySelectorAll('th')].filter(t => !t.scope).length"), 0)
        page = self.open_diff("faster")
        heads = page.evaluate("[...document.querySelectorAll('table.diff thead th')].map(t => t.textContent)")
        self.assertEqual(heads[:5], ["Layer", "Phase", "Change", "Time in A", "Time in B"])
        self.assertRegex(page.evaluate("document.querySelector('.opening li').textContent"), r"in A, .* in B, -.* less")
        self.assertEqual(self.open_diff("same").evaluate("document.querySelectorAll('table.diff').length"), 0)

    def test_a_comparison_turns_dark(self):
        page = self.open_diff("faster", dark=False)
        ground = "getComputedStyle(document.querySelector('figure .bg')).fill + getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.click_on("#theme")
        self.assertNotEqual(page.evaluate(ground), light)
        page.click_on("#theme")
        self.assertEqual(page.evaluate(ground), light)

    def test_fifty_thousand_rows_are_drawn_when_needed(self):
        page = self.open("large:50000")
        self.assertLess(self.path("large:50000").stat().st_size, 10e6)
        # What is shown of a packed column is the row's, here and behind the edge.
        for left in (0, 900):
            page.evaluate(f"document.querySelector('#layers .scroller').scrollLeft = {left}")
            page.settle()
        index, x, y = max(self.marks(page), key=lambda mark: mark[0])
        page.evaluate("document.querySelector('#layers .scroller').scrollLeft = 0")
        page.evaluate(f"document.querySelector('#roofline0 .m[data-i=\"{index}\"]').scrollIntoView({{block: 'center'}})")
        page.settle()
        _, x, y = next(mark for mark in self.marks(page) if mark[0] == index)
        page.move_mouse(x, y)
        tip = self.tooltip(page)
        row = next(r for r in self.rows("large:50000") if f"{name_of(r)}, {r['phase']}" == tip[0])
        self.check_tooltip(tip, row)
        page.move_mouse(2, 2)
        self.assertLess(page.evaluate("document.querySelectorAll('*').length"), 8000)
        rows = self.rows("large:50000")
        page.evaluate("document.querySelector('.share').focus()")
        page.key("End", 35)
        page.settle()
        self.assertEqual(len(self.marks(page)), len(rows))
        page.click_on(".search")
        last = rows[-1]["layer"]
        page.type(last)
        page.settle()
        self.assertEqual({m[0] for m in self.marks(page)}, {i for i, row in enumerate(rows) if last in row["layer"]})

    def test_thousands_of_rows_stay_usable(self):
        page, rows = self.open("large:5000"), self.rows("large:5000")
        # The page opens with the longest rows that make up 99 % and holds only those table rows that are in view.
        self.assertEqual({m[0] for m in self.marks(page)}, self.expected(rows, 0.99))
        self.assertLess(page.evaluate("document.querySelectorAll('#layers .rows tbody tr').length"), 120)
        page.evaluate("document.querySelector('.share').focus()")
        page.key("End", 35)
        page.settle()
        self.assertEqual(len(self.marks(page)), len(rows))
        page.evaluate("document.querySelector('#layers .scroller').scrollTop = 1e9")
        page.settle()
        order = sorted(range(len(rows)), key=lambda i: (-rows[i]["time_share"], i))
        self.assertEqual(self.table(page)[-1], order[-1])
        self.assertLess(page.evaluate("document.querySelectorAll('#layers .rows tbody tr').length"), 120)
        index, x, y = self.marks(page)[0]  # the largest is drawn first
        page.move_mouse(x, y)
        self.assertIsNotNone(self.tooltip(page), index)
        page.click_on(".search")
        page.type("blocks.7.part3")
        page.settle()
        wanted = {i for i, row in enumerate(rows) if "blocks.7.part3" in row["layer"]}
        self.assertEqual({m[0] for m in self.marks(page)}, wanted)


if __name__ == "__main__":
    if len(sys.argv) < 2 or not os.access(sys.argv[1], os.X_OK):
        sys.exit(__doc__)
    TOOL = os.path.abspath(sys.argv.pop(1))
    if cdp.find_browser() is None:
        print("skipped: no Chromium; scripts/setup installs it, or set $CHROMIUM")
        sys.exit(77)
    unittest.main(verbosity=2)
