"""Checks what librfinject.so shows to the process that it is loaded into.

    check_exports.py LIBRARY EXPORTS_MAP [--any-size]

It exports the list in exports.map and nothing else, needs only libc's own libraries, asks for no symbol of a glibc
newer than 2.28, has no text relocations, no unique symbols (they would bind across copies of the C++ runtime), and no
initialiser that runs in every process but its one constructor. It calls no kernel of torch's, and is small where it
was compiled as it is shipped. Exit code 1 names what is wrong.
"""

import re
import subprocess
import sys

MAX_GLIBC = (2, 28)
ALLOWED_NEEDED = {"libc.so.6", "libm.so.6", "libdl.so.2", "libpthread.so.0", "ld-linux-x86-64.so.2",
                  "ld-linux-aarch64.so.1"}
# These are frame_dummy and Load(), libstdc++'s memory for exceptions, and its error categories. Any other is a
# mistake.
MAX_INITIALISERS = 4
# Of the file's code and data, which each process that is preloaded maps.
MAX_BYTES = 1_345_000
# A kernel is found by this function of torch's. What computes values is virtual_gpu/values, in a library of its own.
FINDS_KERNELS = b"getKernelForDispatchKey"


def run(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, universal_newlines=True).stdout


def wanted_exports(path):
    with open(path) as file:
        text = file.read()
    body = text.split("global:")[1].split("local:")[0]
    return {name.strip() for name in body.split(";") if name.strip()}


def glibc_needs(symbols):
    """The symbols of these (kind, name@version) that need a newer glibc, or a C++ runtime of the program's."""
    found = []
    for _, name in symbols:
        version = re.search(r"@+GLIBC_(\d+)\.(\d+)", name)
        if version and tuple(map(int, version.groups())) > MAX_GLIBC:
            found.append("needs %s: compat/compat.c can bind it to an older version" % name)
        if "@GLIBCXX" in name or "@CXXABI" in name or "@GCC_" in name:
            found.append("needs %s of a shared C++ runtime" % name)
    return found


def dynamic_symbols(library):
    """[(kind, name with its version)]"""
    fields = [line.split() for line in run("nm", "-D", "--with-symbol-versions", str(library)).splitlines()]
    return [(field[-2], field[-1]) for field in fields]


def paths_in(dynamic):
    """The entries with paths, without those below the library's own folder."""
    return ["has a %s, %s" % entry for entry in re.findall(r"\((RPATH|RUNPATH)\)[^\[]*\[([^\]]*)\]", dynamic)
            if entry[1] != "$ORIGIN"]


def foreign_needs(library):
    """What a library of ours beside librfinject.so needs of the machine and must not need, one line each."""
    found = glibc_needs(dynamic_symbols(library)) + paths_in(run("readelf", "-dW", str(library)))
    return ["%s: %s" % (library, problem) for problem in found]


def loaded_bytes(library):
    """How much of the file is mapped: the FileSiz of its segments."""
    segments = [line.split() for line in run("readelf", "-lW", str(library)).splitlines()]
    return sum(int(segment[4], 16) for segment in segments if segment[:1] == ["LOAD"])


def problems(library, exports_map, any_size=False):
    """What is wrong with librfinject.so, one line each."""
    problems = []
    symbols = dynamic_symbols(library)
    exported = {name.split("@")[0] for kind, name in symbols if kind not in "Uw"}
    wanted = wanted_exports(exports_map)
    for name in sorted(exported - wanted):
        problems.append("exports %s, which is not in the list" % name)
    for name in sorted(wanted - exported):
        problems.append("does not export %s" % name)
    for kind, name in symbols:
        if kind == "u":
            problems.append("unique symbol %s" % name)
    problems += glibc_needs(symbols)
    dynamic = run("readelf", "-dW", str(library))
    for name in re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic):
        if name not in ALLOWED_NEEDED:
            problems.append("needs the library %s" % name)
    if "TEXTREL" in dynamic:
        problems.append("has text relocations")
    for kind in ("RPATH", "RUNPATH", "SONAME"):
        if "(%s)" % kind in dynamic:
            problems.append("has a %s" % kind)
    size = re.search(r"\(INIT_ARRAYSZ\)\s+(\d+)", dynamic)
    if size and int(size.group(1)) // 8 > MAX_INITIALISERS:
        problems.append("%d initialisers, at most %d are known" % (int(size.group(1)) // 8, MAX_INITIALISERS))
    size = loaded_bytes(library)
    if size > MAX_BYTES and not any_size:
        problems.append("has %d bytes of code and data, more than %d" % (size, MAX_BYTES))
    with open(str(library), "rb") as file:
        if FINDS_KERNELS in file.read():
            problems.append("looks for kernels of torch's")
    return ["%s: %s" % (library, problem) for problem in problems]


def main(library, exports_map, *options):
    found = problems(library, exports_map, "--any-size" in options)
    for problem in found:
        print(problem, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
