#include "cli/import/torch/dialect.h"

#include <rapidjson/document.h>

#include <algorithm>
#include <cctype>
#include <span>

#include "cli/import/nvtx_ranges.h"
#include "cli/import/torch/words.h"

namespace rfinject::cli {
namespace {

constexpr unsigned kJsonFlags = rapidjson::kParseIterativeFlag;

uint64_t NumberOf(const rapidjson::Value& object, const char* name) {
  const auto found = object.FindMember(name);
  return found != object.MemberEnd() && found->value.IsUint64() ? found->value.GetUint64() : 0;
}

uint32_t Number32Of(const rapidjson::Value& object, const char* name) {
  const uint64_t value = NumberOf(object, name);
  return value > UINT32_MAX ? 0 : static_cast<uint32_t>(value);
}

constexpr std::string_view kModulePrefix = "nn.Module: ";

constexpr std::pair<std::string_view, TorchKind> kCategories[] = {
    {"cpu_op", TorchKind::kOperator},
    {"Operator", TorchKind::kOperator},
    {"user_annotation", TorchKind::kAnnotation},
    {"python_function", TorchKind::kModule},
    {"cuda_runtime", TorchKind::kCall},
    {"cuda_driver", TorchKind::kCall},
    {"Runtime", TorchKind::kCall},
    {"kernel", TorchKind::kKernel},
    {"Kernel", TorchKind::kKernel},
    {"gpu_memcpy", TorchKind::kCopy},
    {"Memcpy", TorchKind::kCopy},
    {"gpu_memset", TorchKind::kSet},
    {"Memset", TorchKind::kSet},
    {"cuda_profiler_range", TorchKind::kCounters},
    {"privateuse1_runtime", TorchKind::kOtherAccelerator}};

// "1414456661803.68" microseconds as nanoseconds, exactly; further digits are cut. Nothing for what is no number, or
// for one that 64 bits cannot hold.
std::optional<int64_t> ParseMicroseconds(std::string_view text) {
  const bool negative = ConsumePrefix(&text, "-");
  const size_t exponent = text.find_first_of("eE");
  if (exponent != std::string_view::npos) {
    double value = 0;
    constexpr double kMost = 9e15;
    if (!ParseNumber(text, &value) || !(value < kMost)) return std::nullopt;
    return static_cast<int64_t>(value * 1e3) * (negative ? -1 : 1);
  }
  const size_t point = text.find('.');
  int64_t whole = 0, part = 0;
  if (!ParseNumber(text.substr(0, point), &whole)) return std::nullopt;
  if (point != std::string_view::npos) {
    int64_t unit = 100;
    for (const char digit : text.substr(point + 1)) {
      if (digit < '0' || digit > '9') return std::nullopt;
      part += unit * (digit - '0');
      unit /= 10;
    }
  }
  int64_t sum = 0;
  if (__builtin_mul_overflow(whole, int64_t{1000}, &sum) || __builtin_add_overflow(sum, part, &sum)) {
    return std::nullopt;
  }
  return negative ? -sum : sum;
}

// Writes the text to a member of the event.
struct MemberSetter {
  std::string_view text;
  TorchEvent& event;

