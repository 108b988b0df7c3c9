#include "injector/torch/calibration.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <vector>

#include "injector/torch/abi.h"
#include "injector/torch/current_node.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;
using abi::RecordScope;

// Tells what it does before it does it, in lines of words, through tell(); peek() is the next sequence number.
// torch is taken from sys.modules: an import statement would wait for torch's own import, which is running.
constexpr char kScript[] = R"python(
import sys
torch = sys.modules['torch']
version = str(torch.__version__)
F32, F64, F16, BF16 = torch.float32, torch.float64, torch.float16, torch.bfloat16
NUMBER = {F32: 6, F64: 7, F16: 5, BF16: 15, torch.int64: 4, torch.bool: 11}

def zeros(*sizes, dtype=F32, device='cpu', grad=False):
    # empty() on "meta": zeros() would import half of torch's Python there.
    make = torch.empty if device == 'meta' else torch.zeros
    return make(sizes, dtype=dtype, device=device, requires_grad=grad)

def words(*values):
    return ' '.join(str(int(v)) for v in values)

def tell_tensor(t):
    meta = t.device.type == 'meta'
    tell('tensor ' + words(t._cdata, NUMBER[t.dtype], meta, 0 if meta else t.data_ptr(), t.numel(), t.dim(),
                           *t.size(), *t.stride()))

def node(make):
    number = peek()
    tell('expect-sequence')
    y = make()
    function = y.grad_fn
    tell('node %d %d %s' % (id(function), number, type(function).__name__))
    return y, function, number

def nodes():
    x = zeros(2, grad=True)
    kept = [node(lambda: x * 2), node(lambda: x * 3)]
    kept.append(node(lambda: kept[-1][0] * 4))
    kept.append(node(lambda: kept[-1][0] + 1))
    with torch.no_grad():
        tell('expect-no-sequence')
        x * 2
    for y, function, number in kept:
        tell('backward %d' % number)
        function(zeros(2))

def operands():
    a, b, c, d = zeros(3, 5, 7), zeros(3, 5, 7), zeros(4, 6), zeros(4, 6)
    big = zeros(2, 3, 2, 2, 3, 2)
    for t in (a, b, c, zeros(5, 3, dtype=F64).t(), zeros(11, dtype=torch.int64), zeros(2, 2, dtype=torch.bool),
              zeros(9, 2, dtype=BF16), zeros(3, 1, dtype=F16).expand(3, 4), big, big.permute(5, 4, 3, 2, 1, 0),
              zeros(3, 5, device='meta'), zeros(7, dtype=F64, device='meta'), zeros(2, 2, 2, 2, 3)):
        tell_tensor(t)
    T = lambda t: 'T%d' % t._cdata
    tell('expect aten::add %s %s I3' % (T(a), T(b)))
    torch.add(a, b, alpha=3)
    tell('expect aten::add_ %s %s I1 > %s' % (T(c), T(d), T(c)))
    c.add_(d)
    tell('expect aten::add %s %s D2.5' % (T(c), T(d)))
    torch.add(c, d, alpha=2.5)
    tell('expect aten::add %s %s D0.25' % (T(a), T(b)))
    torch.add(a, b, alpha=0.25)
    tell('expect aten::sum %s L0,2 B1 N' % T(a))
    torch.sum(a, (0, 2), True)
    tell('expect aten::sum %s L1 B0 N' % T(c))
    torch.sum(c, (1,), False)
    tell('expect aten::cat M%d,%d I1' % (c._cdata, d._cdata))
    torch.cat((c, d), 1)
    e = zeros(1, 6)
    tell('expect aten::cat M%d,%d,%d I0' % (c._cdata, e._cdata, d._cdata))
    torch.cat((c, e, d), 0)
    out = zeros(4, 6)
    tell('expect aten::mul %s %s %s > %s' % (T(c), T(d), T(out), T(out)))
    torch.mul(c, d, out=out)
    tell('expect aten::add_ %s %s I5 > %s' % (T(a), T(b), T(a)))
    a.add_(b, alpha=5)

def run():
    with torch.inference_mode(False):
        with torch.enable_grad():
            nodes()
        if wanted:
            with torch.no_grad():
                operands()
    tell('done')
run()
)python";

struct Expectation {
  bool armed = false;
  char name[64] = {};
  std::vector<KnownValue> inputs;
  std::vector<KnownValue> outputs;
};

