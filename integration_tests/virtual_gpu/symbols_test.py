"""Every function of NVIDIA's public headers is in the libraries of the virtual GPU; those that are not carried out fail as
their types allow.

    symbols_test.py [unittest arguments]
RFINJECT names the command; RFINJECT_HEADERS the folders with headers, each a toolkit's, or site-packages/nvidia of a torch,
with a colon between two CUDAs and a comma between two folders of one. Needs a C++ compiler and nm, and no torch.
"""
import functools
import os
import pathlib
import random
import re
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "virtual_gpu" / "symbols"))
import read_headers  # noqa: E402

LIBRARIES = pathlib.Path(os.environ["RFINJECT"]).resolve().parent.parent / "lib" / "virtual_gpu"
HEADERS = [tuple(folders.split(",")) for folders in os.environ["RFINJECT_HEADERS"].split(":") if folders]
declared = functools.cache(read_headers.declared)
CALLS = 2000

# What each table's functions return for "not supported", and the header's name for it.
STATUS = {
    "cuda": (801, "CUDA_ERROR_NOT_SUPPORTED"), "cudart": (801, "cudaErrorNotSupported"),
    "cublas": (15, "CUBLAS_STATUS_NOT_SUPPORTED"), "cublaslt": (15, "CUBLAS_STATUS_NOT_SUPPORTED"),
    "cudnn": (3000, "CUDNN_STATUS_NOT_SUPPORTED"), "cufft": (16, "CUFFT_NOT_SUPPORTED"),
    "cufile": (5007, "CU_FILE_PLATFORM_NOT_SUPPORTED"), "curand": (999, "CURAND_STATUS_INTERNAL_ERROR"),
    "cusolver": (9, "CUSOLVER_STATUS_NOT_SUPPORTED"), "cusparse": (10, "CUSPARSE_STATUS_NOT_SUPPORTED"),
    "nccl": (5, "ncclInvalidUsage"), "nvrtc": (11, "NVRTC_ERROR_INTERNAL_ERROR"),
}
# The C++ type of each kind; a Number is any integer or enumeration.
TYPES = {"Nothing": "void", "Text": "const char*", "Float": "float", "Double": "double", "Complex": "cuComplex",
         "DoubleComplex": "cuDoubleComplex", "Count": "ssize_t", "FileStatus": "CUfileError_t",
         "Channels": "cudaChannelFormatDesc"}
# Headers that want another library's, and the older half of cuBLAS, which its newer half forbids.
NOT_COMPILED = ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h", "cuda_gl_interop.h", "cuda_egl_interop.h", "cuda_vdpau_interop.h",
                "cublas.h", "cublasXt.h")

# Calls functions of a library with arguments that are numbers, null, and addresses of a page that must stay as it is.
CALLER = """
import ctypes, mmap, random, sys
libraries, calls = {}, eval(sys.stdin.read())
page = mmap.mmap(-1, 1 << 16)
page.write(b"\\xa5" * (1 << 16))
start = ctypes.addressof(ctypes.c_char.from_buffer(page))
for path, name, kind, seed in calls:
    library = libraries.setdefault(path, ctypes.CDLL(path))
    chance = random.Random(seed)
    some = [lambda: None, lambda: chance.getrandbits(63), lambda: chance.randrange(-8, 4096),
            lambda: start + 64 * chance.randrange(512)]
    function = library[name]
    function.restype = {"Text": ctypes.c_char_p, "Pointer": ctypes.c_void_p, "Nothing": None, "Float": ctypes.c_float,
                        "Double": ctypes.c_double, "Count": ctypes.c_ssize_t}.get(kind, ctypes.c_int)
    print(name, flush=True)
    print("=", function(*(ctypes.c_void_p(chance.choice(some)()) for _ in range(chance.randrange(13)))), flush=True)
assert page[:] == b"\\xa5" * (1 << 16), "a function wrote to its arguments"
"""


def exported(library):
    """{function: whether it is only a stub} of a built library."""
    text = subprocess.run(["nm", "-D", "--defined-only", str(library)], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1]: line.split()[-2] == "W" for line in text.splitlines()}


