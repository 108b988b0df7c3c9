#!/usr/bin/env python3
"""Who may include whom: the table of docs/ARCHITECTURE.md, checked.

    check_includes.py [ROOT]      one line per violation, "file:line: text"; exit code 1 when there is one

Every quoted include is a path from the root. A folder may include its own headers, and those of the folders that
RULES names; the rule of the longest folder that holds a file counts. Tests, benchmarks and fuzzers beside the code
may use the schema's generated C++ and their frameworks too.
"""
import pathlib
import re
import sys

GENERATED = "proto/rfinject/v1/trace.pb.h"       # protoc's C++: needs libprotobuf
SCHEMA = "proto/rfinject/v1/trace.schema.h"     # made by proto/plugin: needs nothing, and counts as proto/wire

# For each folder: the folders (or single headers) that may be included besides its own and its subfolders'. A
# subfolder that has a rule of its own must be named to be included from outside. None stands for all.
RULES = {
    "proto": [],
    "gpus": ["proto/wire"],
    # What an operator costs; the injected library and the command share it.
    "operators": ["gpus", "proto/wire"],
    "collector": ["collector/record", "operators/op_call.h", "proto/wire"],
    # The trace's recorder: the sources and the injector see the interface that it implements, collector/recorder.h.
    "collector/record": ["collector", "proto/wire"],
    # Others may include one header of the virtual GPU only, its interface, which is C without CUDA.
    "virtual_gpu": [],
    # What computes values reads torch's objects with what the injector reads them with. The injector knows its one
    # function, and nothing in librfinject.so calls a kernel of torch's.
    "virtual_gpu/values": ["virtual_gpu/virtual_gpu.h", "injector/foreign_exceptions.h", "collector/thread_block.h",
                           "injector/torch/abi.h", "injector/torch/layouts.h", "injector/torch/name_cache.h",
                           "injector/torch/operands.h", "injector/torch/operator_calls.h",
                           "injector/torch/sparse_layout.h", "injector/torch/symbols.h",
                           "injector/torch/torch_string.h"],
    "compat": [],
    "collector/arming": [],
    # What torch.compile made costs the same in an estimate and where it was measured.
    "collector/cupti": ["collector", "collector/arming", "collector/estimate/compiled_work.h",
                        "collector/estimate/unknown_operators.h", "operators", "proto/wire", "gpus"],
    "collector/estimate": ["collector", "operators", "proto/wire", "gpus", "virtual_gpu/virtual_gpu.h"],
    "injector": ["injector/python", "injector/torch", "injector/native", "collector"],
    # What these folders ask of one another is declared in injector/training.h; the files of injector/ wire them.
    "injector/python": ["injector", "collector", "operators/fx_nodes.h", "operators/generated_code.h",
                        "operators/op_call.h"],
    "injector/torch": ["injector", "injector/native", "collector", "operators/op_call.h",
                       "virtual_gpu/values/values.h"],
    "injector/native": ["injector", "collector"],
    "cli": ["proto", "gpus"],
    # Perfetto's schema, which exports write and the import of .pftrace reads, stands once.
    "cli/import": ["cli/export/perfetto.pb.h", "cli/profile", "cli/model", "gpus", "operators", "proto/wire"],
    # The folders of the command, each over those before it. Text is how numbers, names and tables are written.
    "cli/text": ["proto/wire"],
    "cli/model": ["proto/wire", "gpus"],
    "cli/attach": [],
    "cli/report": ["cli/model", "cli/profile", "cli/text", "gpus", "proto/wire"],
    # Sentences name the tensor paths of a chip.
    "cli/words": ["cli/report", "cli/text", "gpus/chips.h", "proto/wire"],
    "cli/picture": ["cli/report", "cli/text", "cli/words", "proto/wire"],
    # A view makes a Document, and a format writes it.
    "cli/view": ["cli/picture", "cli/words", "cli/report", "cli/profile", "cli/text", "gpus", "proto/wire"],
    "cli/format": ["cli/view", "cli/picture", "cli/text", "proto/wire"],
    "cli/export": ["cli/report", "cli/profile", "cli/text", "cli/words", "proto/wire"],
    "integration_tests": None,
    "bench": None,
}

