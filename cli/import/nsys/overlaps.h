// File: overlaps.h
//
// Kernels and copies of an export of nsys that are said to run on while others of their stream do
// (stream_overlaps.h). Which these are is known when all were read, so that the tables are read again where there are
// any:
//
//   for (each record) at = overlaps.Next(at, stream, correlation);
//   if (overlaps.Find(&database)) read all tables again, in the same order;
#ifndef RFINJECT_CLI_IMPORT_NSYS_OVERLAPS_H_
#define RFINJECT_CLI_IMPORT_NSYS_OVERLAPS_H_

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "cli/import/nsys/untrusted_database.h"
#include "cli/import/stream_overlaps.h"
#include "cli/import/timed_steps.h"

namespace rfinject::cli {

class NsysOverlaps {
 public:
  // Of a process's globalPid, its context, the device and the stream.
  using Stream = std::array<int64_t, 4>;

  // The next record of the tables, whose call has this number in its process: when it ran, by all that is known.
  Interval Next(Interval at, const Stream& stream, int64_t correlation);
  // Once all were read: whether some end earlier than their records say.
  bool Find(UntrustedDatabase* database);
  // The tables are read again, but for what was found.
  void Rewind();
  // Whether there were too many records to look.
  bool gave_up() const { return next_ > kMostKept; }

 private:
  static constexpr uint64_t kMostKept = 1 << 20;  // 40 MB
  std::vector<OnStream> ran_;
  std::map<Stream, uint64_t> streams_;
  std::map<Stream, uint64_t>::const_iterator last_stream_;
  absl::flat_hash_map<uint64_t, int64_t> ends_;
  uint64_t next_ = 0;
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NSYS_OVERLAPS_H_