class Symbols(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.libraries = {path.name: exported(path) for path in LIBRARIES.glob("*.so*") if path.name != "libcuda.so"}

    def of_table(self, table):
        names = ["libcuda.so.1"] if table == "cuda" else [name for name in self.libraries if re.match("librfinject_cuda", name)]
        return [(name, self.libraries[name]) for name in names]

    def test_every_function_of_the_headers_is_exported(self):
        self.assertTrue(HEADERS, "no headers")
        for folders in HEADERS:
            for table, functions in declared(folders).items():
                known = read_headers.table(table)
                self.assertEqual({name: kind for name, kind in functions.items() if known.get(name) != kind}, {},
                                 f"run virtual_gpu/symbols/read_headers.py {' '.join(folders)}")
        for table in read_headers.LIBRARIES:
            functions = read_headers.table(table)
            self.assertGreater(len(functions), 25)
            for name, has in self.of_table(table):
                self.assertEqual(set(functions) - set(has), set(), name)

    def test_types_are_the_headers(self):
        """The compiler says so, which reads headers better than this does."""
        checked = 0
        for folders in HEADERS:
            includes = [include for folder in folders for include in read_headers.include_folders(folder)]
            for table, functions in declared(folders).items():
                headers, _, status = read_headers.LIBRARIES[table]
                headers = [name for name in headers if name not in NOT_COMPILED
                           and any((include / name).exists() for include in includes)]
                # What other headers or hidden ways declare has no name here; what C++ overloads has two types.
                plain = " ".join(read_headers.preprocessed(headers, includes, ()).split())
                raw = " ".join(path.read_text(errors="replace") for include in includes for path in include.glob("cublas*.h"))
                overloaded = set(re.findall(r"\binline\s+\w+\s+(?:CUBLASWINAPI\s+)?(\w+)\(", raw))
                seen = [name for name in sorted(set(functions) - overloaded) if re.search(rf"\b{name}\)? ?\(", plain)]
                if not headers or not seen:
                    continue
                lines = ["#include <type_traits>", "#include <sys/types.h>", *(f"#include <{name}>" for name in headers),
                         "template <typename R, typename... A> R Type(R (*)(A...));",
                         f"static_assert({STATUS[table][1]} == {STATUS[table][0]});"]
                for name in seen:
                    kind = functions[name]
                    lines.append(f"#ifndef {name}")  # another function's name otherwise
                    if kind == "Number":
                        lines.append(f"static_assert(std::is_integral_v<decltype(Type(&{name}))> || "
                                     f"std::is_enum_v<decltype(Type(&{name}))>);")
                    else:
                        of_kind = TYPES.get(kind, status)
                        lines.append(f"static_assert(std::is_same_v<decltype(Type(&{name})), {of_kind}>, \"{name}\");")
                    lines.append("#endif")
                    checked += 1
                done = subprocess.run(["c++", "-std=c++17", "-fsyntax-only", "-w", "-x", "c++",
                                       *(f"-I{include}" for include in includes), "-"],
                                      input="\n".join(lines), capture_output=True, text=True)
                self.assertEqual(done.returncode, 0, f"{folders} {table}: {done.stderr[:3000]}")
        self.assertGreater(checked, 1000)

    def test_calls_of_what_is_not_carried_out_fail_and_say_so(self):
        chance = random.Random(2900)
        stubs = [(str(LIBRARIES / library), table, name, kind) for table in read_headers.LIBRARIES
                 for library, has in self.of_table(table)
                 for name, kind in read_headers.table(table).items() if has.get(name)]
        self.assertGreater(len(stubs), CALLS, "most are not carried out")
        chosen = chance.sample(stubs, CALLS)
        calls = [(path, name, kind, chance.getrandbits(32)) for path, _, name, kind in chosen]
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([sys.executable, "-c", CALLER], input=repr(calls), capture_output=True, text=True,
                                  timeout=300, cwd=folder)
        last = done.stdout.splitlines()[-1:]
        self.assertEqual(done.returncode, 0, f"{last} {done.stderr[-2000:]}")
        results = re.findall(r"^(\w+)\n= (.*)$", done.stdout, re.MULTILINE)
        self.assertEqual(len(results), CALLS)
        for (_, table, name, kind), (called, result) in zip(chosen, results):
            self.assertEqual(called, name)
            code = STATUS[table][0]
            want = {"Status": str(code), "FileStatus": str(code), "Count": str(-code), "Nothing": "None",
                    "Pointer": "None", "Text": str(b"not supported on rfinject's virtual GPU"),
                    "Number": "0", "Float": "0.0", "Double": "0.0"}.get(kind)
            if want is not None:
                self.assertEqual(result, want, (name, kind))
            self.assertIn(f"the virtual GPU has no {name}:", done.stderr)
        self.assertEqual(done.stderr.count("the virtual GPU has no"), len({name for _, _, name, _ in chosen}))


if __name__ == "__main__":
    unittest.main()
