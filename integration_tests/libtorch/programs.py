"""The C++ programs beside this file, compiled against the torch that this interpreter imports (Debian's with libtorch-dev, or
PyPI's, which brings its headers), into LIBTORCH_BUILD, once."""

import os
import shutil
import subprocess

from torch import _C, __file__ as torch_file, __version__ as torch_version

HERE = os.path.dirname(os.path.abspath(__file__))
COMPILER = os.environ.get("CXX", "g++")
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


def compiled(name):
    """The object file of `name`.cc, compiled if its source is newer."""
    source = os.path.join(HERE, name + ".cc")
    folder = os.path.join(os.environ["LIBTORCH_BUILD"], "torch-" + torch_version)
    made = os.path.join(folder, name + ".o")
    if not os.path.exists(made) or os.path.getmtime(made) < os.path.getmtime(source):
        os.makedirs(folder, exist_ok=True)
        ccache = ["ccache"] if shutil.which("ccache") else []
        subprocess.run([*ccache, COMPILER, "-O2", "-fPIC", *flags_of_torch()[0], "-c", source, "-o", made + ".new"], check=True,
                       timeout=600)
        os.rename(made + ".new", made)
    return made


def build(name, shared=False):
    """The program `name`.cc; `shared`: as an object that another program opens."""
    made = compiled(name)
    program = made.removesuffix(".o") + (".so" if shared else "")
    if not os.path.exists(program) or os.path.getmtime(program) < os.path.getmtime(made):
        subprocess.run([COMPILER, *(["-shared"] if shared else []), made, "-o", program + ".new", *flags_of_torch()[1]],
                       check=True, timeout=600)
        os.rename(program + ".new", program)
    return program
