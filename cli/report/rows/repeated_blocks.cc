#include "cli/report/rows/repeated_blocks.h"

#include <cstddef>
#include <map>
#include <optional>
#include <tuple>

#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "cli/model/step_interval.h"

namespace rfinject::cli {
namespace {

// A number stands alone in a program's paths; a recording counts the modules of a class, "Linear_7".
std::string PartWithoutNumber(std::string_view part) {
  const size_t digits = part.find_last_not_of("0123456789") + 1;
  const bool is_number = digits == 0;
  const bool of_recording = digits > 1 && part[digits - 1] == '_' && part[0] >= 'A' && part[0] <= 'Z';
  if (digits == part.size() || !(is_number || of_recording)) return std::string(part);
  return std::string(part.substr(0, digits)) + "*";
}

std::vector<std::string> PartsOf(std::string_view path) { return absl::StrSplit(std::string(path), '.'); }

// What equal paths but for numbers have in common: a number that all of them have stays.
class CommonPath {
 public:
  void Add(std::string_view path) {
    const std::vector<std::string> parts = PartsOf(path);
    if (parts_.empty()) parts_ = parts;
    for (size_t i = 0; i < parts.size(); ++i) {
      if (parts_[i] != parts[i]) parts_[i] = PartWithoutNumber(parts[i]);
    }
  }
  std::string text() const { return absl::StrJoin(parts_, "."); }

 private:
  std::vector<std::string> parts_;
};

// That of the sum of two amounts. The interval of a sum is at most as wide as both together.
Knowledge Together(const Knowledge& a, double a_amount, const Knowledge& b, double b_amount) {
  if (!(b_amount > 0)) return a;
  if (!(a_amount > 0)) return b;
  const auto mean = [&](double of_a, double of_b) {
    return (of_a * a_amount + of_b * b_amount) / (a_amount + b_amount);
  };
  Knowledge both{.trust = HasInterval(a.trust) ? b.trust : a.trust,
                 .close = a.close || b.close,
                 .lacks = mean(a.lacks, b.lacks)};
  if (HasInterval(both.trust)) both.relative = mean(a.relative, b.relative);
  return both;
}

void AddTo(Row* sum, const Row& row) {
  sum->time = Together(sum->time, sum->sums.time_ns(), row.time, row.sums.time_ns());
  sum->bytes = Together(sum->bytes, sum->sums.dram_bytes(), row.bytes, row.sums.dram_bytes());
  sum->sums.Add(row.sums);
  sum->time_share += row.time_share;
  ++sum->layers;
}

}  // namespace

std::string WithoutNumbers(std::string_view path) {
  std::vector<std::string> parts = PartsOf(path);
  for (std::string& part : parts) part = PartWithoutNumber(part);
  return absl::StrJoin(parts, ".");
}

RepeatedBlocks FindRepeatedBlocks(std::span<const Row> rows) {
  using Key = std::tuple<std::string_view, std::string, std::string_view, uint64_t, std::string_view, double,
                         std::optional<Phase>>;
  std::map<Key, std::vector<size_t>> alike;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    if (row.layer.empty()) continue;
    // A recording knows the work of its layers, and not their outputs.
    const double work = row.output_shape.empty() ? row.sums.total_flop() + row.sums.compulsory_bytes() : 0;
    alike[{row.model, WithoutNumbers(row.layer), row.class_name, row.parameters, row.output_shape, work, row.phase}]
        .push_back(i);
  }
  RepeatedBlocks found;
  found.group_of.assign(rows.size(), -1);
  for (const auto& [key, members] : alike) {
    if (members.size() < 2) continue;
    Row sum = rows[members.front()];
    sum.layers = 1;
    sum.kernels.clear();
    CommonPath path;
    for (const size_t i : members) {
      path.Add(rows[i].layer);
      if (i != members.front()) AddTo(&sum, rows[i]);
      found.group_of[i] = static_cast<int64_t>(found.groups.size());
    }
    sum.derived = Derive(sum.sums);
    sum.layer = path.text();
    // The number alone tells the layers of a sequence apart, so that nothing is left that says what they are.
    if ((sum.layer == "*" || sum.layer.ends_with(".*")) && !sum.class_name.empty()) sum.layer += " " + sum.class_name;
    found.groups.push_back(std::move(sum));
  }
  return found;
}

}  // namespace rfinject::cli
