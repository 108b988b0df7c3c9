#include "cli/testing/trace_bytes.h"

#include "cli/trace/encode.h"
#include "proto/wire/framing.h"

namespace rfinject::cli::testing {

std::vector<uint8_t> EmptyTrace() {
  uint8_t header[wire::kFileHeaderSize];
  wire::EncodeFileHeader(header);
  return {std::begin(header), std::end(header)};
}

void AppendFrame(std::vector<uint8_t>& trace, uint32_t sequence, std::span<const uint8_t> payload) {
  uint8_t header[wire::kFrameHeaderSize];
  wire::EncodeFrameHeader(payload.data(), static_cast<uint32_t>(payload.size()), sequence, header);
  trace.insert(trace.end(), std::begin(header), std::end(header));
  trace.insert(trace.end(), payload.begin(), payload.end());
}

void AppendFrame(std::vector<uint8_t>& trace, uint32_t sequence, std::string_view payload) {
  AppendFrame(trace, sequence, {reinterpret_cast<const uint8_t*>(payload.data()), payload.size()});
}

std::vector<uint8_t> WrittenTrace(const Profile& profile) {
  std::vector<uint8_t> bytes;
  const absl::Status status = WriteTrace(profile, [&](const void* data, size_t size) {
    const auto* begin = static_cast<const uint8_t*>(data);
    bytes.insert(bytes.end(), begin, begin + size);
    return absl::OkStatus();
  });
  if (!status.ok()) bytes.clear();
  return bytes;
}

}  // namespace rfinject::cli::testing
