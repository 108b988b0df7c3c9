#include "cli/import/et/join_execution_trace.h"

#include <map>
#include <utility>
#include <vector>

namespace rfinject::cli {
namespace {

// An outermost operator, and everything inside of it in the order of its beginning.
struct Family {
  std::vector<uint32_t> members;  // indices of calls or spans
  std::vector<uint64_t> kind;     // of each: its depth, and its name
};
using Kinds = std::map<std::vector<uint64_t>, std::vector<Family>>;

// Families by the operator that is outermost; ranges and modules around and between operators do not count.
class Families {
 public:
  // `parent` is the innermost operator around it, UINT32_MAX for none. What is inside follows what it is in.
  void Add(uint32_t index, uint32_t parent, uint32_t name) {
    uint32_t root = index, depth = 0;
    if (parent != UINT32_MAX) {
      root = place_[parent].first;
      depth = place_[parent].second + 1;
    }
    if (place_.size() <= index) place_.resize(index + 1);
    place_[index] = {root, depth};
    const auto [known, is_new] = families_.try_emplace(root);
    if (is_new) order_.push_back(root);
    known->second.members.push_back(index);
    known->second.kind.push_back((static_cast<uint64_t>(depth) << 32) | name);
  }
  const std::vector<uint32_t>& roots() const { return order_; }
  Family& of(uint32_t root) { return families_[root]; }

 private:
  std::vector<std::pair<uint32_t, uint32_t>> place_;  // root and depth
  std::map<uint32_t, Family> families_;
  std::vector<uint32_t> order_;
};

Kinds KindsOf(const ExecutionTrace& trace, TextTable* names) {
  Families families;
  std::vector<uint32_t> operator_of(trace.calls.size(), UINT32_MAX);  // itself, or the innermost around it
  for (uint32_t i = 0; i < trace.calls.size(); ++i) {
    const ExecutedCall& call = trace.calls[i];
    const uint32_t above = call.parent == ExecutedCall::kNone ? UINT32_MAX : operator_of[call.parent];
    operator_of[i] = call.is_operator ? i : above;
    if (call.is_operator) families.Add(i, above, names->NumberOf(trace.texts[call.name]));
  }
  Kinds kinds;
  for (const uint32_t root : families.roots()) {
    Family& family = families.of(root);
    kinds[family.kind].push_back(std::move(family));
  }
  return kinds;
}

}  // namespace

JoinedCalls JoinExecutionTrace(const ExecutionTrace& trace, const TextTable& texts, const CallTree& tree,
                               TorchWindow* window, TextTable* operands) {
  TextTable names;  // of operators, in both files
  const Kinds known = KindsOf(trace, &names);
  Families families;
  for (const uint32_t index : tree.order) {
    const TorchSpan& span = window->spans[index];
    if (span.kind != TorchSpan::Kind::kOperator) continue;
    const uint32_t parent = tree.spans[index].parent;
    families.Add(index, parent == kNoSpan ? UINT32_MAX : tree.spans[parent].op, names.NumberOf(texts[span.name]));
  }
  std::map<size_t, Kinds> steps;
  for (const uint32_t root : families.roots()) {
    Family& family = families.of(root);
    steps[tree.StepAt(window->spans[root].start)][family.kind].push_back(std::move(family));
  }
  JoinedCalls counts;
  for (const auto& [step, kinds] : steps) {
    for (const auto& [kind, here] : kinds) {
      const auto found = known.find(kind);
      const bool fits = found != known.end() && here.size() % found->second.size() == 0;
      (fits ? counts.joined : counts.not_joined) += here.size() * kind.size();
      for (size_t i = 0; fits && i < here.size(); ++i) {
        const Family& there = found->second[i % found->second.size()];
        for (size_t member = 0; member < kind.size(); ++member) {
          const std::string& known_operands = trace.operands[trace.calls[there.members[member]].operands];
          if (known_operands.empty()) continue;
          window->spans[here[i].members[member]].operands = operands->NumberOf(known_operands);
        }
      }
    }
  }
  return counts;
}

}  // namespace rfinject::cli
