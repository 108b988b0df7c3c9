"""check_includes.py finds what it must find and nothing else: trees of a few lines each."""
import pathlib
import sys
import tempfile
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
import check_includes  # noqa: E402

HEADERS = {
    "collector/recorder.h": "", "collector/cupti/api.h": "", "injector/layer_stack.h": "", "gpus/gpus.h": "", "gpus/table.inc.in": "",
    "collector/cupti/hardware_source.h": "", "operators/cost.h": "", "collector/arming/schedule.h": "",
    "injector/python/python_api.h": "", "injector/python/ref.h": "", "injector/torch/binding.h": "", "injector/torch/abi.h": "",
    "injector/native/objects.h": "",
    "virtual_gpu/values/values.h": "", "virtual_gpu/values/cpu_kernels.h": "",
    "proto/wire/framing.h": "", "cli/report/report.h": "", "cli/model/roofline.h": "",
}
# file, its text, what the one violation says (None: none)
CASES = [
    ("collector/a.cc", '#include "collector/recorder.h"\n#include "proto/wire/framing.h"', None),
    ("collector/a.cc", '#include "collector/cupti/hardware_source.h"', None),
    ("collector/cupti/a.cc", '#include "collector/recorder.h"\n#include "collector/arming/schedule.h"', None),
    ("collector/estimate/a.cc", '#include "collector/recorder.h"\n#include "gpus/gpus.h"', None),
    ("injector/torch/a.cc", '#include "injector/native/objects.h"\n#include "injector/layer_stack.h"', None),
    ("injector/python/a.cc", '#include "injector/layer_stack.h"\n#include "collector/recorder.h"', None),
    ("injector/a.cc", '#include "injector/python/ref.h"\n#include "injector/torch/binding.h"', None),
    ("injector/a.cc", '#include "collector/recorder.h"\n#include <mutex>\n#include <pthread.h>', None),
    ("cli/report/a.cc", '#include "cli/model/roofline.h"\n#include "absl/strings/str_cat.h"\n#include <iostream>', None),
    ("cli/trace/a.cc", '#include <google/protobuf/message.h>\n#include "proto/rfinject/v1/trace.pb.h"', None),
    ("collector/a.cc", '#include "proto/rfinject/v1/trace.schema.h"', None),
    ("cli/model/a.cc", '#include "proto/rfinject/v1/trace.schema.h"', None),
    ("proto/plugin/a.cc", "#include <google/protobuf/descriptor.h>", None),
    ("collector/a_test.cc", '#include <gtest/gtest.h>\n#include "proto/rfinject/v1/trace.pb.h"\n#include <thread>', None),
    ("collector/cupti/a.cc", "#include <cupti.h>\n#include <cuda.h>", None),
    ("integration_tests/fakes/a.cc", '#include <cupti.h>\n#include "cli/report/report.h"', None),
    ("cli/report/a.cc", '// #include "collector/recorder.h"\n/* #include "injector/layer_stack.h" */', None),
    ("gpus/a.cc", '#include "gpus/table.inc"', None),
    ("collector/testing/a.h", "#include <sstream>", None),
    ("cli/report/a.cc", '#include "collector/recorder.h"', "cli/report/ must not include collector/recorder.h"),
    ("cli/report/a_test.cc", '#include "injector/layer_stack.h"', "cli/report/ must not include injector/layer_stack.h"),
    ("injector/a.cc", '#include "cli/report/report.h"', "injector/ must not include"),
    ("collector/a.cc", '#include "injector/layer_stack.h"', "collector/ must not include"),
    ("collector/a.cc", '#include "cli/model/roofline.h"', "collector/ must not include"),
    ("collector/a.cc", '#include "gpus/gpus.h"', "collector/ must not include gpus/"),
    ("collector/arming/a.cc", '#include "collector/recorder.h"', "collector/arming/ must not include"),
    ("collector/record/a.cc", '#include "operators/cost.h"', "collector/record/ must not include"),
    ("collector/estimate/a.cc", '#include "collector/cupti/hardware_source.h"', "collector/estimate/ must not include"),
    ("injector/a.cc", '#include "collector/cupti/hardware_source.h"', "injector/ must not include"),
    ("injector/torch/a.cc", '#include "injector/python/ref.h"', "injector/torch/ must not include"),
    ("injector/torch/a.cc", '#include "injector/python/python_api.h"', "injector/torch/ must not include"),
    ("injector/python/a.cc", '#include "injector/torch/abi.h"', "injector/python/ must not include"),
    ("injector/python/a.cc", '#include "injector/torch/binding.h"', "injector/python/ must not include"),
    ("injector/torch/a.cc", '#include "virtual_gpu/values/values.h"', None),
    ("injector/torch/a.cc", '#include "virtual_gpu/values/cpu_kernels.h"', "injector/torch/ must not include"),
    ("injector/python/a.cc", '#include "virtual_gpu/values/values.h"', "injector/python/ must not include"),
    ("virtual_gpu/values/a.cc", '#include "injector/torch/abi.h"', None),
    ("virtual_gpu/values/a.cc", '#include "injector/torch/binding.h"', "virtual_gpu/values/ must not include"),
    ("virtual_gpu/driver/a.cc", '#include "injector/torch/abi.h"', "virtual_gpu/ must not include"),
    ("injector/native/a.cc", '#include "injector/torch/abi.h"', "injector/native/ must not include"),
    ("gpus/a.cc", '#include "collector/recorder.h"', "gpus/ must not include"),
    ("proto/wire/a.h", '#include "gpus/gpus.h"', "proto/ must not include"),
    ("cli/model/a.cc", '#include "cli/report/report.h"', "cli/model/ must not include"),
    ("cli/model/a.cc", "#include <cstdio>", "cli/model/ is pure"),
    ("cli/model/a.cc", '#include "absl/strings/str_cat.h"', "cli/model/ is pure"),
    ("gpus/a.cc", "#include <fstream>", "gpus/ is pure"),
    ("gpus/a_test.cc", "#include <fstream>", None),
    ("collector/a.cc", "#include <iostream>", "not for the injected library"),
    ("injector/python/a.cc", "#include  <filesystem>", "not for the injected library"),
    ("injector/a.cc", "#include <random>", "not for the injected library"),
    ("collector/a.cc", "#include <regex>", "not for the injected library"),
    ("collector/a.h", "#include <sstream>", "not for the injected library"),
    ("injector/a.cc", "std::call_once(flag, f);", "use pthread"),
    ("injector/a.cc", "\n\n  std::thread t(f);", "a.cc:3: std::thread"),
    ("collector/a.cc", "#include <cupti.h>", "CUDA's headers"),
    ("injector/a.cc", "#include <cuda_runtime_api.h>", "CUDA's headers"),
    ("cli/report/a.cc", '#include "nvperf_host.h"', "CUDA's headers"),
    ("collector/a.cc", '#include "proto/rfinject/v1/trace.pb.h"', "protoc's C++"),
    ("cli/view/a.cc", '#include "proto/rfinject/v1/trace.pb.h"', "protoc's C++"),
    ("cli/profile/a.cc", '#include "proto/rfinject/v1/trace.pb.h"', "protoc's C++"),
    ("proto/wire/a.h", "#include <google/protobuf/message.h>", "only for cli/trace/"),
    ("collector/a.cc", '#include "absl/strings/str_cat.h"', "only for cli/"),
    ("collector/a.cc", "#include <google/protobuf/message.h>", "only for cli/trace/"),
    ("collector/a.cc", "#include <gtest/gtest.h>", "only for tests"),
    ("injector/a.cc", "#include <Python.h>", "only for integration_tests/"),
    ("injector/a.cc", "#include <torch/torch.h>", "only for integration_tests/"),
    ("cli/report/a.cc", "#include <cli/report/report.h>", "use quotes"),
    ("cli/report/a.cc", '#include "report.h"', "is no file of this tree"),
    ("injector/a.cc", '#include "../collector/recorder.h"', "is no file of this tree"),
]


