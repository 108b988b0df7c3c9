#include "cli/trace/read.h"

#include <utility>

namespace rfinject::cli {
namespace {

// Reads at most `limit` chunks. True when it stopped at one that is refused, which may have been applied in part.
bool Read(ByteSource& source, Decoder* decoder, uint64_t limit, TraceRecords* records) {
  FrameReader frames(source);
  const auto apply = [records](const Record& record) { return records->applier.Apply(record); };
  bool refused = false;
  while (!refused && records->chunks < limit && frames.Next()) {
    records->status = decoder->Decode(frames.payload(), frames.payload_offset(), apply);
    refused = !records->status.ok();
    if (!refused) ++records->chunks;
  }
  if (records->status.ok()) records->status = frames.status();
  records->usable = limit == 0 || frames.header_ok();
  return refused;
}

}  // namespace

TraceRecords ReadRecords(ByteSource& source, Decoder* decoder, uint64_t max_decoded_bytes) {
  TraceRecords records;
  records.applier = Applier(max_decoded_bytes);
  if (Read(source, decoder, UINT64_MAX, &records)) {
    TraceRecords again;  // up to the chunk that was refused
    again.applier = Applier(max_decoded_bytes);
    Read(source, decoder, records.chunks, &again);
    again.status = std::move(records.status);
    records = std::move(again);
  }
  records.applier.Resolve();
  return records;
}

TraceContents ReadTrace(ByteSource& source, uint64_t max_decoded_bytes) {
  Decoder decoder;
  TraceRecords records = ReadRecords(source, &decoder, max_decoded_bytes);
  TraceContents contents;
  contents.usable = records.usable;
  contents.chunks = records.chunks;
  contents.finished = records.applier.finished();
  contents.status = std::move(records.status);
  if (records.usable) contents.profile = std::move(records.applier).Finish();
  return contents;
}

}  // namespace rfinject::cli
