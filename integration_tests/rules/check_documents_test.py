"""check_documents.py finds links, anchors and paths that lead nowhere."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_documents  # noqa: E402


class CheckDocuments(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def write(self, name, text):
        (self.root / name).parent.mkdir(parents=True, exist_ok=True)
        (self.root / name).write_text(text, encoding="utf-8")

    def test_good(self):
        self.write("README.md", "[a](docs/A.md#what-it-is-a-b), [web](https://a.example/docs/B.md), `cli/run`, `cli/ a`, `x/y`\n")
        self.write("docs/A.md", "# What it is: `a` (b)\n[up](../README.md) [here](#what-it-is-a-b)\n```\n`cli/gone.cc`\n```\n")
        self.write("cli/run.cc", "// docs/A.md says why; https://pytorch.org/docs/stable/B.md does not.\n")
        self.assertEqual(check_documents.check(self.root), [])

    def test_links(self):
        self.write("README.md", "ok\n[a](docs/B.md) [b](docs/A.md#no)\n")
        self.write("docs/A.md", "# Yes\n")
        self.assertEqual(check_documents.check(self.root),
                         ["README.md:2: docs/B.md is not there", "README.md:2: docs/A.md#no has no such heading"])

    def test_a_heading_in_a_code_block_is_none(self):
        self.write("README.md", "[a](#no)\n```\n# no\n```\n")
        self.assertEqual(check_documents.check(self.root), ["README.md:1: #no has no such heading"])

    def test_two_headings_of_one_name(self):
        self.assertEqual(check_documents.anchors("# A\n## A\n# B c\n"), {"a", "a-1", "b-c"})

    def test_paths(self):
        self.write("cli/run.cc", "// See docs/GONE.md.\n")
        self.write("README.md", "`cli/stop.cc` and `cli/run.cc --help`\n")
        self.assertEqual(check_documents.check(self.root),
                         ["README.md:1: cli/stop.cc is not there", "cli/run.cc:1: docs/GONE.md is not there"])

    def test_pages_are_few(self):
        for number in range(check_documents.MOST_PAGES + 1):
            self.write(f"docs/use/P{number}.md", "text\n")
        self.write("README.md", "line\n" * (check_documents.MOST_README_LINES + 1))
        self.assertEqual([text.split(",")[0] for text in check_documents.check(self.root)],
                         ["docs: 20 pages", "README.md: 81 lines"])


if __name__ == "__main__":
    unittest.main()
