"""Gives every Python process that finds this file a GPU that is not there: the virtual GPU's driver, and the simulated
CUPTI, which counts what is launched on it. No program knows of it, nor does rfinject.

RFX_SIM_BOARD is the board as JSON (see gpu.py), RFX_SIM_LIBRARIES the folder of the virtual GPU, RFX_SIM_FOLDER that of
the simulated CUPTI, RFX_SIM_CUPTI which of them; "": no CUPTI, the driver alone.
"""
import ctypes
import importlib.util
import json
import os
import pathlib
import sys


class Board(ctypes.Structure):
    _fields_ = [("name", ctypes.c_char_p), ("devices", ctypes.c_int), ("cc_major", ctypes.c_int),
                ("cc_minor", ctypes.c_int), ("sm_count", ctypes.c_int), ("memory_bytes", ctypes.c_uint64),
                ("l2_bytes", ctypes.c_uint64), ("sm_hz", ctypes.c_double), ("dram_bytes_per_s", ctypes.c_double),
                ("pcie_bytes_per_s", ctypes.c_double), ("quiet", ctypes.c_int)]


def enter():
    torch = importlib.util.find_spec("torch")
    if torch is None or "RFX_SIM_BOARD" not in os.environ:
        return
    torch_libraries = pathlib.Path(torch.origin).parent / "lib"
    if not (torch_libraries / "libtorch_cuda.so").exists():
        return
    facts = json.loads(os.environ["RFX_SIM_BOARD"])
    libraries = os.environ["RFX_SIM_LIBRARIES"]
    cupti = os.environ["RFX_SIM_CUPTI"]
    folder = os.environ["RFX_SIM_FOLDER"]
    if cupti:
        # This comes before the virtual GPU puts an empty library in the place of this name. All libraries must see
        # it, as torch is linked with it.
        ctypes.CDLL(os.path.join(folder, cupti), ctypes.RTLD_GLOBAL)
    gpu = ctypes.CDLL(os.path.join(libraries, "librfinject_virtual_gpu.so"))
    gpu.rfinject_virtual_gpu_enter.restype = ctypes.c_char_p
    board = Board(name=facts.pop("name").encode(), **facts)
    why = gpu.rfinject_virtual_gpu_enter(str(torch_libraries).encode(), ctypes.byref(board))
    if not why and cupti:
        world = ctypes.CDLL(os.path.join(folder, "libsim_virtual_driver.so"))
        world.sim_attach_virtual_gpu.restype = ctypes.c_char_p
        world.sim_attach_virtual_gpu.argtypes = [ctypes.c_uint64, ctypes.c_double]
        why = world.sim_attach_virtual_gpu(int(os.environ.get("RFX_SIM_SEED", "1")),
                                           float(os.environ.get("RFX_SIM_NOISE", "0.02")))
    if why:
        sys.exit(f"no virtual GPU: {why.decode()}")


enter()
