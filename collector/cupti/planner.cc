#include "collector/cupti/planner.h"

#include <algorithm>
#include <functional>
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

  bool Fits(const Names& fixed, const Names& more) {
    Names all = fixed;
    all.insert(all.end(), more.begin(), more.end());
    return Fits(all);
  }

  bool exhausted() const { return questions_ >= max_questions_; }
  size_t questions() const { return questions_; }

  // Puts each item into the first bin where it fits beside `fixed`, or into a new bin when there is none. All items
  // fit alone.
  std::vector<Names> FirstFit(const Names& fixed, const Names& items) {
    std::vector<Names> bins;
    for (const std::string& item : items) {
      auto bin = std::find_if(bins.begin(), bins.end(), [&](const Names& names) {
        Names with = names;
        with.push_back(item);
        return Fits(fixed, with);
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
  std::vector<Names> Pack(const Names& fixed, const Names& items) {
    std::vector<Names> best = FirstFit(fixed, items);
    while (best.size() > 1 && !exhausted()) {
      std::vector<Names> bins;
      if (!Search(fixed, items, 0, best.size() - 1, &bins)) break;
      best = bins;
    }
    return best;
  }

 private:
  bool Search(const Names& fixed, const Names& items, size_t next, size_t limit, std::vector<Names>* bins) {
    if (next == items.size()) return true;
    if (exhausted()) return false;
    for (size_t i = 0; i < bins->size(); ++i) {
      (*bins)[i].push_back(items[next]);
      if (Fits(fixed, (*bins)[i]) && Search(fixed, items, next + 1, limit, bins)) return true;
      (*bins)[i].pop_back();
    }
    if (bins->size() < limit) {
      bins->push_back({items[next]});
      if (Search(fixed, items, next + 1, limit, bins)) return true;
      bins->pop_back();
    }
    return false;
  }

  MetricHost& host_;
  size_t max_questions_;
  size_t questions_ = 0;
  std::map<Names, bool> answers_;
};

struct Bin {
  Names base;
  Names metrics;
};

Names Front(const Names& base, size_t size) {
  return Names(base.begin(), base.begin() + static_cast<ptrdiff_t>(size));
}

// Makes one plan.
class PlanMaker {
 public:
  PlanMaker(MetricHost& host, const PlanRequest& request)
      : request_(request), planner_(host, request.max_questions) {}

  Plan Make() {
    const Names base = Base();
    std::vector<Bin> hardware = Pack(request_.metrics.tensor, base);
    if (hardware.empty() && !base.empty()) hardware.push_back({base, {}});
    std::vector<Bin> sass = Pack(request_.metrics.scalar, {});
    const std::vector<Bin> guard = Pack(request_.metrics.sparse, base);
    // The user's own metrics go into the groups that are there if they fit, so that they cost no steps.
    for (std::string name : request_.user_metrics) {
      if (name.find('.') == std::string::npos) name += ".sum";
      const bool is_sass = IsSassMetric(name);
      AddUserMetric(name, is_sass ? Names{} : base, is_sass ? &sass : &hardware);
    }
    AddHardware(hardware, base);
    for (const Bin& bin : sass) AddGroup(GroupKind::kSass, bin);
    for (const Bin& bin : guard) AddGroup(GroupKind::kSparsityGuard, bin);
    plan_.questions = planner_.questions();
    return std::move(plan_);
  }

 private:
  void Reject(const std::string& name, const char* reason) { plan_.rejected.emplace_back(name, reason); }

  // The base, without what this CUPTI cannot put into one pass with the rest; the least important metric is left out
  // first.
  Names Base() {
    Names base = request_.metrics.base;
    while (!base.empty() && !planner_.Fits(base)) {
      Reject(base.back(), "does not fit in one pass with the bytes and the time");
      base.pop_back();
    }
    return base;
  }

  // The longest beginning of `base` that fits beside `name`; empty where none does.
  Names BaseBeside(const std::string& name, Names base) {
    while (!base.empty() && !planner_.Fits(base, {name})) base.pop_back();
    return base;
  }

  // Packs `metrics` into the fewest bins, each beside as much of `base` as fits: all of it or, for a metric that
  // leaves no room for all, the longest beginning of it that fits.
  std::vector<Bin> Pack(const std::vector<FlopMetric>& metrics, const Names& base) {
    std::map<size_t, Names, std::greater<>> by_base;
    for (const FlopMetric& metric : metrics) {
      const Names own = BaseBeside(metric.name, base);
      if (own.empty() && !planner_.Fits({metric.name})) {
        Reject(metric.name, "needs several passes, which would mean replaying kernels");
      } else {
        by_base[own.size()].push_back(metric.name);
      }
    }
    std::vector<Bin> bins;
    for (const auto& [size, names] : by_base) {
      for (Names& bin : planner_.Pack(Front(base, size), names)) bins.push_back({Front(base, size), std::move(bin)});
    }
    if (by_base.size() < 2) return bins;
    // Some metrics left no room for the whole base. Packing all beside the smallest base may take fewer groups; what
    // was left out of the base then goes back wherever it fits.
    const size_t least = by_base.rbegin()->first;
    Names all;
    for (const auto& [size, names] : by_base) all.insert(all.end(), names.begin(), names.end());
    std::vector<Names> together = planner_.Pack(Front(base, least), all);
    if (together.size() >= bins.size()) return bins;
    bins.clear();
    for (Names& bin : together) {
      size_t size = base.size();
      while (size > least && !planner_.Fits(Front(base, size), bin)) --size;
      bins.push_back({Front(base, size), std::move(bin)});
    }
    return bins;
  }

  // Hardware metrics that need a group of their own take the base along, or as much of it as fits.
  void AddUserMetric(const std::string& name, const Names& base, std::vector<Bin>* bins) {
    const auto contains = [&](const Names& names) {
      return std::find(names.begin(), names.end(), name) != names.end();
    };
    const bool present = std::any_of(bins->begin(), bins->end(),
                                     [&](const Bin& bin) { return contains(bin.base) || contains(bin.metrics); });
    if (present) return;
    if (!planner_.Fits({name})) {
      return Reject(name, "unknown on this chip, or needs several passes, which would mean replaying kernels");
    }
    const auto roomy = std::find_if(bins->begin(), bins->end(), [&](const Bin& bin) {
      Names with = bin.metrics;
      with.push_back(name);
      return planner_.Fits(bin.base, with);
    });
    if (roomy != bins->end()) {
      roomy->metrics.push_back(name);
    } else {
      bins->push_back({BaseBeside(name, base), {name}});
    }
  }

  void AddGroup(GroupKind kind, const Bin& bin) {
    CounterGroup group{kind, bin.base};
    group.metrics.insert(group.metrics.end(), bin.metrics.begin(), bin.metrics.end());
    plan_.groups.push_back(std::move(group));
  }

  void AddHardware(const std::vector<Bin>& bins, const Names& base) {
    for (const Bin& bin : bins) {
      AddGroup(GroupKind::kHardware, bin);
      // Clocks are counted only where they cost no group.
      Names& metrics = plan_.groups.back().metrics;
      for (const std::string& clock : request_.metrics.clocks) {
        if (planner_.Fits(metrics, {clock})) metrics.push_back(clock);
      }
    }
    for (const std::string& metric : base) {
      const bool carried = std::any_of(plan_.groups.begin(), plan_.groups.end(), [&](const CounterGroup& group) {
        return std::find(group.metrics.begin(), group.metrics.end(), metric) != group.metrics.end();
      });
      if (!carried) Reject(metric, "left out, since without it the tensor metrics need fewer groups");
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
