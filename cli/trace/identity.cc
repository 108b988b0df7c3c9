#include "cli/trace/identity.h"

#include <utility>

#include "cli/trace/apply/apply.h"
#include "cli/trace/decode.h"
#include "cli/trace/fields.h"
#include "cli/trace/read.h"
#include "proto/rfinject/v1/trace.pb.h"
#include "proto/wire/text.h"

namespace rfinject::cli {
namespace {

// Ids come first in a file. This many frames of 1 MiB hold those of a million traces.
constexpr uint64_t kMostFrames = 64;

// What the Run records of a chunk say.
Profile RunsOf(const FrameReader& frames) {
  Applier applier(kMaxDecodedBytes);
  const absl::Status status =
      Decoder().DecodeOnly(v1::Chunk::kRunFieldNumber, frames.payload(), frames.payload_offset(),
                           [&](const Record& record) { return applier.Apply(record); });
  if (!status.ok()) return {};
  applier.Resolve();
  return std::move(applier).Finish();
}

}  // namespace

TraceIdentity IdentityOf(FileSource& source, Profile* runs) {
  TraceIdentity identity;
  identity.size = source.size();
  FrameReader frames(source);
  bool known = false;
  while (!known && frames.frames() < kMostFrames && frames.Next()) {
    if (runs != nullptr && frames.frames() == 1) *runs = RunsOf(frames);
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
  return source.Open(path).ok() && IdentityOf(source, nullptr).merged;
}

}  // namespace rfinject::cli
