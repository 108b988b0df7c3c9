#include "cli/trace/identity.h"

#include "cli/trace/fields.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/text.h"

namespace rfinject::cli {
namespace {

// Ids come first in a file. This many frames of 1 MiB hold those of a million traces.
constexpr uint64_t kMostFrames = 64;

}  // namespace

TraceIdentity IdentityOf(FileSource& source) {
  TraceIdentity identity;
  identity.size = source.size();
  FrameReader frames(source);
  bool known = false;
  while (!known && frames.frames() < kMostFrames && frames.Next()) {
    FieldCursor cursor(frames.payload(), frames.payload_offset());
    for (Field record; cursor.Next(&record);) {
      if (record.type != WireType::kBytes) continue;
      if (record.number == v1::Chunk::kTraceIdFieldNumber) identity.ids.push_back(wire::CleanUtf8(record.text()));
      if (record.number != v1::Chunk::kRunFieldNumber) continue;
      FieldCursor run(record);
      for (Field field; run.Next(&field);) {
        identity.merged = identity.merged || field.number == v1::Run::kMergedFieldNumber;
        known = known || field.number == v1::Run::kMergedFieldNumber || field.number == v1::Run::kProcessFieldNumber;
      }
    }
  }
  return identity;
}

bool IsMergedTrace(const std::string& path) {
  FileSource source;
  return source.Open(path).ok() && IdentityOf(source).merged;
}

}  // namespace rfinject::cli
