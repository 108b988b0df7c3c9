#!/usr/bin/env python3
"""The HTML report as a user meets it: in a headless Chromium, with real mouse and keyboard events.

    html_report_test.py EMIT_SAMPLE_PAGE [unittest's arguments]

RFINJECT_SCREENSHOTS=FOLDER keeps pictures of the pages for looking at.
"""

import os
import pathlib
import re
import struct
import subprocess
import xml.etree.ElementTree

from page_case import PHONE, PageTest, main, name_of, number

KINDS = ("small", "resnet", "both", "measured", "kernels", "hostile", "deep:60", "empty", "none")


class HtmlReport(PageTest):
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

    def test_names_stay_text(self):
        page = self.open("hostile")
        self.assertTrue(page.evaluate("document.title").startswith("rfinject report: Evil</script><script>"))
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
            if kind == "none":  # a page without a table or a picture
                continue
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
        heads = page.evaluate("[...document.querySelectorAll('[id^=problems] h2')].map(h => h.textContent)")
        self.assertEqual(len(heads), 2)
        for head in heads:
            self.assertRegex(head, r"^Alarms and notes: .+ on .+")

    def test_the_page_begins_with_five_lines(self):
        for width, height in ((1280, 800), (PHONE, 844)):
            page = self.open("resnet", width=width, height=height)
            lines = page.evaluate("""[...document.querySelectorAll('#run li')].map(l =>
                [l.textContent, l.getBoundingClientRect().bottom])""")
            self.assertEqual(len(lines), 5)
            self.assertRegex(lines[0][0], "a step takes .* of GPU time")
            self.assertTrue(lines[1][0].startswith("Held back by "))
            for place, (text, bottom) in enumerate(lines[2:], 1):
                self.assertRegex(text, rf"^{place}\. (at most )?-[0-9.]+ [num]?s ")
                self.assertLess(bottom, height)
            # What they rest on is one click away.
            self.assertFalse(page.evaluate("document.querySelector('#facts').open"))
            page.click_on("#facts summary")
            self.assertIn("% of FLOP in", page.evaluate("document.querySelector('#facts').innerText"))
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

    def test_words_are_explained(self):
        page = self.open("resnet")
        words = page.evaluate("[...document.querySelectorAll('#words li b')].map(t => t.textContent.replace(': ', ''))")
        self.assertTrue({"bound", "slack", "tier"} <= set(words), words)

    def open_diff(self, kind, **options):
        path = pathlib.Path(self.folder.name, f"diff-{kind}.html")
        if not path.exists():
            with open(path, "wb") as out:
                subprocess.run([self.tool, "diff", kind], stdout=out, check=True)
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
        heads = page.evaluate("[...document.querySelectorAll('#changes thead th')].map(t => t.textContent)")
        self.assertEqual(heads[:5], ["layer", "phase", "time A", "time B", "change"])
        self.assertRegex(page.evaluate("document.querySelector('#changes').innerText"), r"GPU time a step.*: .* to .*, -")
        self.assertEqual(self.open_diff("same").evaluate("document.querySelectorAll('#changes table').length"), 0)

    def test_a_comparison_turns_dark(self):
        page = self.open_diff("faster", dark=False)
        ground = "getComputedStyle(document.querySelector('figure .bg')).fill + getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        page.click_on("#theme")
        self.assertNotEqual(page.evaluate(ground), light)
        page.click_on("#theme")
        self.assertEqual(page.evaluate(ground), light)


if __name__ == "__main__":
    main()
