"""The C++ programs beside this file, compiled against the torch that this interpreter imports (Debian's with libtorch-dev, or
PyPI's, which brings its headers), into LIBTORCH_BUILD, once."""

import os
import shutil
import subprocess

from torch import _C, __file__ as torch_file, __version__ as torch_version

HERE = os.path.dirname(os.path.abspath(__file__))
# Threads that wait for each other by spinning take a hundred times as long where other tests have the cores.
ENVIRONMENT = dict(os.environ, OMP_NUM_THREADS="1")


def flags_of_torch():
    """Compiler flags for the torch of this interpreter; None when it has no headers."""
    folder = os.path.dirname(torch_file)
    include = os.path.join(folder, "include")
    flags = ["-D_GLIBCXX_USE_CXX11_ABI=%d" % _C._GLIBCXX_USE_CXX11_ABI]
    libraries = ["-ltorch", "-ltorch_cpu", "-lc10"]
    if os.path.isdir(os.path.join(include, "torch/csrc/api/include")):
        lib = os.path.join(folder, "lib")
        flags += ["-isystem", include, "-isystem", os.path.join(include, "torch/csrc/api/include")]
        libraries = ["-L" + lib, "-Wl,-rpath," + lib, "-Wl,--allow-shlib-undefined"] + libraries
    elif os.path.isdir("/usr/include/torch/csrc/api/include") and folder.startswith("/usr/lib"):
        flags += ["-isystem", "/usr/include/torch/csrc/api/include"]
    else:
        return None
    version = tuple(int(part) for part in torch_version.split("+")[0].split(".")[:2] if part.isdigit())
    return ["-std=c++20" if version >= (2, 10) else "-std=c++17"] + flags, libraries


def build(name, shared=False):
    """The program `name`.cc, built if its source is newer; `shared`: as an object that another program opens."""
    source = os.path.join(HERE, name + ".cc")
    folder = os.path.join(os.environ["LIBTORCH_BUILD"], "torch-" + torch_version)
    program = os.path.join(folder, name + (".so" if shared else ""))
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(source):
        os.makedirs(folder, exist_ok=True)
        flags, libraries = flags_of_torch()
        flags = flags + (["-shared", "-fPIC"] if shared else [])
        ccache = ["ccache"] if shutil.which("ccache") else []
        subprocess.run([*ccache, os.environ.get("CXX", "g++"), "-O2", *flags, source, "-o", program + ".new", *libraries],
                       check=True, timeout=600)
        os.rename(program + ".new", program)
    return program