# Of the collector, everything but the hardware source is free of CUDA: the estimator and the simulated GPU are built
# and tested where there is no header of NVIDIA's.
CUDA_FOLDERS = ["collector/cupti", "bench/counting.cc", "bench/launch_loop.cc", "virtual_gpu/driver", "virtual_gpu/libraries",
                "virtual_gpu/runtime", "integration_tests"]
CUDA = re.compile(r"(cuda|cupti|nvperf|nvml|generated_cuda|generated_nv|nvtx|driver_types|vector_types|library_types|cublas|"
                  r"cudnn|cufft|nccl|nvrtc)")

# Where protoc's C++ may appear outside tests.
SCHEMA_FOLDERS = ["cli/trace", "bench", "integration_tests"]

# The library runs inside programs that we know nothing about. The headers below bring locales and start-up code, need
# newer glibc symbols (random_device: getentropy, thread: pthread_create@2.34), or both.
INJECTED = ["collector", "injector", "operators", "virtual_gpu"]
INJECTED_FORBIDDEN = {"iostream", "fstream", "sstream", "ostream", "istream", "iomanip", "locale", "filesystem",
                      "random", "regex", "thread", "future", "syncstream", "stop_token", "semaphore", "barrier"}
INJECTED_WORDS = re.compile(r"std::(call_once|once_flag|thread|jthread|async)\b")

# Pure maths: reads nothing, writes nothing.
PURE = ["cli/model", "gpus", "operators"]
PURE_FORBIDDEN = {"iostream", "fstream", "cstdio", "stdio.h", "filesystem", "unistd.h", "fcntl.h", "sys/stat.h"}

# Third-party headers by how they begin, and the folders that may use them.
THIRD_PARTY = {
    "absl/": ["cli", "integration_tests"],
    "google/protobuf/": SCHEMA_FOLDERS + ["proto/plugin"],
    "rapidjson/": ["cli", "integration_tests"],
    "sqlite3.h": ["cli", "integration_tests"],
    "libunwind.h": ["injector/native"],
    "gtest/": [],  # tests only
    "gmock/": [],
    "benchmark/": ["bench"],
    # Bound at run time; compiling them in would pin one version of torch or Python.
    "torch/": ["integration_tests"],
    "ATen/": ["integration_tests"],
    "c10/": ["integration_tests"],
    "Python.h": ["integration_tests"],
}
TEST_ONLY = ("absl/", "google/protobuf/", "rapidjson/", "sqlite3.h", "gtest/", "gmock/", "benchmark/")

INCLUDE = re.compile(r'^\s*#\s*include(_next)?\s*(?:"([^"]+)"|<([^>]+)>)')
TEST_FILE = re.compile(r"(_test|_fuzz|_benchmark)\.(cc|c|h)$|/testing/")
SOURCES = {".cc", ".h", ".c", ".cpp", ".inc"}


def is_below(path, folders):
    return any(path == folder or path.startswith(folder + "/") for folder in folders)


def rule_of(path):
    """The longest folder of RULES that holds `path`, or None."""
    best = None
    for folder in RULES:
        if is_below(path, [folder]) and (best is None or len(folder) > len(best)):
            best = folder
    return best


def uncommented(text):
    """`text` without comments; line numbers stay as they are."""
    text = re.sub(r"/\*.*?\*/", lambda match: "\n" * match.group(0).count("\n"), text, flags=re.S)
    return re.sub(r"//[^\n]*", "", text)


