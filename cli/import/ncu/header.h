// File: header.h
//
// Finds the columns of a table of Nsight Compute in its header line.
#ifndef RFINJECT_CLI_IMPORT_NCU_HEADER_H_
#define RFINJECT_CLI_IMPORT_NCU_HEADER_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace rfinject::cli {

struct NcuColumns {
  static constexpr size_t kNone = static_cast<size_t>(-1);

  size_t count = 0;  // of the line's fields; 0: no table has begun
  size_t id = kNone, process_id = kNone, process_name = kNone, kernel = kNone, block = kNone, grid = kNone,
         device = kNone, cc = kNone, push_pop = kNone, start_stop = kNone;
  // Attributes of the GPU, in the raw page alone: its name, the bytes of its memory, and its SMs.
  size_t board = kNone, memory = kNone, sms = kNone;
  // Only the long form has these columns.
  size_t section = kNone, metric = kNone, unit = kNone, value = kNone;

  // One line a kernel, a column a metric; else one line a kernel and metric.
  bool wide() const { return metric == kNone; }
  // Where a line of the long form stops to say which launch it is of.
  size_t first_of_metric() const { return section < metric ? section : metric; }
  size_t last = 0;  // the largest of all these
  // Whether a line of so many fields is one of the table. A details page has lines of metrics that end behind the
  // value, below a header that goes on with what rules say. `filled`: the fields up to the last one that is not
  // empty.
  bool Fits(size_t fields, size_t filled) const {
    return fields == count || (!wide() && fields < count && filled == last + 1);
  }
  // The shape that ncu itself writes: the ID comes first; section, metric, unit and value come last.
  bool regular() const;
};

// The columns of a header line; count is 0 when the line is none.
NcuColumns ReadNcuHeader(const std::vector<std::string_view>& fields);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_NCU_HEADER_H_
