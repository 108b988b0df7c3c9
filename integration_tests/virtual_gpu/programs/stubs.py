"""Calls each function of NVIDIA's libraries that this torch imports and that has no stand-in, twice, and prints its name.

What a function returns is what its type in the headers beside torch allows: a status that is no success, a text, or null.
"""
import ctypes
import pathlib
import re
import subprocess

import torch

folder = pathlib.Path(torch.__file__).parent
own = pathlib.Path(re.search(r" (/.*/librfinject_cuda\d+\.so)$", pathlib.Path("/proc/self/maps").read_text(), re.MULTILINE)[1])
stubs = ctypes.CDLL("librfinject_stubs.so", mode=4)  # RTLD_NOLOAD: it lies in memory
libraries = sorted((folder / "lib").glob("*.so"))


def symbols(*arguments):
    """nm's lines, in words, without versions."""
    text = subprocess.run(["nm", "-D", *map(str, arguments)], capture_output=True, text=True).stdout
    return [line.split("@")[0].split() for line in text.splitlines() if line.strip() and not line.endswith(":")]


names = {words[-1] for words in symbols("--undefined-only", *libraries)}
# What is weak there is not carried out.
weak = {words[-1] for path in (own, own.parent / "libcuda.so.1") for words in symbols("--defined-only", path)
        if words[-2] == "W"}
types = {}
for header in sorted((folder.parent / "nvidia").glob("*/include/**/*.h")):
    if header.name.startswith(("cu", "nv", "nccl")):
        for kind, name in re.findall(r"((?:const\s+)?\w+\s*\**)\s*(?:\w*API\s+)?\b((?:cu|nv|nccl)\w+)\s*\(",
                                     header.read_text(encoding="utf-8", errors="replace")):
            types.setdefault(name, re.sub(r"\s+", "", kind))
checked = 0
for name in sorted(names):
    if name not in weak and not hasattr(stubs, name):
        continue
    stub, kind = (ctypes.CDLL(None) if name in weak else stubs)[name], types.get(name, "")
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
