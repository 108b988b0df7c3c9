"""Which CUDA the torch of this interpreter is built for, found out without importing it."""
import importlib.util
import os
import pathlib
import re


def cuda_major():
    """The major version of CUDA of the torch that is here; None where it has none."""
    spec = importlib.util.find_spec("torch")
    if spec is None or not (pathlib.Path(spec.origin).parent / "lib" / "libtorch_cuda.so").exists():
        return None
    found = re.search(r"^cuda[^=]*= '(\d+)", (pathlib.Path(spec.origin).parent / "version.py").read_text(), re.MULTILINE)
    return int(found[1]) if found else None


def why_no_virtual_gpu(libraries):
    """Why programs cannot use the virtual GPU of this folder here; None when they can."""
    if importlib.util.find_spec("torch") is None:
        return "no torch"
    major = cuda_major()
    if major is None:
        return "this torch is no CUDA build"
    if os.path.exists("/dev/nvidiactl"):
        return "NVIDIA's driver is here"
    if not (pathlib.Path(libraries) / f"librfinject_cuda{major}.so").exists():
        return "this build has no runtime for this torch's CUDA, because its headers were not found"
    return None