// What the script tells, and what the callbacks see of it. One at a time, on the thread that holds the GIL.
class Calibrator {
 public:
  Calibrator(const PythonApi& python, const TorchSymbols& symbols) : python_(python), symbols_(symbols) {}

  void Tell(const char* line);
  void OnStart(const RecordFunction& record, RecordScope scope);
  void OnEnd(const RecordFunction& record);
  void Finish(bool operands, CalibrationResult* result);

  const PythonApi& python() const { return python_; }
  uint64_t Peek() const { return symbols_.peek(); }
  bool done() const { return done_; }

 private:
  void ObserveNode(uintptr_t object, uint64_t sequence, const char* class_name);
  void ObserveNodeAt(const Snapshot& node, uint64_t sequence);

  const PythonApi& python_;
  const TorchSymbols& symbols_;
  bool done_ = false;

  enum class SequenceExpected { kNothing, kPeek, kNone } sequence_expected_ = SequenceExpected::kNothing;
  uint64_t backward_expected_ = kNoBackward;
  static constexpr uint64_t kNoBackward = UINT64_MAX;

  FieldSearch node_sequence_{8, 96};
  FieldSearch node_thread_{8, 96};
  size_t nodes_seen_ = 0;
  size_t nodes_named_ = 0;
  size_t nodes_told_ = 0;
  bool nodes_self_referring_ = true;  // word 1 is the object's own address: std::enable_shared_from_this

  FieldSearch record_sequence_{8, 320};
  FieldSearch record_thread_{8, 400};
  size_t backwards_seen_ = 0;

  Expectation expectation_;
  bool outputs_expected_ = false;
  size_t expected_met_ = 0;
  size_t expected_told_ = 0;
  bool values_good_ = true;
  FieldSearch record_inputs_{8, 400};
  FieldSearch record_outputs_{8, 400};
  size_t outputs_seen_ = 0;
  TensorSearch tensors_;
  ValueSearch values_;
};

Calibrator* g_calibrator = nullptr;  // set under the GIL, while callbacks of this thread only are installed

template <RecordScope kScope>
NoContext StartOf(const RecordFunction& record) {
  if (g_calibrator != nullptr) g_calibrator->OnStart(record, kScope);
  return {};
}
void EndOf(const RecordFunction& record, void*) {
  if (g_calibrator != nullptr) g_calibrator->OnEnd(record);
}
void IgnoreEnd(const RecordFunction&, void*) {}

// "T123", "I-3", "D2.5", "B1", "N", "L0,2", "M123,456".
KnownValue ParseValue(const char* text) {
  KnownValue value;
  const char kind = *text++;
  char* end = nullptr;
  switch (kind) {
    case 'T':
      value.kind = KnownValue::Kind::kTensor;
      value.bits = strtoull(text, &end, 10);
      break;
    case 'I':
      value.kind = KnownValue::Kind::kInteger;
      value.bits = static_cast<uint64_t>(strtoll(text, &end, 10));
      break;
    case 'B':
      value.kind = KnownValue::Kind::kBoolean;
      value.bits = strtoull(text, &end, 10);
      break;
    case 'D': {
      value.kind = KnownValue::Kind::kReal;
      // Not strtod: the program may have set a locale with another decimal point. The script uses binary fractions.
      const long whole = strtol(text, &end, 10);
      int64_t digits = 0;
      int64_t scale = 1;
      if (*end == '.') {
        for (const char* at = end + 1; *at >= '0' && *at <= '9'; ++at, scale *= 10)
          digits = digits * 10 + (*at - '0');
      }
      const double real = static_cast<double>(whole) + static_cast<double>(digits) / static_cast<double>(scale);
      std::memcpy(&value.bits, &real, sizeof(real));
      break;
    }
    case 'L':
    case 'M':
      value.kind = kind == 'L' ? KnownValue::Kind::kIntegerList : KnownValue::Kind::kTensorList;
      for (const char* at = text; value.list_size < value.list.size(); at = end + 1) {
        value.list[value.list_size++] = static_cast<uint64_t>(strtoll(at, &end, 10));
        if (*end != ',') break;
      }
      break;
    default:
      break;
  }
  return value;
}

