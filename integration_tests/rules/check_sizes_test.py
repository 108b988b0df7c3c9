"""check_sizes.py counts lines and members as a reader does."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_sizes  # noqa: E402


def body(lines):
    return "".join(f"  Do({i});\n" for i in range(lines))


class CheckSizes(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)

    def found(self, name, text):
        (self.root / name).write_text(text, encoding="utf-8")
        return check_sizes.check(self.root)

    def test_files(self):
        self.assertEqual(self.found("a.cc", "\n" * 600), [])
        self.assertEqual(self.found("a.cc", "\n" * 601), ["a.cc: 601 lines, more than 600; split it by subject"])

    def test_functions(self):
        for head in ("void Work() {\n", "template <typename T>\nauto Class::Work(const T& t) const noexcept -> int {\n",
                     "Class::Class(int a) : a_(a), b_{1} {\n", "static int* Work(std::function<void(int)> f = {}) {\n"):
            with self.subTest(head):
                lines = head.count("\n") + 1
                self.assertEqual(self.found("a.cc", head + body(80 - lines) + "}\n"), [])
                self.assertRegex("".join(self.found("a.cc", "int x;\n" + head + body(81 - lines) + "}\n")),
                                 r"^a.cc:2: [\w:]+ has 81 lines")

    def test_a_function_in_a_class(self):
        text = "class A {\n public:\n  void Work() {\n" + body(79) + "  }\n};\n"
        self.assertEqual(self.found("a.h", text), ["a.h:3: Work has 81 lines, more than 80"])

    def test_a_table_is_no_function(self):
        self.assertEqual(self.found("a.cc", "constexpr int kTable[] = {\n" + "    1,\n" * 100 + "};\n"), [])
        self.assertEqual(self.found("a.cc", "namespace a {\n" + "int x;\n" * 100 + "}  // namespace a\n"), [])

    def test_members(self):
        text = """
class A : public B {
 public:
  A() : a_(1) {}
  int Function(int a, int b) const { return a + b; }
  static constexpr int kNone = 0;  // "int a;"
  using Text = std::string;
  struct Inner { int x, y; };
  enum class Kind : uint8_t { kOne };

 private:
  int a_ = 1, b_ = Function(1, 2);
  std::map<int, std::pair<int, int>> map_ = {{1, {2, 3}}};
  std::function<void(int, int)> call_;
  Phase phase_{};
  int array_[3] = {1, 2, 3};
%s};
"""
        more = "".join(f"  int m{i}_;\n" for i in range(19))
        self.assertEqual(self.found("a.h", text % more), [])
        self.assertEqual(self.found("a.h", text % (more + "  int last_;\n")),
                         ["a.h:2: A has 26 data members, more than 25"])

    def test_members_of_bases(self):
        base = "struct Base {\n" + "  int a;\n" * 13 + "};\n"
        derived = "struct A final : public n::Base, Other<int> {\n%s};\n"
        (self.root / "base.h").write_text(base, encoding="utf-8")
        self.assertEqual(self.found("a.h", derived % ("  int b;\n" * 12)), [])
        self.assertEqual(self.found("a.h", derived % ("  int b;\n" * 13)),
                         ["a.h:1: A has 26 data members with its bases, more than 25"])

    def test_lines_of_a_class(self):
        text = "class A {\n" + "  void Work();\n" * 299 + "};\n"
        self.assertEqual(self.found("a.h", text), ["a.h:1: A has 301 lines, more than 300"])
        self.assertEqual(self.found("a.h", text.replace("  void Work();\n", "", 1)), [])

    def test_python(self):
        text = "def work():\n" + "    pass\n" * 80
        self.assertEqual(self.found("a.py", text), ["a.py:1: work has 81 lines, more than 80"])


if __name__ == "__main__":
    unittest.main()
