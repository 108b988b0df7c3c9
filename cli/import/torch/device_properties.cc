#include "cli/import/torch/device_properties.h"

#include <rapidjson/document.h>

namespace rfinject::cli {
namespace {

constexpr unsigned kFlags = rapidjson::kParseIterativeFlag;

uint64_t NumberOf(const rapidjson::Value& object, const char* name) {
  const auto found = object.FindMember(name);
  return found != object.MemberEnd() && found->value.IsUint64() ? found->value.GetUint64() : 0;
}

uint32_t Number32Of(const rapidjson::Value& object, const char* name) {
  const uint64_t value = NumberOf(object, name);
  return value > UINT32_MAX ? 0 : static_cast<uint32_t>(value);
}

}  // namespace

void ReadDeviceProperties(const std::string& json, std::map<uint32_t, TorchDevice>* devices) {
  rapidjson::Document list;
  if (list.Parse<kFlags>(json.c_str()).HasParseError() || !list.IsArray()) return;
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
  if (info.Parse<kFlags>(json.c_str()).HasParseError() || !info.IsObject()) return;
  if (info.HasMember("rank")) *rank = Number32Of(info, "rank");
  if (info.HasMember("world_size")) *world_size = Number32Of(info, "world_size");
}

}  // namespace rfinject::cli