class CheckIncludes(unittest.TestCase):
    def violations(self, path, text):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, content in {**HEADERS, path: text}.items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                (root / name).write_text(content + "\n")
            return check_includes.check_tree(root)

    def test_cases(self):
        for path, text, expected in CASES:
            with self.subTest(path=path, text=text):
                found = self.violations(path, text)
                if expected is None:
                    self.assertEqual(found, [])
                elif len([line for line in found if expected in line]) != 1 or path not in found[0]:
                    self.fail(f"expected one line with {expected!r} for {path}, got {found}")

    def test_line_number_is_that_of_the_include(self):
        found = self.violations("collector/a.cc", '/* one\n two */\n\n#include "cli/report/report.h"')
        self.assertTrue(found[0].startswith("collector/a.cc:4: "), found)

    def test_document_must_name_every_part(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "docs").mkdir()
            rows = "".join(f"| `{name}/` | x | y |\n" for name in check_includes.RULES if "/" not in name)
            (root / "docs/ARCHITECTURE.md").write_text(rows)
            self.assertEqual(check_includes.check_document(root), [])
            (root / "docs/ARCHITECTURE.md").write_text(rows.replace("| `gpus/`", "| gone"))
            self.assertEqual(len(check_includes.check_document(root)), 1)


if __name__ == "__main__":
    unittest.main()