  void operator()(std::monostate) const {}
  void operator()(std::string TorchEvent::*member) const {
    constexpr size_t kLongestName = 64u << 10, kLongestId = 256;
    const bool name = member == &TorchEvent::name || member == &TorchEvent::module;
    (event.*member).assign(text.substr(0, name ? kLongestName : kLongestId));
  }
  void operator()(std::optional<int64_t> TorchEvent::*member) const { event.*member = ParseMicroseconds(text); }
  void operator()(uint64_t TorchEvent::*member) const { event.*member = Unsigned(text); }
  void operator()(int64_t TorchEvent::*member) const {
    event.*member = static_cast<int64_t>(std::min<uint64_t>(Unsigned(text), INT64_MAX));
  }
  void operator()(uint32_t TorchEvent::*member) const { event.*member = Unsigned32(text); }
  void operator()(double TorchEvent::*member) const {
    constexpr double kMost = 1e9;  // as bytes they fit 64 bits
    double value = 0;
    event.*member = ParseNumber(text, &value) && value > 0 && value < kMost ? value : 0;
  }
};

const TorchField* FindField(std::span<const TorchField> fields, std::string_view key) {
  const auto found = std::ranges::find(fields, key, &TorchField::key);
  return found == fields.end() ? nullptr : &*found;
}

}  // namespace

bool LooksLikeTorchRecording(std::string_view beginning) {
  const size_t first = beginning.find_first_not_of(" \t\r\n\xEF\xBB\xBF");
  if (first == std::string_view::npos) return false;
  if (beginning[first] != '{' && beginning[first] != '[') return false;
  for (const std::string_view key : {"\"schemaVersion\"", "\"traceEvents\"", "\"deviceProperties\"", "\"ph\"",
                                     "\"distributedInfo\"", "\"traceName\""}) {
    if (beginning.find(key) != std::string_view::npos) return true;
  }
  return false;
}

void ReadDeviceProperties(const std::string& json, std::map<uint32_t, TorchDevice>* devices) {
  rapidjson::Document list;
  if (list.Parse<kJsonFlags>(json.c_str()).HasParseError() || !list.IsArray()) return;
  for (const rapidjson::Value& one : list.GetArray()) {
    if (!one.IsObject()) continue;
    TorchDevice& device = (*devices)[Number32Of(one, "id")];
    const auto name = one.FindMember("name");
    if (name != one.MemberEnd() && name->value.IsString()) device.name = name->value.GetString();
    device.memory_bytes = NumberOf(one, "totalGlobalMem");
    device.sm_count = Number32Of(one, "numSms");
    device.cc_major = Number32Of(one, "computeMajor");
    device.cc_minor = Number32Of(one, "computeMinor");
  }
}

void ReadDistributedInfo(const std::string& json, uint32_t* rank, uint32_t* world_size) {
  rapidjson::Document info;
  if (info.Parse<kJsonFlags>(json.c_str()).HasParseError() || !info.IsObject()) return;
  if (info.HasMember("rank")) *rank = Number32Of(info, "rank");
  if (info.HasMember("world_size")) *world_size = Number32Of(info, "world_size");
}

uint64_t Unsigned(std::string_view text) {
  uint64_t value = 0;
  if (ParseNumber(text, &value)) return value;
  double real = 0;
  constexpr double kMost = 1.8e19;
  return ParseNumber(text, &real) && real > 0 && real < kMost ? static_cast<uint64_t>(real) : 0;
}

uint32_t Unsigned32(std::string_view text) {
  return static_cast<uint32_t>(std::min<uint64_t>(Unsigned(text), UINT32_MAX));
}

const TorchField* EventField(std::string_view key) {
  static constexpr TorchField kFields[] = {{"ph", &TorchEvent::phase},     {"cat", &TorchEvent::category},
                                           {"name", &TorchEvent::name},    {"pid", &TorchEvent::process},
                                           {"tid", &TorchEvent::thread},   {"ts", &TorchEvent::start},
                                           {"dur", &TorchEvent::duration}, {"args", {}}};
  return FindField(kFields, key);
}

const TorchField* ArgumentField(std::string_view key) {
  static constexpr TorchField kFields[] = {{"External id", &TorchEvent::external_id},
                                           {"external id", &TorchEvent::external_id},
                                           {"correlation", &TorchEvent::correlation},
                                           {"Sequence number", &TorchEvent::sequence},
                                           {"Input Dims", &TorchEvent::dims},
                                           {"Input dims", &TorchEvent::dims},
                                           {"Input type", &TorchEvent::types},
                                           {"Input Strides", &TorchEvent::strides},
                                           {"Concrete Inputs", &TorchEvent::values},
                                           {"device", &TorchEvent::device},
                                           {"stream", &TorchEvent::stream},
                                           {"grid", &TorchEvent::grid},
                                           {"block", &TorchEvent::block},
                                           {"shared memory", &TorchEvent::shared_bytes},
                                           {"Total Allocated", &TorchEvent::allocated},
                                           {"kernel_flop", &TorchEvent::given_flop},
                                           {"kernel_num_gb", &TorchEvent::given_gb},
                                           {"module_fqn", &TorchEvent::module},
                                           {"Process Group Name", &TorchEvent::group},
                                           {"Device Type", &TorchEvent::device}};
  return FindField(kFields, key);
}

void SetField(const TorchField& field, std::string_view text, TorchEvent* event) {
  std::visit(MemberSetter{text, *event}, field.member);
}

TorchKind KindOf(const TorchEvent& event) {
  if (event.phase == "i") {
    // A GPU has another type than 0, which is the host.
    return event.name == "[memory]" && event.device != 0 ? TorchKind::kMemory : TorchKind::kOther;
  }
  if (event.phase == "C" && event.category == "hardware_counters") return TorchKind::kSamples;
  if (event.phase != "X") return TorchKind::kOther;
  if (event.category.ends_with("_ccp_events")) return TorchKind::kOtherAccelerator;
  const auto found = std::ranges::find(kCategories, std::string_view(event.category),
                                       &std::pair<std::string_view, TorchKind>::first);
  const TorchKind kind = found == std::end(kCategories) ? TorchKind::kOther : found->second;
  // The dialect of 2021 has among its operators what later ones have as annotations.
  if (kind == TorchKind::kOperator && (IsMarkedStep(event.name) || event.name.starts_with("Optimizer.") ||
                                       event.name.starts_with("enumerate(DataLoader)"))) {
    return TorchKind::kAnnotation;
  }
  return kind == TorchKind::kModule && !event.name.starts_with(kModulePrefix) ? TorchKind::kOther : kind;
}

std::string_view NameOf(const TorchEvent& event, TorchKind kind) {
  return std::string_view(event.name).substr(kind == TorchKind::kModule ? kModulePrefix.size() : 0);
}

Phase PhaseOfAnnotation(std::string_view name) {
  return name.starts_with("Optimizer.") ? Phase::kOptimizer : IsLoaderName(name) ? Phase::kData : PhaseOfRange(name);
}

bool IsAutogradNode(std::string_view name) {
  if (name.starts_with("torch::autograd::")) return true;
  while (!name.empty() && std::isdigit(static_cast<unsigned char>(name.back())) != 0) name.remove_suffix(1);
  return name.ends_with("Backward") && !Contains(name, "aten::");
}

std::optional<size_t> OldGradientOf(std::string_view op) {
  if (!Contains(op, "convolution_backward")) return std::nullopt;
  if (op.ends_with("_backward_input")) return 0;
  if (op.ends_with("_backward_weight")) return 1;
  return std::nullopt;
}

bool IsGraphLaunch(std::string_view call) {
  return call.starts_with("cudaGraphLaunch") || call.starts_with("cuGraphLaunch") ||
         call.starts_with("hipGraphLaunch");
}

}  // namespace rfinject::cli