void Calibrator::Tell(const char* line) {
  char copy[1024];
  if (strlen(line) >= sizeof(copy)) return;
  strcpy(copy, line);
  char* rest = nullptr;
  const char* verb = strtok_r(copy, " ", &rest);
  if (verb == nullptr) return;
  const auto next_number = [&rest]() -> int64_t {
    const char* word = strtok_r(nullptr, " ", &rest);
    // Addresses may have their top bit set; -1 does not occur.
    return word != nullptr ? static_cast<int64_t>(strtoull(word, nullptr, 10)) : 0;
  };
  if (strcmp(verb, "expect-sequence") == 0) {
    sequence_expected_ = SequenceExpected::kPeek;
  } else if (strcmp(verb, "expect-no-sequence") == 0) {
    sequence_expected_ = SequenceExpected::kNone;
  } else if (strcmp(verb, "node") == 0) {
    const auto object = static_cast<uintptr_t>(next_number());
    const auto sequence = static_cast<uint64_t>(next_number());
    const char* name = strtok_r(nullptr, " ", &rest);
    if (name != nullptr) ObserveNode(object, sequence, name);
  } else if (strcmp(verb, "backward") == 0) {
    backward_expected_ = static_cast<uint64_t>(next_number());
  } else if (strcmp(verb, "tensor") == 0) {
    KnownTensor tensor;
    tensor.address = static_cast<uintptr_t>(next_number());
    tensor.dtype = static_cast<uint16_t>(next_number());
    tensor.meta = next_number() != 0;
    tensor.data = static_cast<uintptr_t>(next_number());
    tensor.numel = static_cast<uint64_t>(next_number());
    const auto rank = static_cast<size_t>(next_number());
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < 2 * rank; ++i) numbers.push_back(next_number());
    tensor.sizes = std::span<const int64_t>(numbers).first(rank);
    tensor.strides = std::span<const int64_t>(numbers).last(rank);
    tensors_.Observe(tensor);
  } else if (strcmp(verb, "expect") == 0) {
    expectation_ = {};
    const char* name = strtok_r(nullptr, " ", &rest);
    if (name == nullptr || strlen(name) >= sizeof(expectation_.name)) return;
    strcpy(expectation_.name, name);
    std::vector<KnownValue>* target = &expectation_.inputs;
    while (const char* word = strtok_r(nullptr, " ", &rest)) {
      if (*word == '>') {
        target = &expectation_.outputs;
      } else {
        target->push_back(ParseValue(word));
      }
    }
    expectation_.armed = true;
    ++expected_told_;
  } else if (strcmp(verb, "done") == 0) {
    done_ = true;
  }
}

void Calibrator::ObserveNode(uintptr_t object, uint64_t sequence, const char* class_name) {
  ++nodes_told_;
  // The Python object holds a pointer to the node, in a place that has moved between releases.
  const Snapshot wrapper = TakeSnapshot(object, 128);
  for (size_t offset = 16; offset + 8 <= wrapper.size; offset += 8) {
    const uint64_t pointer = wrapper.Word(offset);
    if (pointer % 8 != 0 || pointer < 4096) continue;
    char name[128];
    if (!SafeClassName(pointer, name, sizeof(name)) || strcmp(name, class_name) != 0) continue;
    const Snapshot node = TakeSnapshot(pointer, 128);
    ++nodes_named_;
    ObserveNodeAt(node, sequence);
    return;
  }
}

void Calibrator::ObserveNodeAt(const Snapshot& node, uint64_t sequence) {
  ++nodes_seen_;
  node_sequence_.Require(node, sequence);
  node_thread_.Require(node, symbols_.thread_id());
  if (node.Word(8) != node.address) nodes_self_referring_ = false;
}

void Calibrator::OnStart(const RecordFunction& record, RecordScope scope) {
  const auto address = reinterpret_cast<uintptr_t>(&record);
  if (scope == RecordScope::kBackward) {
    if (backward_expected_ == kNoBackward) return;
    const Snapshot object = TakeSnapshot(address);
    record_sequence_.Require(object, backward_expected_);
    record_thread_.Require(object, symbols_.thread_id());
    ++backwards_seen_;
    backward_expected_ = kNoBackward;
    return;
  }
  if (sequence_expected_ != SequenceExpected::kNothing) {
    const Snapshot object = TakeSnapshot(address);
    record_sequence_.Require(object, sequence_expected_ == SequenceExpected::kPeek ? symbols_.peek() : UINT64_MAX);
    record_thread_.Require(object, 0);
    sequence_expected_ = SequenceExpected::kNothing;
  }
  if (!expectation_.armed || strcmp(symbols_.record_name(&record), expectation_.name) != 0) return;
  expectation_.armed = false;
  outputs_expected_ = !expectation_.outputs.empty();
  const size_t count = symbols_.record_input_count(&record);
  if (count != expectation_.inputs.size()) return;
  const Snapshot object = TakeSnapshot(address);
  std::vector<unsigned char> values(count * kValueSize);
  std::vector<unsigned char> found;
  record_inputs_.Filter([&](size_t offset) {
    if (object.Word(offset + 8) != count) return false;
    if (SafeRead(object.Word(offset), values.data(), values.size()) != values.size()) return false;
    for (size_t i = 0; i < count; ++i) {
      const KnownValue& value = expectation_.inputs[i];
      if (value.kind != KnownValue::Kind::kTensor) continue;
      if (std::memcmp(&values[i * kValueSize], &value.bits, 8) != 0) return false;
    }
    found = values;
    return true;
  });
  if (!found.empty() && values_.Observe(found.data(), expectation_.inputs)) {
    ++expected_met_;
  } else {
    values_good_ = false;
  }
}

