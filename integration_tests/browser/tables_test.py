#!/usr/bin/env python3
"""The tables and sections of a page in a headless Chromium: filters, sorting, scrolling, and the bar of links.

    tables_test.py EMIT_SAMPLE_PAGE [unittest's arguments]
"""

import csv
import json
import os
import pathlib
import time

from page_case import PHONE, PageTest, main, name_of

# What a run's page has beside the pictures and the layers: id, title, and how many rows its table has (0: none).
SECTIONS = (("waits", "Waits", 40), ("memory", "Memory", 3), ("stacks", "Stacks", 5000), ("ranks", "Ranks", 8),
            ("plans", "Plans", 0))


def table_element(name, rows):
    """A table of `rows` waits in the shape that page_data.h writes."""
    long = "a sentence that is too long for a column of a table which has many others beside it, "
    columns = [{"name": "what", "title": "What", "kind": "text", "help": "What the program waited for.",
                "words": [f"{name} {i}" for i in range(rows)], "values": list(range(rows))},
               {"name": "time_ns", "title": "Time", "kind": "unit", "unit": "s", "scale": 1e-9, "additive": True,
                "values": [(i * 7919 % rows) * 1e3 for i in range(rows)]},
               {"name": "blocks", "title": "Blocks", "kind": "plain", "values": [i % 2 == 0 for i in range(rows)]},
               {"name": "where", "title": "Where", "kind": "text", "words": [long, "here"],
                "values": [i % 2 for i in range(rows)]}]
    data = json.dumps({"id": name, "heading": name, "rows": rows, "columns": columns}).replace("<", "\\u003c")
    return f"<div class=table><script type=application/json>{data}</script></div>"


