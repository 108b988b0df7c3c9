#include "collector/cupti/planner.h"

#include <algorithm>
#include <string_view>

namespace rfinject::cupti {
namespace {

using Names = std::vector<std::string>;

class Planner {
 public:
  Planner(MetricHost& host, size_t max_questions) : host_(host), max_questions_(max_questions) {}

  // Whether `metrics` fit in one pass. The order of the names does not matter, and adding metrics never makes a pass
  // hold more: what was answered of a larger or a smaller list may answer this one.
  bool Fits(const Names& metrics) {
    Names key = metrics;
    std::sort(key.begin(), key.end());
    const auto holds = [](const Names& all, const Names& some) { return std::ranges::includes(all, some); };
    if (std::ranges::any_of(fit_, [&](const Names& known) { return holds(known, key); })) return true;
    if (std::ranges::any_of(too_many_, [&](const Names& known) { return holds(key, known); })) return false;
    ++questions_;
    const bool fits = host_.Passes(metrics) == 1;
    (fits ? fit_ : too_many_).push_back(std::move(key));
    return fits;
  }

  bool exhausted() const { return questions_ >= max_questions_; }
  size_t questions() const { return questions_; }

  // Puts each item into the first bin where it fits, or into a new bin when there is none. What fits into no pass
  // even alone is moved to `*rejected`.
  std::vector<Names> FirstFit(Names* items, Names* rejected) {
    std::vector<Names> bins;
    std::erase_if(*items, [&](const std::string& item) {
      auto bin = std::find_if(bins.begin(), bins.end(), [&](const Names& names) {
        Names with = names;
        with.push_back(item);
        return Fits(with);
      });
      if (bin != bins.end()) {
        bin->push_back(item);
      } else if (Fits({item})) {
        bins.push_back({item});
      } else {
        rejected->push_back(item);
        return true;
      }
      return false;
    });
    return bins;
  }

  // Returns the fewest bins. First fit is an upper bound; then one bin less is tried by depth-first search until that
  // fails or the questions run out. Pruning is right because adding metrics never makes a pass hold more.
  std::vector<Names> Pack(Names items, Names* rejected) {
    if (!items.empty() && Fits(items)) return {items};
    std::vector<Names> best = FirstFit(&items, rejected);
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
  std::vector<Names> fit_, too_many_;  // what was asked, each sorted
};

// Makes one plan.
class PlanMaker {
 public:
  PlanMaker(MetricHost& host, const PlanRequest& request)
      : request_(request), planner_(host, request.max_questions) {}

  Plan Make() {
    AddTensor();
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

  void AddTensor() {
    Names names = NamesOf(request_.metrics.tensor);
    if (names.size() > 1 && !planner_.Fits(names)) {
      Names first = {request_.tensor_activity};
      std::erase_if(names, [&](const std::string& name) {
        first.push_back(name);
        const bool fits = planner_.Fits(first);
        if (!fits) first.pop_back();
        return fits;
      });
      if (first.size() > 1) plan_.groups.push_back({GroupKind::kHardware, std::move(first)});
    }
    AddGroups(GroupKind::kHardware, names);
  }

  // Packs `metrics` into the fewest groups; what fits into no pass is rejected.
  void AddGroups(GroupKind kind, const Names& metrics) {
    Names rejected;
    for (Names& bin : planner_.Pack(metrics, &rejected)) plan_.groups.push_back({kind, std::move(bin)});
    for (std::string& name : rejected) {
      plan_.rejected.emplace_back(
          std::move(name), "unknown on this chip, or needs several passes, which would mean replaying kernels");
    }
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
