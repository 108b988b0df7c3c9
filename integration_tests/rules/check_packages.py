#!/usr/bin/env python3
"""The command contains the packages that third_party_notes/NOTICES.md says it is built on.

    check_packages.py RFINJECT     one line per package that is missing; exit code 1 when there is one

The symbols of the binary are looked at, so it must not be stripped. What a package is used for stands beside the
function that only that use brings in.
"""
import subprocess
import sys

# package: (mangled beginning of a function or type, what brings it in)
WANTED = {
    "protobuf": [
        ("_ZN8rfinject2v15Chunk14_InternalParse", "parsing a record (cli/trace/decode.cc)"),
        ("_ZNK8rfinject2v15Chunk18_InternalSerialize", "writing a chunk (cli/trace/encode.cc)"),
        ("_ZNK6google8protobuf10Descriptor17FindFieldByNumber", "`dump` by descriptors (cli/trace/dump.cc)"),
        ("_ZN6google8protobuf2io16CodedInputStream", "walking over records (cli/trace/fields.h)"),
    ],
    "Abseil": [
        ("Status", "failures with file, offset and reason (cli/trace/damage.cc)"),
        ("raw_hash_set", "hash maps by id (cli/trace/apply.cc)"),
        ("str_format_internal", "printing (cli/cmd/dump.cc)"),
        ("StrCat", "messages (cli/trace/damage.cc)"),
    ],
}


def missing(symbols):
    """What of WANTED is not among the mangled names, one line each."""
    lines = []
    for package, wanted in WANTED.items():
        names = [name for name in symbols if package != "Abseil" or "4absl" in name]
        lines += ["%s: no symbol %s: %s" % (package, part, use) for part, use in wanted
                  if not any(part in name for name in names)]
    return lines


def main(arguments):
    output = subprocess.run(["nm", "--defined-only", arguments[0]], stdout=subprocess.PIPE, check=True).stdout
    symbols = [line.split()[-1] for line in output.decode().splitlines() if line.strip()]
    lines = missing(symbols)
    for line in lines:
        print("%s: %s" % (arguments[0], line))
    # A check that finds everything everywhere would be none.
    if not missing([name for name in symbols if "4absl" not in name and "protobuf" not in name and "v15Chunk" not in name]):
        print("check_packages.py finds the packages where they are not")
        return 1
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
