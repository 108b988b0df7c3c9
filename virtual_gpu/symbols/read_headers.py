#!/usr/bin/env python3
"""What functions NVIDIA's public headers declare, and of what types: writes driver.csv and libraries.csv beside this file.

    read_headers.py FOLDER...        reads the headers of one CUDA and adds what they declare to the tables

A folder is a toolkit's include folder, that of one library, or site-packages/nvidia of a torch from PyPI, whose wheels
have a folder for each library. Only names and kinds of types are kept. `declared(folders)` returns them; the tests
hold the tables and the built libraries against it. A function that a newer CUDA has lost stays in the tables.
"""
import csv
import pathlib
import re
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent

# Of each table: its headers, the functions that belong to it, and the type of its status.
LIBRARIES = {
    "cuda": (("cuda.h", "cudaProfiler.h", "cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"), r"cu(?!File)[A-Z]\w+", "CUresult"),
    "cudart": (("cuda_runtime_api.h", "cuda_profiler_api.h", "cuda_gl_interop.h", "cuda_egl_interop.h",
                "cuda_vdpau_interop.h"), r"cuda[A-Z]\w+", "cudaError_t"),
    "cublas": (("cublas_v2.h", "cublas.h", "cublasXt.h"), r"cublas[A-Z]\w+", "cublasStatus_t"),
    "cublaslt": (("cublasLt.h",), r"cublasLt[A-Z]\w+", "cublasStatus_t"),
    "cudnn": (("cudnn.h",), r"cudnn[A-Z]\w+", "cudnnStatus_t"),
    "cufft": (("cufft.h", "cufftXt.h"), r"cufft[A-Z]\w+", "cufftResult"),
    "cufile": (("cufile.h",), r"cuFile[A-Z]\w+", "CUfileError_t"),
    "curand": (("curand.h",), r"curand[A-Z]\w+", "curandStatus_t"),
    "cusolver": (("cusolverDn.h", "cusolverSp.h", "cusolverRf.h", "cusolverMg.h"), r"cusolver[A-Z]\w+", "cusolverStatus_t"),
    "cusparse": (("cusparse.h",), r"cusparse[A-Z]\w+", "cusparseStatus_t"),
    "nccl": (("nccl.h",), r"p?nccl[A-Z]\w+", "ncclResult_t"),
    "nvrtc": (("nvrtc.h",), r"nvrtc[A-Z]\w+", "nvrtcResult"),
}
# The ways in which headers are read: each shows functions that the others hide behind macros of the same name.
WAYS = ((), ("-DCUDA_API_PER_THREAD_DEFAULT_STREAM",), ("-D__CUDA_API_VERSION_INTERNAL",), ("-D__CUDART_API_VERSION_INTERNAL",))
# Headers of other libraries, of which the text is enough.
FOREIGN = ("GL/gl.h", "EGL/egl.h", "EGL/eglext.h", "vdpau/vdpau.h")

FUNCTION = re.compile(r"([A-Za-z_][\w\s*]*?[\s*])\(?([A-Za-z_]\w*)\)?\s*\(")
KINDS = {"void": "Nothing", "constchar*": "Text", "float": "Float", "double": "Double", "cuComplex": "Complex",
         "cuDoubleComplex": "DoubleComplex", "ssize_t": "Count", "cudaError": "Status", "cufftResult_t": "Status",
         "cudaChannelFormatDesc": "Channels"}

def include_folders(folder):
    """The folders of a toolkit or of the wheels beside a torch in which headers lie."""
    folder = pathlib.Path(folder)
    return ([] if (folder / "cuda.h").exists() else sorted(folder.glob("*/include"))) or [folder]


def preprocessed(headers, folders, options):
    """Their text with includes and macros done, as C; empty where a header is not there."""
    text = ""
    for header in headers:
        if not any((folder / header).exists() for folder in folders):
            continue
        with tempfile.TemporaryDirectory() as foreign:
            for name in FOREIGN:
                path = pathlib.Path(foreign) / name
                path.parent.mkdir(parents=True, exist_ok=True)
                path.touch()
            before = "#include <sys/types.h>\n#include <stddef.h>\n"
            if header in ("cudaGL.h", "cudaEGL.h", "cudaVDPAU.h"):
                before += "#include <cuda.h>\n"
            done = subprocess.run(
                ["c++", "-E", "-P", "-x", "c", *options, *(f"-I{folder}" for folder in folders), f"-I{foreign}", "-"],
                input=f"{before}#include <{header}>\n", capture_output=True, text=True)
        text += done.stdout
    return text


def without_bodies(text):
    """Drops what is in braces, so that calls in inline functions are no declarations."""
    kept, depth = [], 0
    for part in re.split(r"([{}])", text):
        if part == "{":
            if depth == 0 and re.search(r'extern\s+"C"\s*$', kept[-1] if kept else ""):
                continue
            depth += 1
        elif part == "}":
            depth = max(0, depth - 1)
            if depth == 0:
                kept.append(";")
        elif depth == 0:
            kept.append(part)
    return "".join(kept)


def kind_of(words, status):
    kind = re.sub(r"\s+", "", re.sub(r"\b(extern|struct|enum|__inline__)\b", "", words))
    if kind == status:
        return "FileStatus" if status == "CUfileError_t" else "Status"
    if kind in KINDS:
        return KINDS[kind]
    return "Pointer" if kind.endswith("*") else "Number"


def declared(folders):
    """{table: {function: kind}} of what the headers in these folders declare."""
    includes = [include for folder in folders for include in include_folders(folder)]
    found = {}
    for library, (headers, names, status) in LIBRARIES.items():
        functions = found.setdefault(library, {})
        for options in WAYS:
            text = preprocessed(headers, includes, options)
            text = re.sub(r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)|__declspec\([^)]*\)|\b__extension__\b", " ", text)
            for statement in without_bodies(text).split(";"):
                statement = " ".join(statement.split())
                match = FUNCTION.match(statement)
                if match is None or statement.startswith(("typedef", "static")) or not statement.endswith(")"):
                    continue
                if re.fullmatch(names, match.group(2)):
                    functions[match.group(2)] = kind_of(match.group(1), status)
    for name in found["cublaslt"]:
        found["cublas"].pop(name, None)
    return found


def file_of(library):
    """The file with a library's table: the driver is built apart from the others."""
    return HERE / ("driver.csv" if library == "cuda" else "libraries.csv")


def table(library):
    """{function: kind} of a library, as its file has it."""
    with open(file_of(library), newline="", encoding="utf-8") as file:
        return {row["function"]: row["kind"] for row in csv.DictReader(file) if row["library"] == library}


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    lines = {file_of(library): ["library,kind,function\n"] for library in LIBRARIES}
    new = declared(sys.argv[1:])
    for library in LIBRARIES:
        functions = table(library) | new[library]
        lines[file_of(library)] += [f"{library},{kind},{name}\n" for name, kind in sorted(functions.items())]
        print(library, len(functions))
    for path, text in lines.items():
        path.write_text("".join(text), encoding="utf-8")


if __name__ == "__main__":
    main()