void Calibrator::OnEnd(const RecordFunction& record) {
  if (!outputs_expected_ || strcmp(symbols_.record_name(&record), expectation_.name) != 0) return;
  outputs_expected_ = false;
  const size_t count = symbols_.record_output_count(&record);
  if (count != expectation_.outputs.size()) return;
  const Snapshot object = TakeSnapshot(reinterpret_cast<uintptr_t>(&record));
  std::vector<unsigned char> values(count * kValueSize);
  std::vector<unsigned char> found;
  record_outputs_.Filter([&](size_t offset) {
    if (object.Word(offset + 8) - object.Word(offset) != values.size()) return false;
    if (SafeRead(object.Word(offset), values.data(), values.size()) != values.size()) return false;
    if (std::memcmp(values.data(), &expectation_.outputs[0].bits, 8) != 0) return false;
    found = values;
    return true;
  });
  if (!found.empty() && values_.Observe(found.data(), expectation_.outputs)) {
    ++outputs_seen_;
  } else {
    values_good_ = false;
  }
}

void Lack(CalibrationResult* result, const char* what) {
  if (!result->missing.empty()) result->missing += ", ";
  result->missing += what;
}

void Calibrator::Finish(bool operands, CalibrationResult* result) {
  TorchLayouts& layouts = result->layouts;

  NodeLayout& node = layouts.node;
  result->node_names = nodes_named_ >= 2 && nodes_named_ == nodes_told_;
  if (nodes_seen_ >= 3 && node_sequence_.count() == 1 && node_sequence_.distinct()) {
    node.sequence = static_cast<uint16_t>(node_sequence_.First());
    // Between them lie the topological number and whether the node has a parent.
    const size_t thread = node_thread_.Place({node_sequence_.First() + 24});
    if (thread != FieldSearch::kNowhere) {
      node.thread = static_cast<uint16_t>(thread);
      node.valid = true;
    }
  }
  if (!node.valid) Lack(result, "layout of autograd's Node not found");
  node.reference = FindNodeReference(symbols_);
  // A shared node begins with a pointer to itself (after the virtual table), an intrusive one with its counts.
  if (node.valid && node.reference != NodeLayout::Reference::kNone &&
      nodes_self_referring_ != (node.reference != NodeLayout::Reference::kIntrusive)) {
    node.reference = NodeLayout::Reference::kNone;
    Lack(result, "how the running node is told not understood");
  }

  RecordLayout& record = layouts.record;
  if (record_sequence_.count() == 1 && record_sequence_.distinct() && record_sequence_.observations() >= 3) {
    record.sequence = static_cast<uint16_t>(record_sequence_.First());
    record.sequence_valid = true;
  } else {
    Lack(result, "RecordFunction's sequence number not found");
  }
  // Behind the number lie the inputs (16 bytes), since torch 2.0 keyword inputs (56), and the outputs (24).
  const size_t thread = record.sequence_valid
                            ? record_thread_.Place({record.sequence + size_t{48}, record.sequence + size_t{104}})
                            : FieldSearch::kNowhere;
  if (thread != FieldSearch::kNowhere && backwards_seen_ >= 2) {
    record.forward_thread = static_cast<uint16_t>(thread);
    record.forward_thread_valid = true;
  } else {
    Lack(result, "RecordFunction's forward thread not found");
  }

  if (!operands) return;
  const char* why = nullptr;
  if (!tensors_.Finish(&layouts.tensor, &why)) Lack(result, why);
  if (!values_.Finish(&layouts.value, &why)) Lack(result, why);
  if (record_inputs_.count() == 1 && record_outputs_.count() == 1 && outputs_seen_ >= 2 && values_good_ &&
      expected_met_ == expected_told_) {
    record.inputs = static_cast<uint16_t>(record_inputs_.First());
    record.outputs = static_cast<uint16_t>(record_outputs_.First());
    record.operands_valid = layouts.tensor.valid && layouts.value.valid;
  } else {
    Lack(result, "RecordFunction's operands not found");
  }
}

