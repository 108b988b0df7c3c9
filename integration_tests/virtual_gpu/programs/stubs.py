"""Calls each function of NVIDIA's libraries that this torch imports and that has no stand-in, twice, and prints its name."""
import ctypes
import pathlib
import subprocess

import torch

stubs = ctypes.CDLL("librfinject_stubs.so", mode=4)  # RTLD_NOLOAD: it lies in memory
libraries = sorted((pathlib.Path(torch.__file__).parent / "lib").glob("*.so"))
imported = subprocess.run(["nm", "-D", "--undefined-only", *map(str, libraries)], capture_output=True, text=True).stdout
names = {line.split()[-1].split("@")[0] for line in imported.splitlines() if line.strip() and not line.endswith(":")}
for name in sorted(names):
    if hasattr(stubs, name):
        assert [stubs[name](), stubs[name]()].count(0) == 0, name
        print("stub", name)