class Tables(PageTest):
    def path(self, kind, form="html"):
        """KIND+sections is the page of that kind with SECTIONS behind its own."""
        path = super().path(kind.removesuffix("+sections"), form)
        if not kind.endswith("+sections"):
            return path
        more = "".join(f'<section id={name} data-title="{title}"><h2>{title}</h2><p>What it is about.</p>' +
                       (table_element(name, rows) if rows else "<p>" + "Do this. " * 40 + "</p>") + "</section>\n"
                       for name, title, rows in SECTIONS)
        made = path.with_name("sections-" + path.name)
        made.write_text(path.read_text().replace('<section class=card id="phase"', more + '<section class=card id="phase"'))
        return made

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

    def downloaded(self, page, name):
        """The rows of a CSV file that the page has been asked for."""
        path = pathlib.Path(self.folder.name, name)
        deadline = time.monotonic() + 60
        while not path.exists() and time.monotonic() < deadline:
            page.settle()
        with open(path, newline="", encoding="utf-8") as lines:
            return list(csv.DictReader(lines))

    def test_csv_holds_what_is_shown(self):
        page, rows = self.open("hostile"), self.rows("hostile")
        self.browser.call("Browser.setDownloadBehavior",
                          {"behavior": "allow", "downloadPath": self.folder.name})
        page.click_on("#layers .csv")
        table = self.downloaded(page, "rfinject-layers.csv")
        self.assertEqual(len(table), len(rows))
        for line, row in zip(table, sorted(rows, key=lambda row: -row["time_share"])):
            self.assertEqual(line["layer"], row["layer"])  # every character of the strangest names
            self.assertEqual(float(line["time_ns"]), row["time_ns"])
            self.assertEqual(float(line["oi_flop_per_byte"]), row["oi_flop_per_byte"])
            self.assertEqual(float(line["performance_flop_per_s"]), row["performance_flop_per_s"])

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

    def test_repeated_blocks_are_one_row_and_open_on_a_click(self):
        page = self.open("deep:60", grouped=True)
        names = "[...document.querySelectorAll('#layers .rows tbody tr[data-i]')].map(r => r.cells[0].textContent)"
        self.assertIn("deep.*.conv1 x60", page.evaluate(names))
        closed = len(self.marks(page))
        self.assertLess(closed, 100)
        total = page.evaluate("[...document.querySelectorAll('#layers .rows tfoot tr')].map(r => r.cells[2].textContent)")
        self.assertEqual(total[0], total[1])
        group = page.evaluate("""(() => {
            const row = [...document.querySelectorAll('#layers .rows tbody tr.group')].find(r => r.cells[0].textContent.startsWith('deep.*.conv1'));
            row.scrollIntoView({block: 'center'});
            return +row.dataset.i; })()""")
        page.click_on(f"#layers .rows tr[data-i='{group}'] td")
        page.settle()
        self.assertEqual(page.evaluate(f"document.querySelector('#layers .rows tr[data-i=\"{group}\"]').ariaExpanded"), "true")
        self.assertTrue(any(name.startswith("deep.") for name in page.evaluate(names)))
        marks = {m[0] for m in self.marks(page)}
        self.assertNotIn(group, marks)  # its members are there instead, and nothing counts twice
        self.assertEqual(len(marks), closed - 1 + 60)
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
        # A network of few layers has them, too.
        page = self.open("resnet", grouped=True)
        self.assertIn("layer1.*.conv1 x2", page.evaluate(names))
        self.assertNotIn("layer1.0.conv1", page.evaluate(names))

    def test_tables_can_be_heard(self):
        page = self.open("both")
        self.assertEqual(page.evaluate("[...document.querySelectorAll('th')].filter(t => !t.scope).length"), 0)
        sorts = page.evaluate("[...document.querySelectorAll('#layers .rows thead th')].map(t => t.ariaSort)")
        self.assertEqual(sorted(set(sorts)), ["descending", "none"])
        self.assertEqual(sorts.count("descending"), 1)

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

    # --- Several tables and sections.

    def current(self, page):
        return page.evaluate("[...document.querySelectorAll('.sections a[aria-current]')].map(a => a.textContent)")

    def rows_of(self, page, name):
        return page.evaluate(f"[...document.querySelectorAll('#{name} tbody tr[data-i]')].map(r => +r.dataset.i)")

    def test_every_section_is_one_click_away(self):
        folder = os.environ.get("RFINJECT_SCREENSHOTS") or self.folder.name
        for width, dark in ((1400, False), (1400, True), (800, False), (800, True), (PHONE, False)):
            page = self.open("resnet+sections", width=width, height=900, dark=dark)
            titles = page.evaluate("[...document.querySelectorAll('.sections a')].map(a => a.textContent)")
            self.assertEqual(titles, ["Summary", "Pictures", "Layers", *(title for _, title, _ in SECTIONS), "Phases", "Advice", "About"])
            self.assertEqual(self.current(page), ["Summary"])
            self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)
            for k, (name, title, _) in enumerate(SECTIONS):
                page.click_on(f".sections a[href='#{name}']")
                page.settle()
                self.assertEqual(self.current(page), [title])
                top, bar, stuck = page.evaluate(f"""[document.getElementById('{name}').getBoundingClientRect().top,
                    document.querySelector('.sections').getBoundingClientRect().bottom, scrollY]""")
                self.assertGreater(stuck, 0)
                self.assertGreaterEqual(top, bar)  # the bar is in view and hides nothing
                self.assertLess(top, 900 * 0.8)
                page.screenshot(os.path.join(folder, f"{name}-{width}-{'dark' if dark else 'light'}.png"))
            page.click_on(".sections a[href='#layers']")
            page.settle()
            top, bar = page.evaluate("""[document.querySelector('#layers .tablebox').getBoundingClientRect().top,
                Math.max(...['.sections', '.controls'].map(s => document.querySelector(s).getBoundingClientRect())
                    .filter(r => r.bottom < 400).map(r => r.bottom))]""")
            self.assertGreaterEqual(top, bar)
            page.evaluate("scrollTo(0, 0)")
            page.settle()
            self.assertEqual(self.current(page), ["Summary"])  # what is read, wherever it was scrolled from

    def test_sections_are_reached_by_keyboard(self):
        page = self.open("resnet+sections")
        page.evaluate("document.querySelector('.sections a').focus()")
        for _ in range(3):
            page.key("Tab", 9)
        page.key("Enter", 13, "\r")
        page.settle()
        self.assertEqual(self.current(page), ["Waits"])
        page.key("Tab", 9)  # goes on in the section
        self.assertEqual(page.evaluate("document.activeElement.closest('section').id"), "waits")

    def test_a_page_of_one_section_has_no_bar(self):
        page = self.open_text("<!DOCTYPE html><title>one</title><section id=a data-title=A>text</section>")
        self.assertEqual(page.evaluate("document.querySelectorAll('nav').length"), 0)

    def open_text(self, text):
        """`text` with the script of the real page."""
        script = self.path("resnet").read_text().rpartition("<script>")[2]
        path = pathlib.Path(self.folder.name, "text.html")
        path.write_text(text + "<script>" + script)
        page = self.browser.open(path)
        self.addCleanup(lambda: self.assertEqual(page.console, []))
        return page

    def test_a_table_of_few_rows_ends_behind_them(self):
        for width in (800, 1400):
            with self.subTest(width=width):
                page = self.open("small", width=width, height=1000)
                page.settle()
                below = page.evaluate("""(() => {
                    const box = document.querySelector('.linked .tablebox').getBoundingClientRect();
                    const rows = document.querySelector('.linked .rows').getBoundingClientRect();
                    return [box.bottom - rows.bottom, rows.bottom - rows.top];
                })()""")
                self.assertLess(below[0], 20, below)
                self.assertGreaterEqual(below[0], 0, below)  # and all of them are in view

    def test_a_table_that_stands_alone_begins_with_a_few_rows(self):
        page = self.open("resnet+sections")
        page.click_on(".sections a[href='#waits']")
        page.settle()
        height = "document.querySelector('#waits .tablebox').offsetHeight"
        before = page.evaluate(height)
        self.assertLess(before, 500)
        self.assertEqual(self.rows_of(page, "waits")[:12], list(range(12)))  # the table's own order
        page.click_on("#waits .more")
        page.settle()
        self.assertEqual(self.rows_of(page, "waits"), list(range(40)))
        self.assertGreater(page.evaluate(height), before + 500)
        page.click_on("#waits .more")
        page.settle()
        self.assertEqual(page.evaluate(height), before)
        self.assertEqual(page.evaluate("document.querySelectorAll('#memory .more').length"), 0)  # all of its rows are there
        self.assertEqual(self.rows_of(page, "memory"), [0, 1, 2])
        self.assertLess(len(self.rows_of(page, "stacks")), 60)

    def test_tables_are_sorted_filtered_and_saved_each_for_itself(self):
        page = self.open("resnet+sections")
        layers = self.table(page)
        page.click_on("#waits th:nth-child(2) button")
        page.settle()
        times = [(i * 7919 % 40) * 1e3 for i in range(40)]
        order = sorted(range(40), key=lambda i: -times[i])
        self.assertEqual(self.rows_of(page, "waits")[:12], order[:12])
        page.click_on("#waits .search")
        page.type("WAITS 3")
        page.settle()
        found = [i for i in order if f"waits {i}".startswith("waits 3")]
        self.assertEqual(self.rows_of(page, "waits"), found)
        self.assertEqual(page.evaluate("document.querySelector('#waits .shown').textContent"), f"{len(found)} of 40 rows")
        foot = page.evaluate("[...document.querySelectorAll('#waits tfoot td')].map(c => c.textContent)")
        self.assertEqual(foot[0], f"Shown: {len(found)} rows")
        self.assertAlmostEqual(float(foot[1]), sum(times[i] for i in found) / 1e3, delta=1)
        self.assertEqual(self.rows_of(page, "memory"), [0, 1, 2])
        self.assertEqual(self.table(page), layers)
        self.browser.call("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": self.folder.name})
        page.click_on("#waits .csv")
        lines = self.downloaded(page, "rfinject-waits.csv")
        self.assertEqual([line["what"] for line in lines], [f"waits {i}" for i in found])
        self.assertEqual({line["blocks"] for line in lines}, {"true", "false"})

    def test_the_arrows_go_through_the_rows(self):
        page = self.open("resnet+sections")
        page.evaluate("document.querySelector('#stacks .scroller').focus()")
        chosen = "[...document.querySelectorAll('tr.selected')].map(r => [+r.dataset.i, r.closest('section').id])"
        for _ in range(30):
            page.key("ArrowDown", 40)
        page.settle()
        self.assertEqual(page.evaluate(chosen), [[29, "stacks"]])
        inside = page.evaluate("""(() => {
            const row = document.querySelector('tr.selected').getBoundingClientRect();
            const view = document.querySelector('#stacks .scroller').getBoundingClientRect();
            return row.top >= view.top && row.bottom <= view.bottom; })()""")
        self.assertTrue(inside, "the row was not scrolled into view")
        self.assertIn("stacks 29", page.evaluate("document.getElementById('live').textContent"))
        page.key("ArrowUp", 38)
        page.settle()
        self.assertEqual(page.evaluate(chosen), [[28, "stacks"]])
        page.key("Escape", 27)
        page.settle()
        self.assertEqual(page.evaluate(chosen), [])

    def test_groups_open_by_keyboard(self):
        page = self.open("deep:60", grouped=True)
        page.evaluate("document.querySelector('#layers .scroller').focus()")
        for _ in range(40):
            page.key("ArrowDown", 40)
            if page.evaluate("document.querySelector('tr.selected').classList.contains('group')"):
                break
        self.assertEqual(page.evaluate("document.querySelector('tr.selected').ariaExpanded"), "false")
        page.key("Enter", 13)
        page.settle()
        self.assertEqual(page.evaluate("document.querySelector('tr.selected').ariaExpanded"), "true")
        self.assertGreater(page.evaluate("document.querySelectorAll('tr.member').length"), 0)

    def test_heads_say_what_a_column_is(self):
        page = self.open("resnet+sections")
        self.assertEqual(page.evaluate("document.querySelector('#waits th button').title"), "What the program waited for.")
        missing = page.evaluate("[...document.querySelectorAll('#layers th button')].filter(b => !b.title).map(b => b.textContent)")
        self.assertEqual(missing, [])


if __name__ == "__main__":
    main()