PyObject* PythonTell(PyObject*, PyObject* text) {
  const PythonApi& python = g_calibrator->python();
  if (PyObject* bytes = python.PyUnicode_AsUTF8String(text)) {
    g_calibrator->Tell(python.PyBytes_AsString(bytes));
    python.Py_DecRef(bytes);
  } else {
    python.PyErr_Clear();
  }
  auto* none = static_cast<PyObject*>(python._Py_NoneStruct);
  python.Py_IncRef(none);
  return none;
}

PyObject* PythonPeek(PyObject*, PyObject*) {
  return g_calibrator->python().PyLong_FromUnsignedLongLong(g_calibrator->Peek());
}

// Installs the calibrator's callbacks for as long as it lives.
class CallbacksOfThisThread {
 public:
  CallbacksOfThisThread(Calibrator* calibrator, const TorchSymbols& symbols, bool operands) : symbols_(symbols) {
    g_calibrator = calibrator;
    function_ = symbols.add_thread_local_callback(
        abi::MakeCallback(RecordScope::kFunction, StartOf<RecordScope::kFunction>, EndOf, operands));
    backward_ = symbols.add_thread_local_callback(
        abi::MakeCallback(RecordScope::kBackward, StartOf<RecordScope::kBackward>, IgnoreEnd));
  }
  ~CallbacksOfThisThread() {
    symbols_.remove_callback(backward_);
    symbols_.remove_callback(function_);
    g_calibrator = nullptr;
  }
  CallbacksOfThisThread(const CallbacksOfThisThread&) = delete;
  CallbacksOfThisThread& operator=(const CallbacksOfThisThread&) = delete;

 private:
  const TorchSymbols& symbols_;
  uint64_t function_ = 0;
  uint64_t backward_ = 0;
};

// Alive as long as the interpreter: function objects point to them.
PyMethodDef g_tell_method = {"tell", PythonTell, kMethO, nullptr};
PyMethodDef g_peek_method = {"peek", PythonPeek, kMethNoArgs, nullptr};

}  // namespace

CalibrationResult Calibrate(const PythonApi& python, const TorchSymbols& symbols, bool operands) {
  CalibrationResult result;
  if (!symbols.has_record_function() || symbols.peek == nullptr || symbols.thread_id == nullptr ||
      symbols.record_input_count == nullptr || symbols.record_output_count == nullptr) {
    result.missing = "functions of libtorch not found: " + symbols.missing;
    return result;
  }
  Calibrator calibrator(python, symbols);
  PyObject* scope = nullptr;
  char error[256] = {};
  {
    const CallbacksOfThisThread callbacks(&calibrator, symbols, operands);
    const char* const names[] = {"tell", "peek", "wanted"};
    PyObject* const values[] = {python.PyCFunction_NewEx(&g_tell_method, nullptr, nullptr),
                                python.PyCFunction_NewEx(&g_peek_method, nullptr, nullptr),
                                python.PyLong_FromLong(operands ? 1 : 0)};
    scope = RunPython(python, kScript, names, values, 3, error, sizeof(error));
    for (PyObject* value : values) {
      if (value != nullptr) python.Py_DecRef(value);
    }
  }

  calibrator.Finish(operands, &result);
  if (scope == nullptr || !calibrator.done()) {
    // What was learned before the script failed was learned from too few objects.
    result.layouts = {};
    result.node_names = false;
    result.missing = std::string("calibration did not run to its end: ") + error;
  }
  if (scope != nullptr) {
    if (PyObject* version = python.PyDict_GetItemString(scope, "version")) {
      if (PyObject* bytes = python.PyUnicode_AsUTF8String(version)) {
        result.torch_version = python.PyBytes_AsString(bytes);
        python.Py_DecRef(bytes);
      }
    }
    python.Py_DecRef(scope);
  }
  return result;
}

}  // namespace rfinject
