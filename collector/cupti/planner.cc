#include "collector/cupti/planner.h"

#include <algorithm>
#include <map>
#include <string_view>

namespace rfinject::cupti {
namespace {

using Names = std::vector<std::string>;

class Planner {
 public:
  Planner(MetricHost& host, size_t max_questions) : host_(host), max_questions_(max_questions) {}

  // Whether `metrics` fit in one pass. The order of the names does not matter, so answers are kept for the sorted
  // list.
  bool Fits(const Names& metrics) {
    Names key = metrics;
    std::sort(key.begin(), key.end());
    auto [known, inserted] = answers_.try_emplace(std::move(key), false);
    if (inserted) {
      ++questions_;
      known->second = host_.Passes(metrics) == 1;
    }
    return known->second;
  }

  bool exhausted() const { return questions_ >= max_questions_; }
  size_t questions() const { return questions_; }

  // Puts each item into the first bin where it fits, or into a new bin when there is none. All items fit alone.
  std::vector<Names> FirstFit(const Names& items) {
    std::vector<Names> bins;
    for (const std::string& item : items) {
      auto bin = std::find_if(bins.begin(), bins.end(), [&](const Names& names) {
        Names with = names;
        with.push_back(item);
        return Fits(with);
      });
      if (bin == bins.end()) {
        bins.push_back({item});
      } else {
        bin->push_back(item);
      }
    }
    return bins;
  }

  // Returns the fewest bins. First fit is an upper bound; then one bin less is tried by depth-first search until that
  // fails or the questions run out. Pruning is right because adding metrics never makes a pass hold more.
  std::vector<Names> Pack(const Names& items) {
    std::vector<Names> best = FirstFit(items);
    while (best.size() > 1 && !exhausted()) {
      std::vector<Names> bins;
      if (!Search(items, 0, best.size() - 1, &bins)) break;
      best = bins;
    }
    return best;
  }

 private:
  bool Search(const Names& items, size_t next, size_t limit, std::vector<Names>* bins) {
    if (next == items.size()) return true;
    if (exhausted()) return false;
    for (size_t i = 0; i < bins->size(); ++i) {
      (*bins)[i].push_back(items[next]);
      if (Fits((*bins)[i]) && Search(items, next + 1, limit, bins)) return true;
      (*bins)[i].pop_back();
    }
    if (bins->size() < limit) {
      bins->push_back({items[next]});
      if (Search(items, next + 1, limit, bins)) return true;
      bins->pop_back();
    }
    return false;
  }

  MetricHost& host_;
  size_t max_questions_;
  size_t questions_ = 0;
  std::map<Names, bool> answers_;
};

// Makes one plan.
class PlanMaker {
 public:
  PlanMaker(MetricHost& host, const PlanRequest& request)
      : request_(request), planner_(host, request.max_questions) {}

  Plan Make() {
    AddGroups(GroupKind::kHardware, NamesOf(request_.metrics.tensor));
    AddGroups(GroupKind::kSass, NamesOf(request_.metrics.scalar));
    Names sampled;
    if (request_.bytes) {
      for (const std::string& name : request_.metrics.base) {
        if (IsDramBytes(name)) sampled.push_back(name);
      }
    }
    for (std::string name : request_.user_metrics) {
      if (name.find('.') == std::string::npos) name += ".sum";
      if (std::find(sampled.begin(), sampled.end(), name) == sampled.end()) sampled.push_back(name);
    }
    AddGroups(GroupKind::kSampled, sampled);
    AddGroups(GroupKind::kSparsityGuard, NamesOf(request_.metrics.sparse));
    plan_.questions = planner_.questions();
    return std::move(plan_);
  }

 private:
  static Names NamesOf(const std::vector<FlopMetric>& metrics) {
    Names names;
    for (const FlopMetric& metric : metrics) names.push_back(metric.name);
    return names;
  }
  static bool IsDramBytes(std::string_view name) {
    return std::any_of(kDramCounters.begin(), kDramCounters.end(),
                       [name](const DramCounters& dram) { return dram.read == name || dram.write == name; });
  }

  // Packs `metrics` into the fewest groups; what fits into no pass is rejected.
  void AddGroups(GroupKind kind, const Names& metrics) {
    Names fit;
    for (const std::string& name : metrics) {
      if (planner_.Fits({name})) {
        fit.push_back(name);
      } else {
        plan_.rejected.emplace_back(name,
                                    "unknown on this chip, or needs several passes, which would mean replaying "
                                    "kernels");
      }
    }
    for (Names& bin : planner_.Pack(fit)) plan_.groups.push_back({kind, std::move(bin)});
  }

  const PlanRequest& request_;
  Planner planner_;
  Plan plan_;
};

}  // namespace

std::vector<std::string> SplitMetrics(std::string_view list) {
  std::vector<std::string> names;
  while (!list.empty()) {
    size_t comma = list.find(',');
    std::string_view part = list.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    if (!part.empty()) names.emplace_back(part);
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return names;
}

Plan MakePlan(MetricHost& host, const PlanRequest& request) { return PlanMaker(host, request).Make(); }

}  // namespace rfinject::cupti
