// Compiled twice: with the current std::string (32 bytes) and with the one from before C++11 (8 bytes), which PyPI's
// wheels up to torch 2.6 use. RFINJECT_NEW and RFINJECT_FACTS name the functions.
#include <functional>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

#include "injector/torch/mock_objects.h"

namespace rfinject::mock {
namespace {

struct Schema {};

struct Record {
  // c10::SmallVector of callbacks and its flags.
  void* callbacks = this;
  uint64_t callbacks_size = 1;
  char callbacks_inside[64] = {};
  uint64_t thread = 1;
  bool flags[8] = {};
  bool started = true;
  void* contexts[5] = {};
  std::variant<std::string, std::reference_wrapper<const Schema>> name;
  int64_t sequence = -1;
  const Value* inputs = nullptr;
  size_t input_count = 0;
  std::unordered_map<int, Value> keyword_inputs;
  std::vector<Value> outputs;
  uint64_t forward_thread = 0;
  uint64_t handle = 41;
  bool async = false;
  int64_t debug_handle = -1;
};

}  // namespace

void* RFINJECT_NEW(int64_t sequence, uint64_t forward_thread, const Value* inputs, size_t count) {
  static std::vector<std::unique_ptr<Record>> all;  // a handful, to the end of the test
  Record* record = all.emplace_back(std::make_unique<Record>()).get();
  record->sequence = sequence;
  record->forward_thread = forward_thread;
  record->inputs = inputs;
  record->input_count = count;
  return record;
}

RecordFacts RFINJECT_FACTS() {
  Record record;
  const auto offset = [&](const void* field) {
    return static_cast<size_t>(static_cast<const char*>(field) - reinterpret_cast<const char*>(&record));
  };
  return {.size = sizeof(Record),
          .sequence = offset(&record.sequence),
          .inputs = offset(static_cast<const void*>(&record.inputs)),
          .outputs = offset(&record.outputs),
          .forward_thread = offset(&record.forward_thread)};
}

}  // namespace rfinject::mock
