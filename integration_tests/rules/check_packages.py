#!/usr/bin/env python3
"""What is built contains the packages that third_party_notes/NOTICES.md says it is built on, where it says so.

    check_packages.py NOTICES RFINJECT LIBRARY [--without-libunwind] [TEST_PROGRAM]

One line per package that is missing; exit code 1 when there is one. The symbols of the binaries are looked at, so they
must not be stripped. What a package is used for stands beside the function that only that use brings in. CUDA's
functions are looked up at run time: of them the library holds the names.
"""
import pathlib
import re
import subprocess
import sys

# package: (beginning of a mangled function or type, what brings it in)
COMMAND = {
    "protobuf": [
        ("_ZN8rfinject2v15Chunk14_InternalParse", "parsing a record (cli/trace/decode.cc)"),
        ("_ZNK6google8protobuf10Descriptor17FindFieldByNumber", "`dump` by descriptors (cli/trace/dump.cc)"),
        ("_ZN6google8protobuf2io16CodedInputStream", "walking over records (cli/trace/fields.h)"),
    ],
    "Abseil": [
        ("4absl.*Status", "failures with file, offset and reason (cli/trace/damage.cc)"),
        ("4absl.*raw_hash_set", "hash maps by id (cli/trace/apply/id_index.h)"),
        ("4absl.*str_format_internal", "printing (cli/cmd/dump.cc)"),
        ("4absl.*StrCat", "messages (cli/trace/damage.cc)"),
        ("4absl.*FormatTime", "times of day (cli/report/run_list.cc)"),
    ],
}
LIBRARY = {
    "libunwind": [
        ("_Ux86_64_init_remote$", "beginning a walk (injector/native/unwinder_libunwind.cc)"),
        ("_Ux86_64_step$", "a frame further (injector/native/unwinder_libunwind.cc)"),
        ("_Ux86_64_dwarf_search_unwind_table$", "finding a function's unwind table (injector/native/)"),
    ],
}
LIBRARY_TEXTS = {
    "CUDA Toolkit": [
        ("libcupti.so", "opening CUPTI (collector/cupti/api.cc)"),
        ("cuptiSubscribe", "hearing of launches (collector/cupti/launch_tap.cc)"),
        ("cuptiProfilerHostInitialize", "planning counters (collector/cupti/)"),
        ("cuDeviceGetAttribute", "the driver's facts of a GPU (collector/cupti/device_facts.cc)"),
    ],
}
TEST_PROGRAM = {
    "GoogleTest": [("_ZN7testing8internal12UnitTestImpl11RunAllTests", "running the unit tests")],
}


def missing(wanted, names):
    """The entries of `wanted` that are in none of the names, one line each."""
    return ["%s: there is no %s: %s" % (package, part, use) for package, parts in wanted.items()
            for part, use in parts if not any(re.search(part, name) for name in names)]


def symbols(binary):
    """{name: kind} of what is defined."""
    output = subprocess.run(["nm", "--defined-only", binary], stdout=subprocess.PIPE, check=True).stdout
    fields = [line.split() for line in output.decode().splitlines()]
    return {field[-1]: field[-2] for field in fields if len(field) >= 2}


def texts(binary):
    return {text.decode() for text in re.findall(rb"[\x20-\x7e]{4,}", pathlib.Path(binary).read_bytes())}


def notices(path):
    """Lines for each of the five packages that `path` does not place, and for each place that does not exist."""
    root = pathlib.Path(path).resolve().parents[1]
    section = pathlib.Path(path).read_text(encoding="utf-8").partition("## Where the five packages work\n")[2]
    rows = [row for row in section.partition("\n## ")[0].splitlines() if row.startswith("| ")]
    lines = []
    for package in [*COMMAND, *LIBRARY, *LIBRARY_TEXTS, *TEST_PROGRAM]:
        places = [place for row in rows if row.startswith("| %s |" % package) for place in re.findall(r"`([^`]+/[^`]*)`", row)]
        if not places:
            lines.append("%s: not said where it works" % package)
        lines += ["%s: %s does not exist" % (package, place) for place in places if not (root / place).exists()]
    return lines


def main(arguments):
    with_libunwind = "--without-libunwind" not in arguments
    path, command, library, *programs = [word for word in arguments if word != "--without-libunwind"]
    lines = ["%s: %s" % (path, line) for line in notices(path)]
    of_command = symbols(command)
    lines += ["%s: %s" % (command, line) for line in missing(COMMAND, of_command)]
    # A check that finds everything everywhere would prove nothing.
    if len(missing(COMMAND, [name for name in of_command if not re.search("4absl|protobuf|v15Chunk", name)])) != sum(
            len(parts) for parts in COMMAND.values()):
        lines.append("the packages are found where they are not")
    of_library = symbols(library)
    if with_libunwind:
        lines += ["%s: %s" % (library, line) for line in missing(LIBRARY, of_library)]
    # A program may bring its own libunwind: ours must not be seen by it.
    lines += ["%s: %s is visible" % (library, name) for name, kind in of_library.items()
              if name.startswith("_Ux86_64") and kind.isupper() and not hidden(library, name)]
    lines += ["%s: %s" % (library, line) for line in missing(LIBRARY_TEXTS, texts(library))]
    for program in programs:
        lines += ["%s: %s" % (program, line) for line in missing(TEST_PROGRAM, symbols(program))]
    for line in lines:
        print(line)
    return 1 if lines else 0


def hidden(library, name):
    """Whether the dynamic symbol table lacks the name."""
    output = subprocess.run(["nm", "-D", "--defined-only", library], stdout=subprocess.PIPE, check=True).stdout
    return name not in {line.split()[-1] for line in output.decode().splitlines()}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
