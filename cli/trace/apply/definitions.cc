// What ids stand for, but for layers and launch keys: names, metrics, native stacks and lines of the program.
#include <string>
#include <utility>

#include "cli/trace/apply/errors.h"
#include "cli/trace/apply/records.h"

namespace rfinject::cli {

absl::Status Apply(const v1::Name& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "name");
  const auto [place, inserted] = state->name_index.TryEmplace(message.id(), state->names.size());
  if (inserted) {
    state->names.push_back(message.text());
    return state->Charge(96 + message.text().size(), record);
  }
  return state->names[place] == message.text() ? absl::OkStatus() : Redefined(record, "name", message.id());
}

absl::Status Apply(const v1::Metric& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "metric");
  MetricInfo metric{.name = message.name(), .unit = message.unit()};
  if (message.scale() != 0) metric.scale = message.scale();
  // Between atto and exa; beyond, sums of what a file can hold would not be finite.
  if (!(metric.scale >= 1e-18 && metric.scale <= 1e18)) {
    return DamageAt(record.offset, absl::StrCat("metric ", message.id(), " has an impossible scale"));
  }
  const auto [place, inserted] = state->metric_index.TryEmplace(message.id(), state->metrics.size());
  if (!inserted) {
    return state->metrics[place] == metric ? absl::OkStatus() : Redefined(record, "metric", message.id());
  }
  const auto [named, first] = state->metric_ids.try_emplace(metric.name, message.id());
  if (!first) {
    return DamageAt(record.offset,
                    absl::StrCat("metrics ", named->second, " and ", message.id(), " have the same name"));
  }
  // A new metric of a key is inserted into a sorted list.
  constexpr size_t kMaxMetrics = 8192;
  state->metrics.push_back(std::move(metric));
  if (state->metrics.size() > kMaxMetrics) return DamageAt(record.offset, "more metrics than any trace has");
  return state->Charge(sizeof(MetricInfo) + 256 + 3 * record.size, record);
}

// A later message for a module or a stack replaces an earlier one: names become known when the process ends.
absl::Status Apply(const v1::NativeModule& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "native module");
  ModuleState& known = state->native_modules[message.id()];
  RFINJECT_TRY(state->Charge(sizeof(ModuleState) + 64 + 3 * record.size, record));
  const uint64_t before = known.module.path.size() + known.module.build_id.size();
  const uint64_t now = message.path().size() + message.build_id().size();
  if (now > before) RFINJECT_TRY(state->Charge((now - before) * known.frames, record));
  return ReadRecord(message, record, &known.module);
}

absl::Status Apply(const v1::NativeStack& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "native stack");
  constexpr int kMaxFrames = 256;  // four times what a process writes
  if (message.module_size() > kMaxFrames || message.offset_size() != message.module_size() ||
      (message.function_size() != 0 && message.function_size() != message.module_size())) {
    return DamageAt(record.offset, absl::StrCat("native stack ", message.id(), " has frames without an end"));
  }
  uint64_t texts = 0;
  for (const uint32_t id : message.module()) {
    const auto module = state->native_modules.find(id);
    if (module == state->native_modules.end()) return Undefined(record, "native module", id);
    texts += module->second.module.path.size() + module->second.module.build_id.size();
  }
  for (const uint32_t id : message.function()) {
    const std::string* name = nullptr;
    RFINJECT_TRY(state->FindName(id, record, &name));
    texts += name->size();
  }
  // In the end something larger is made of the stack than what is kept now.
  RFINJECT_TRY(state->Charge(sizeof(trace::NativeStack) + 128 + texts +
                                 static_cast<uint64_t>(message.module_size()) * (sizeof(NativeFrameInfo) + 16),
                             record));
  for (const uint32_t id : message.module()) ++state->native_modules[id].frames;
  trace::NativeStack& stack = state->native_stacks[message.id()];
  RFINJECT_TRY(ReadRecord(message, record, &stack));
  stack.function.resize(stack.module.size());
  return absl::OkStatus();
}

absl::Status Apply(const v1::SourceLine& message, const Record& record, State* state) {
  if (message.id() == 0) return NoId(record, "source line");
  const std::string *file = nullptr, *function = nullptr;
  RFINJECT_TRY(state->FindName(message.file(), record, &file));
  RFINJECT_TRY(state->FindName(message.function(), record, &function));
  SourceLineInfo line{.file = *file, .function = *function, .line = message.line()};
  const uint64_t text = line.file.size() + line.function.size();
  const auto [it, inserted] = state->lines.try_emplace(message.id());
  if (!inserted) {
    return *it->second == line ? absl::OkStatus() : Redefined(record, "source line", message.id());
  }
  it->second = std::make_shared<const SourceLineInfo>(std::move(line));
  return state->Charge(sizeof(SourceLineInfo) + 128 + text, record);
}

}  // namespace rfinject::cli