def check_file(root, path):
    """Yields (line, text) for each violation in `path`, which is relative to `root`."""
    rule = rule_of(path)
    is_test = TEST_FILE.search(path) is not None
    text = uncommented((root / path).read_text(encoding="utf-8"))
    for number, line in enumerate(text.split("\n"), 1):
        if is_below(path, INJECTED) and not is_test:
            word = INJECTED_WORDS.search(line)
            if word:
                yield number, f"{word.group(0)} is not for the injected library: use pthread (docs/ARCHITECTURE.md)"
        match = INCLUDE.match(line)
        if not match:
            continue
        quoted, header = match.group(2) is not None, match.group(2) or match.group(3)

        name = header.rsplit("/", 1)[-1]
        if header != GENERATED and not (root / header).is_file() and CUDA.match(name):
            if not is_below(path, CUDA_FOLDERS):
                yield number, f"{header}: CUDA's headers are for {CUDA_FOLDERS[0]}/ only"
            continue
        if is_below(path, INJECTED) and not is_test and header in INJECTED_FORBIDDEN:
            yield number, f"<{header}> is not for the injected library (docs/ARCHITECTURE.md)"
        if is_below(path, PURE) and not is_test and header in PURE_FORBIDDEN:
            yield number, f"<{header}>: {rule}/ is pure, without input or output"
        for prefix, folders in THIRD_PARTY.items():
            if header.startswith(prefix) and not is_below(path, folders) and not (is_test and prefix in TEST_ONLY):
                where = ", ".join(folder + "/" for folder in folders) or "tests"
                yield number, f"{header}: only for {where}"
            elif header.startswith(prefix) and is_below(path, PURE) and not is_test:
                yield number, f"{header}: {rule}/ is pure and needs the standard library only"

        if header == GENERATED:
            if not is_test and not is_below(path, SCHEMA_FOLDERS):
                yield number, f"protoc's C++ is for {SCHEMA_FOLDERS[0]}/, benchmarks and tests only"
            continue
        if header == SCHEMA:
            if rule is None or RULES[rule] is None or is_below("proto/wire", [rule] + RULES[rule]):
                continue
            yield number, f"{rule}/ must not include {header}"
            continue
        # A file "name.in" is what configure_file makes "name" of, "name.csv" what it makes "name.csv.inc" of, "name.proto"
        # what protoc makes "name.pb.h" of.
        if any((root / source).is_file() for source in (header, header + ".in", re.sub(r"\.pb\.h$", ".proto", header),
                                                     header.removesuffix(".inc"))):
            if not quoted:
                yield number, f"<{header}> is ours: use quotes"
            if rule is None or RULES[rule] is None:
                continue
            target = rule_of(header)
            allowed = [rule] + [name for name in RULES[rule] if target is None or len(name) >= len(target)]
            # The tests of one part of the command may use the others.
            same_part = target is not None and rule.split("/")[0] == target.split("/")[0]
            if not is_below(header, allowed) and not (is_test and (target == "proto" or same_part)):
                yield number, f"{rule}/ must not include {header}"
        elif quoted and not any(header.startswith(prefix) for prefix in THIRD_PARTY):
            yield number, f'"{header}" is no file of this tree; includes are written from the root'


def check_tree(root):
    """All violations below `root` as "file:line: text"."""
    violations = []
    for folder in sorted({rule.split("/")[0] for rule in RULES}):
        for path in sorted((root / folder).rglob("*")):
            relative = path.relative_to(root).as_posix()
            if path.suffix in SOURCES and path.is_file() and "/fixtures/" not in relative:
                violations += [f"{relative}:{line}: {text}" for line, text in check_file(root, relative)]
    return violations


def check_document(root):
    """The table of docs/ARCHITECTURE.md must name every part that there is a rule for."""
    text = (root / "docs/ARCHITECTURE.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z_]+)/`", text, flags=re.M)
    return [f"docs/ARCHITECTURE.md:1: the table of parts lacks {folder}/" for folder in RULES
            if "/" not in folder and folder != "bench" and folder not in rows]


def main(arguments):
    root = pathlib.Path(arguments[0] if arguments else pathlib.Path(__file__).resolve().parent.parent)
    violations = check_tree(root) + check_document(root)
    for violation in violations:
        print(violation)
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
