#include "injector/torch/calibrator.h"

#include <cxxabi.h>

#include <cstdlib>
#include <cstring>

#include "injector/torch/current_node.h"

namespace rfinject {
namespace {

using abi::NoContext;
using abi::RecordFunction;
using abi::RecordScope;

Calibrator* g_calibrator = nullptr;  // set while callbacks of one thread are installed

// Torch's frames lie between the script and us, with a libstdc++ of their own: no exception may pass through them. A
// calibration that could not look at something has too little to go by, and says so.
template <typename Call>
void Guarded(Call call) {
  if (g_calibrator == nullptr) return;
  try {
    call();
  } catch (::abi::__forced_unwind&) {
    throw;  // the thread is being cancelled
  } catch (...) {
    g_calibrator->Fail();
  }
}
template <RecordScope kScope>
NoContext StartOf(const RecordFunction& record) {
  Guarded([&] { g_calibrator->OnStart(record, kScope); });
  return {};
}
void EndOf(const RecordFunction& record, void*) {
  Guarded([&] { g_calibrator->OnEnd(record); });
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

void Lack(CalibrationResult* result, const char* what) {
  if (!result->missing.empty()) result->missing += ", ";
  result->missing += what;
}

}  // namespace

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
  } else if (strcmp(verb, "node") == 0 || strcmp(verb, "native-node") == 0) {
    const auto object = static_cast<uintptr_t>(next_number());
    const auto sequence = static_cast<uint64_t>(next_number());
    const char* name = strtok_r(nullptr, " ", &rest);
    if (name == nullptr) return;
    if (*verb == 'n' && verb[1] == 'o') {
      ObserveWrappedNode(object, sequence, name);
    } else {
      ++nodes_told_;
      ObserveNode(object, sequence, name);
    }
  } else if (strcmp(verb, "accumulate") == 0) {
    const auto object = static_cast<uintptr_t>(next_number());
    ObserveAccumulation(object, static_cast<uint64_t>(next_number()));
  } else if (strcmp(verb, "backward") == 0) {
    backward_expected_ = static_cast<uint64_t>(next_number());
    ++backwards_told_;
  } else if (strcmp(verb, "tensor") == 0) {
    KnownTensor tensor;
    tensor.address = static_cast<uintptr_t>(next_number());
    tensor.dtype = static_cast<uint16_t>(next_number());
    tensor.meta = next_number() != 0;
    tensor.data = static_cast<uintptr_t>(next_number());
    tensor.offset = static_cast<uint64_t>(next_number());
    tensor.numel = static_cast<uint64_t>(next_number());
    const auto rank = static_cast<size_t>(next_number());
    std::vector<int64_t> numbers;
    for (size_t i = 0; i < 2 * rank; ++i) numbers.push_back(next_number());
    tensor.sizes = std::span<const int64_t>(numbers).first(rank);
    tensor.strides = std::span<const int64_t>(numbers).last(rank);
    tensors_.Observe(tensor);
  } else if (strcmp(verb, "zeros") == 0) {
    tensors_.ObserveZeros(static_cast<uintptr_t>(next_number()));
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

// Calls `is_node(address)` for what the Python object of a node points to, until it is true. The pointer to the node
// is in a place that has moved between releases.
template <typename IsNode>
void FindWrappedNode(uintptr_t object, IsNode is_node) {
  const Snapshot wrapper = TakeSnapshot(object, 128);
  for (size_t offset = 16; offset + 8 <= wrapper.size; offset += 8) {
    const uint64_t pointer = wrapper.Word(offset);
    if (pointer % 8 != 0 || pointer < 4096) continue;
    if (is_node(pointer)) return;
  }
}

void Calibrator::ObserveWrappedNode(uintptr_t object, uint64_t sequence, const char* class_name) {
  ++nodes_told_;
  FindWrappedNode(object, [&](uintptr_t node) { return ObserveNode(node, sequence, class_name); });
}

void Calibrator::ObserveAccumulation(uintptr_t object, uint64_t tensor) {
  FindWrappedNode(object, [&](uintptr_t node) {
    char name[128];
    if (!SafeClassName(node, name, sizeof(name)) || strcmp(name, "AccumulateGrad") != 0) return false;
    node_parameter_.Require(TakeSnapshot(node), tensor);
    return true;
  });
}

bool Calibrator::ObserveNode(uintptr_t node, uint64_t sequence, const char* class_name) {
  char name[128];
  if (!SafeClassName(node, name, sizeof(name)) || strcmp(name, class_name) != 0) return false;
  ++nodes_named_;
  ++nodes_seen_;
  const Snapshot object = TakeSnapshot(node, 128);
  node_sequence_.Require(object, sequence);
  node_thread_.Require(object, symbols_.thread_id());
  if (object.Word(8) != node) nodes_self_referring_ = false;
  return true;
}

template <typename Fits>
size_t Calibrator::ObserveValues(FieldSearch* search, uintptr_t record, std::span<const KnownValue> known,
                                 Fits fits) {
  const Snapshot object = TakeSnapshot(record);
  std::vector<unsigned char> values(known.size() * kValueSize);
  std::vector<unsigned char> found;
  search->Filter([&](size_t offset) {
    if (!fits(object, offset)) return false;
    if (SafeRead(object.Word(offset), values.data(), values.size()) != values.size()) return false;
    for (size_t i = 0; i < known.size(); ++i) {
      if (known[i].kind != KnownValue::Kind::kTensor) continue;
      if (std::memcmp(&values[i * kValueSize], &known[i].bits, 8) != 0) return false;
    }
    found = values;
    return true;
  });
  const bool good = !found.empty() && values_.Observe(found.data(), known);
  values_good_ = values_good_ && good;
  return good ? 1 : 0;
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
  expected_met_ +=
      ObserveValues(&record_inputs_, address, expectation_.inputs,
                    [count](const Snapshot& object, size_t offset) { return object.Word(offset + 8) == count; });
}

void Calibrator::OnEnd(const RecordFunction& record) {
  if (!outputs_expected_ || strcmp(symbols_.record_name(&record), expectation_.name) != 0) return;
  outputs_expected_ = false;
  const size_t count = symbols_.record_output_count(&record);
  if (count != expectation_.outputs.size()) return;
  outputs_seen_ += ObserveValues(&record_outputs_, reinterpret_cast<uintptr_t>(&record), expectation_.outputs,
                                 [count](const Snapshot& object, size_t offset) {
                                   return object.Word(offset + 8) - object.Word(offset) == count * kValueSize;
                                 });
}

void Calibrator::Finish(bool operands, const char* error, CalibrationResult* result) const {
  if (done_ && !failed_) {
    FindLayouts(operands, result);
  } else {
    result->missing = std::string("calibration did not run to its end: ") + error;
  }
}

void Calibrator::FindLayouts(bool operands, CalibrationResult* result) const {
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
  if (node.valid && node_parameter_.count() == 1 && node_parameter_.distinct()) {
    node.parameter = static_cast<uint16_t>(node_parameter_.First());
  }
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
  // Behind the number lie the inputs (16 bytes), since torch 2.0 the keyword inputs (56), and then the outputs (24).
  const size_t thread = record.sequence_valid
                            ? record_thread_.Place({record.sequence + size_t{48}, record.sequence + size_t{104}})
                            : FieldSearch::kNowhere;
  if (thread != FieldSearch::kNowhere && backwards_seen_ >= 2) {
    record.forward_thread = static_cast<uint16_t>(thread);
    record.forward_thread_valid = true;
  } else if (backwards_told_ != 0) {
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

CalibratorCallbacks::CalibratorCallbacks(Calibrator* calibrator, const TorchSymbols& symbols, bool operands)
    : symbols_(symbols) {
  g_calibrator = calibrator;
  function_ = symbols.add_thread_local_callback(
      abi::MakeCallback(RecordScope::kFunction, StartOf<RecordScope::kFunction>, EndOf, operands));
  backward_ = symbols.add_thread_local_callback(
      abi::MakeCallback(RecordScope::kBackward, StartOf<RecordScope::kBackward>, IgnoreEnd));
}

CalibratorCallbacks::~CalibratorCallbacks() {
  symbols_.remove_callback(backward_);
  symbols_.remove_callback(function_);
  g_calibrator = nullptr;
}

}  // namespace rfinject
