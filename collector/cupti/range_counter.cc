#include "collector/cupti/range_counter.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "collector/hash.h"

namespace rfinject::cupti {
namespace {

std::vector<bool> VariesOf(const CounterBackend& backend) {
  std::vector<bool> varies;
  for (const CounterGroup& group : backend.groups()) varies.push_back(group.kind == GroupKind::kSampled);
  return varies;
}

std::vector<bool> LaterOf(const CounterBackend& backend) {
  std::vector<bool> later;
  for (const CounterGroup& group : backend.groups()) later.push_back(group.kind == GroupKind::kSparsityGuard);
  return later;
}

uint64_t HashOfText(uint64_t hash, std::string_view text) {
  for (const char c : text) hash = HashMix(hash, static_cast<unsigned char>(c));
  return hash;
}

// Launches of one number do the same work: the same kernel with the same grid, for the same operator, in layers of
// one class with as many parameters and the same shapes (the blocks of a transformer). Without a layer's shapes it is
// the layer itself that must be the same.
uint64_t WorkOf(const LaunchIdentity& identity, Recorder& recorder) {
  LaunchIdentity same = identity;
  LayerDefinition layer;
  if (identity.site.layer == 0 || !recorder.FindLayer(identity.site.layer, &layer) || layer.input_shape.empty()) {
    return HashOf(same);
  }
  same.site.layer = 0;
  uint64_t hash = HashMix(HashOf(same), layer.parameters);
  hash = HashOfText(hash, layer.class_name);
  hash = HashOfText(hash, layer.input_shape);
  return HashOfText(hash, layer.output_shape);
}

}  // namespace

RangeCounter::RangeCounter(CountedContext& context, std::unique_ptr<CounterBackend> backend, LaunchKeys& keys,
                           const CapturedGraphs& graphs, Recorder& recorder)
    : context_(context),
      backend_(std::move(backend)),
      keys_(keys),
      graphs_(graphs),
      recorder_(recorder),
      samples_(recorder, keys),
      wanted_(VariesOf(*backend_), LaterOf(*backend_)) {
  samples_.Describe(*backend_);
  // Bytes come first: they show whether the counters count.
  for (size_t group = 0; group < backend_->groups().size() && !counts_bytes_; ++group) {
    counts_bytes_ = backend_->groups()[group].kind == GroupKind::kSampled;
    if (counts_bytes_) bytes_group_ = group;
  }
}

void RangeCounter::AddKey(uint32_t key, uint64_t ns) {
  const LaunchIdentity identity = keys_.Identity(key);
  if (identity.device != context_.device() || identity.site.phase == Phase::kCommunication) return;
  if (!keys_.HasCounters(key)) return;
  wanted_.AddKey(key, WorkOf(identity, recorder_));
  if (ns > 0) kernel_ns_[key] = ns;
  NoteIfCounted(key);
}

bool RangeCounter::IsTensor(size_t group) const {
  const GroupKind kind = backend_->groups()[group].kind;
  return kind == GroupKind::kHardware || kind == GroupKind::kSparsityGuard;
}

void RangeCounter::SetZero(uint32_t key, size_t group) {
  if (!wanted_.Wants(key, group)) return;
  const std::vector<uint32_t> twins = wanted_.Twins(key);
  const std::vector<double> row(backend_->groups()[group].metrics.size());
  wanted_.AddCount(key, group, samples_.AddLaunch(group, key, twins, row));
  for (const uint32_t twin : twins) NoteIfCounted(twin);
}

void RangeCounter::SetNoTensor(uint32_t key) {
  for (size_t group = 0; group < backend_->groups().size() && !lost_; ++group) {
    if (IsTensor(group)) SetZero(key, group);
  }
}

void RangeCounter::AddNewKeys() {
  for (const uint32_t end = keys_.size(); new_keys_ < end; ++new_keys_) AddKey(new_keys_, 0);
}

size_t RangeCounter::NextGroup() const {
  const size_t groups = backend_->groups().size();
  if (counts_bytes_ && !saw_bytes_ && !wanted_.Wanted(bytes_group_).empty()) return bytes_group_;
  for (size_t i = 0; i < groups; ++i) {
    const size_t group = (group_ + i + (stuck_ ? 1 : 0)) % groups;
    if (!wanted_.Wanted(group).empty()) return group;
  }
  return group_;
}

bool RangeCounter::CountsFlop(size_t group) const {
  const GroupKind kind = backend_->groups()[group].kind;
  return kind == GroupKind::kHardware || kind == GroupKind::kSass;
}

bool RangeCounter::lacks_flop() const {
  for (size_t group = 0; group < backend_->groups().size() && !lost_ && !checks_; ++group) {
    if (CountsFlop(group) && !wanted_.Wanted(group).empty()) return true;
  }
  return false;
}

void RangeCounter::NoteIfCounted(uint32_t key) {
  for (size_t group = 0; group < backend_->groups().size(); ++group) {
    if (CountsFlop(group) && !wanted_.IsCounted(key, group)) return;
  }
  keys_.NoteCounted(key);
}

bool RangeCounter::opens() const { return !backend_->started() || NextGroup() != group_; }

int RangeCounter::Begin() {
  const size_t next = NextGroup();
  int result = CUPTI_SUCCESS;
  if (backend_->started() && next != group_) result = Close();
  group_ = next;
  if (result == CUPTI_SUCCESS) {
    if (!backend_->started()) {
      // The fewest batches, of about the same size; there may be a few keys more by then.
      constexpr size_t kFew = 16;
      const size_t all = wanted_.Wanted(group_).size() + kFew / 2;
      room_ = std::clamp(all / ((all - 1) / RangeBatch::kRanges + 1) + 1, kFew, RangeBatch::kRanges);
      result = backend_->Start(group_, room_);
    } else if (read_) {
      result = backend_->Restart();
    }
  }
  read_ = false;
  if (result != CUPTI_SUCCESS) return result;
  batch_keys_ = wanted_.Wanted(group_);
  std::vector<RangeBatch::Wanted> wanted;
  for (const uint32_t key : batch_keys_) wanted.push_back({key, CostOf(key)});
  batch_ = std::make_unique<RangeBatch>(*backend_, room_, keys_.size(), wanted);
  context_.gate().Open(batch_.get());
  return CUPTI_SUCCESS;
}

bool RangeCounter::CannotBe(const RangeBatch& batch, const std::vector<double>& values) const {
  // Of many kernels some move bytes.
  constexpr size_t kMany = 6;
  if (!counts_bytes_ || group_ != bytes_group_) return false;
  std::set<uint32_t> keys;
  for (size_t i = 0; i < batch.used(); ++i) keys.insert(batch.range(i).key);
  return keys.size() >= kMany && std::ranges::all_of(values, [](double value) { return value == 0; });
}

int RangeCounter::Finish(bool waited) {
  if (lost_) Lose();
  if (batch_ == nullptr) return CUPTI_SUCCESS;
  if (!context_.gate().Close()) {
    // A launch is stuck inside of the driver; what it uses stays as it is.
    recorder_.CountDrop("ranges that a launch did not leave");
    Lose();
    return CUPTI_SUCCESS;
  }
  const std::unique_ptr<RangeBatch> batch = std::move(batch_);
  int result = batch->result();
  std::vector<double> values;
  const size_t used = batch->used();
  if (result == CUPTI_SUCCESS) {
    result = backend_->Collect(used, &values);
    read_ = true;
  }
  if (result != CUPTI_SUCCESS) return result;
  const size_t width = backend_->groups()[group_].metrics.size();
  std::vector<uint32_t> launched;
  stuck_ = used > 0;
  if (CannotBe(*batch, values)) {
    zeros_ = true;
    return CUPTI_SUCCESS;
  }
  for (size_t i = 0; i < used; ++i) {
    const RangeBatch::Range& range = batch->range(i);
    launched.push_back(range.key);
    const std::span<const double> row(values.data() + i * width, width);
    const bool whole = std::all_of(row.begin(), row.end(), [](double value) { return std::isfinite(value); });
    if (!range.good.load(std::memory_order_acquire)) {
      wanted_.Spoiled(range.key);
      continue;
    }
    stuck_ = false;
    saw_bytes_ = saw_bytes_ || group_ == bytes_group_;
    if (!whole) {
      recorder_.CountDrop("ranges that CUPTI gave no values for");
      wanted_.Missed(range.key);
      continue;
    }
    sparse_ = sparse_ || samples_.IsSparse(group_, row);
    if (range.graph != 0) {
      AddGraph(range, row);
      continue;
    }
    const bool varies = backend_->groups()[group_].kind == GroupKind::kSampled;
    const std::vector<uint32_t> twins = varies ? std::vector<uint32_t>{range.key} : wanted_.Twins(range.key);
    const double counted = samples_.AddLaunch(group_, range.key, twins, row);
    wanted_.AddCount(range.key, group_, counted);
    for (const uint32_t twin : twins) NoteIfCounted(twin);
    // A kernel multiplies operands of one kind: what was found in one tensor group is not looked for in the others.
    const bool all_known = (IsTensor(group_) && counted > 0) || samples_.TensorRested(group_, row);
    for (size_t group = 0; group < backend_->groups().size() && all_known; ++group) {
      if (group != group_ && IsTensor(group)) SetZero(range.key, group);
    }
  }
  if (!waited || batch->denied()) return CUPTI_SUCCESS;
  for (const uint32_t key : batch_keys_) {
    if (std::find(launched.begin(), launched.end(), key) == launched.end()) wanted_.Missed(key);
  }
  return CUPTI_SUCCESS;
}

// A graph's launch is one range, which cannot be divided. Kernels that were all counted outside of graphs keep the
// values that they had there; else the graph has a row, which gets what theirs leave.
void RangeCounter::AddGraph(const RangeBatch::Range& range, std::span<const double> row) {
  std::vector<uint32_t> keys;
  const auto graph = graphs_.ContentsOf(range.graph);
  if (graph != nullptr) {
    for (const CapturedGraphs::Node& node : graph->nodes) {
      if (node.key != LaunchKeys::kNoKey && !node.transfer) keys.push_back(node.key);
    }
  }
  wanted_.AddCount(range.key, group_, samples_.AddRest(group_, range.key, keys, row));
}

uint32_t RangeCounter::CostOf(uint32_t key) const {
  const auto known = kernel_ns_.find(key);
  const uint64_t ns = range_ns() + (IsSass(group_) && known != kernel_ns_.end() ? kSassTimes * known->second : 0);
  return static_cast<uint32_t>(std::min<uint64_t>(ns, UINT32_MAX));
}

int RangeCounter::Close() {
  read_ = false;
  return backend_->started() ? backend_->Close() : CUPTI_SUCCESS;
}

void RangeCounter::Abandon() {
  lost_ = true;
  // A launch may be stuck inside of the driver; what it uses stays as it is.
  if (context_.gate().Close() && backend_->started()) backend_->Close();
}

void RangeCounter::Lose() {
  lost_ = true;
  if (batch_ == nullptr) return;
  if (context_.gate().Close()) return batch_.reset();
  [[maybe_unused]] const RangeBatch* const leaked = batch_.release();
}

}  // namespace rfinject::cupti
