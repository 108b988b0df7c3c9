"""What librfinject.so shows to and asks of the processes that it gets into.

    library_test.py LIBRARY
"""
import pathlib
import re
import subprocess
import sys
import unittest

EXPORTS_MAP = pathlib.Path(__file__).resolve().parents[2] / "injector/exports.map"
NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2"}
NEWEST_GLIBC = (2, 28)  # manylinux_2_28, what PyPI's torch asks for itself
LIBRARY = None


def output(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def exports_list():
    """The names between `global:` and `local:` of the version script."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", "", EXPORTS_MAP.read_text(encoding="utf-8"), flags=re.S)
    return set(re.findall(r"([A-Za-z_]\w*)\s*;", text.split("global:")[1].split("local:")[0]))


def defined_symbols(library):
    """(kind, name) of every dynamic symbol that the library defines."""
    symbols = set()
    for line in output("nm", "-D", "--defined-only", library).splitlines():
        _, kind, name = line.split(maxsplit=2)
        symbols.add((kind, name.split("@")[0]))
    return symbols


class Library(unittest.TestCase):
    def test_exports_its_list_and_nothing_else(self):
        expected = exports_list()
        self.assertIn("InitializeInjection", expected)  # what the driver looks for
        self.assertEqual({name for kind, name in defined_symbols(LIBRARY) if kind != "A"}, expected)

    def test_no_unique_symbols(self):
        # The dynamic linker merges STB_GNU_UNIQUE symbols over all namespaces and never unloads their library.
        self.assertEqual([name for kind, name in defined_symbols(LIBRARY) if kind == "u"], [])

    def test_needs_the_c_library_only(self):
        needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", output("readelf", "-dW", LIBRARY)))
        self.assertLessEqual(needed, NEEDED)
        # glibc before 2.34 has the pthread functions there; a single-threaded program does not load it by itself.
        self.assertIn("libpthread.so.0", needed)

    def test_oldest_glibc(self):
        versions = {tuple(map(int, version.split(".")))
                    for version in re.findall(r"\bGLIBC_([0-9.]+)\b", output("objdump", "-T", LIBRARY))}
        self.assertTrue(versions)
        newer = sorted(version for version in versions if version > NEWEST_GLIBC)
        lines = [line for line in output("objdump", "-T", LIBRARY).splitlines()
                 if any("GLIBC_%s" % ".".join(map(str, version)) in line for version in newer)]
        self.assertEqual(newer, [], "\n".join(lines))
        print("oldest glibc that serves: %d.%d" % max(versions)[:2])

    def test_no_private_glibc(self):
        self.assertNotIn("GLIBC_PRIVATE", output("objdump", "-T", LIBRARY))

    def test_nothing_that_a_hardened_loader_refuses(self):
        dynamic = output("readelf", "-dW", LIBRARY)
        for tag in ["TEXTREL", "RPATH", "RUNPATH"]:
            self.assertNotIn(tag, dynamic)
        stack = [line for line in output("readelf", "-lW", LIBRARY).splitlines() if "GNU_STACK" in line]
        self.assertEqual(len(stack), 1)
        self.assertNotIn("E", stack[0].split()[-2])  # flags: RW, never executable

    def test_its_thread_locals_fit_into_what_is_left(self):
        # The driver dlopens us: initial-exec thread-locals then come out of glibc's small static surplus.
        size = 0
        for line in output("readelf", "-lW", LIBRARY).splitlines():
            fields = line.split()
            if fields and fields[0] == "TLS":
                size = int(fields[5], 16)
        if "STATIC_TLS" in output("readelf", "-dW", LIBRARY):
            self.assertLessEqual(size, 512)


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit("usage: library_test.py LIBRARY [unittest arguments]")
    LIBRARY = sys.argv.pop(1)
    unittest.main()
