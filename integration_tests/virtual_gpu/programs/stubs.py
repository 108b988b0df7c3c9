"""Calls each function of NVIDIA's libraries that this torch imports and that has no stand-in, twice, and prints its name.

What a function returns is what its type in the headers beside torch allows: a status that is no success, a text, or null.
"""
import ctypes
import pathlib
import re
import subprocess

import torch

folder = pathlib.Path(torch.__file__).parent
stubs = ctypes.CDLL("librfinject_stubs.so", mode=4)  # RTLD_NOLOAD: it lies in memory
libraries = sorted((folder / "lib").glob("*.so"))
imported = subprocess.run(["nm", "-D", "--undefined-only", *map(str, libraries)], capture_output=True, text=True).stdout
names = {line.split()[-1].split("@")[0] for line in imported.splitlines() if line.strip() and not line.endswith(":")}
types = {}
for header in sorted((folder.parent / "nvidia").glob("*/include/**/*.h")):
    if header.name.startswith(("cu", "nv", "nccl")):
        for kind, name in re.findall(r"((?:const\s+)?\w+\s*\**)\s*(?:\w*API\s+)?\b((?:cu|nv|nccl)\w+)\s*\(",
                                     header.read_text(encoding="utf-8", errors="replace")):
            types.setdefault(name, re.sub(r"\s+", "", kind))
checked = 0
for name in sorted(names):
    if not hasattr(stubs, name):
        continue
    stub, kind = stubs[name], types.get(name, "")
    checked += kind != ""
    if kind == "constchar*":
        stub.restype = ctypes.c_char_p
    elif kind.endswith("*"):
        stub.restype = ctypes.c_void_p
    results = [stub(), stub()]
    if kind == "constchar*":
        assert results[0] == results[1] == b"not supported on rfinject's virtual GPU", (name, results)
    elif kind.endswith("*"):
        assert results == [None, None], (name, results)
    elif not name.endswith(("_malloc", "_ptr")):
        assert results.count(0) == 0, (name, results)
    print("stub", name)
print("checked", checked)
