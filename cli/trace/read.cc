#include "cli/trace/read.h"

#include <utility>

#include "cli/trace/apply.h"
#include "cli/trace/decode.h"

namespace rfinject::cli {
namespace {

// Reads at most `limit` chunks.
TraceContents Read(ByteSource& source, uint64_t limit, uint64_t max_decoded_bytes, bool* chunk_refused) {
  TraceContents contents;
  FrameReader frames(source);
  Decoder decoder;
  Applier applier(max_decoded_bytes);
  const auto apply = [&applier](const Record& record) { return applier.Apply(record); };
  *chunk_refused = false;
  while (contents.chunks < limit && frames.Next()) {
    contents.status = decoder.Decode(frames.payload(), frames.payload_offset(), apply);
    if (!contents.status.ok()) {
      *chunk_refused = true;
      break;
    }
    ++contents.chunks;
  }
  if (contents.status.ok()) contents.status = frames.status();
  contents.usable = limit == 0 || frames.header_ok();
  contents.finished = applier.finished();
  // A refused chunk may have been applied in part: the caller reads again, up to it.
  if (contents.usable && !*chunk_refused) contents.profile = std::move(applier).Finish();
  return contents;
}

}  // namespace

TraceContents ReadTrace(ByteSource& source, uint64_t max_decoded_bytes) {
  bool chunk_refused = false;
  TraceContents contents = Read(source, UINT64_MAX, max_decoded_bytes, &chunk_refused);
  if (!chunk_refused) return contents;
  absl::Status status = std::move(contents.status);
  contents = Read(source, contents.chunks, max_decoded_bytes, &chunk_refused);
  contents.status = std::move(status);
  return contents;
}

TraceContents ReadFirstChunk(ByteSource& source) {
  bool chunk_refused = false;
  TraceContents contents = Read(source, 1, kMaxDecodedBytes, &chunk_refused);
  contents.usable = contents.usable && !chunk_refused;
  return contents;
}

}  // namespace rfinject::cli
