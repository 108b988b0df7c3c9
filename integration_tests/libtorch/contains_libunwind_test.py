#!/usr/bin/env python3
"""The shipped library holds libunwind, which third_party_notes names: contains_libunwind_test.py LIBRARY

Looks for the functions that a walk cannot do without, as hidden symbols with code.
"""

import subprocess
import sys

WANTED = {"_Ux86_64_step", "_Ux86_64_init_remote", "_Ux86_64_dwarf_search_unwind_table"}

found = {}
for line in subprocess.run(["nm", "-S", sys.argv[1]], check=True, capture_output=True, text=True).stdout.splitlines():
    fields = line.split()
    if len(fields) == 4 and fields[3] in WANTED:
        found[fields[3]] = fields[2]
missing = WANTED - set(found)
shown = [name for name, kind in found.items() if kind != "t"]
if missing or shown:
    sys.exit("not in the library: %s; visible: %s" % (sorted(missing), sorted(shown)))
print("libunwind is in the library, hidden")
