"""check_headers.py accepts the tree's manner and names each way to miss it."""
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_headers  # noqa: E402

GOOD = """// File: a.h
//
// What it defines.
#ifndef RFINJECT_CLI_MODEL_A_H_
#define RFINJECT_CLI_MODEL_A_H_

int F();

#endif  // RFINJECT_CLI_MODEL_A_H_
"""


class CheckHeaders(unittest.TestCase):
    def check(self, text):
        return [message for _, message in check_headers.check_header("cli/model/a.h", text)]

    def test_good(self):
        self.assertEqual(self.check(GOOD), [])

    def test_bad(self):
        for old, new, expected in [
            ("// File: a.h", "// File: b.h", "first line"),
            ("// What it defines.\n", "", "say what"),
            ("#ifndef RFINJECT_CLI_MODEL_A_H_", "#ifndef A_H", "guard must be"),
            ("#ifndef", "#pragma once\n#ifndef", "guard must be"),
            ("#endif  // RFINJECT_CLI_MODEL_A_H_", "#endif", "last line"),
        ]:
            with self.subTest(expected=expected, new=new):
                found = self.check(GOOD.replace(old, new, 1))
                self.assertEqual(len(found), 1, found)
                self.assertIn(expected, found[0])


if __name__ == "__main__":
    unittest.main()
