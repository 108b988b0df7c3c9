#include "collector/cupti/operator_calls.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "collector/cupti/lock_waits.h"
#include "collector/hash.h"
#include "collector/operator_slices.h"
#include "collector/run_facts.h"
#include "collector/thread_block.h"
#include "operators/cost.h"
#include "operators/flop.h"
#include "operators/op_table.h"
#include "operators/operands.h"
#include "operators/signature.h"

namespace rfinject::cupti {

// What one call costs, with what it repeats.
struct CallCost {
  uint64_t model_flop = 0, product_flop = 0, hidden_flop = 0, bytes = 0, pcie_bytes = 0;
  std::array<uint64_t, kPrecisionCount> flop{};
};

namespace {

constexpr size_t kMaxWorks = 1 << 16;  // that are kept
constexpr uint64_t kLeast = 2;         // sweeps, for splitting keys
constexpr uint64_t kFirst = 4;         // sweeps that begin as soon as keys are new
constexpr uint64_t kSlices = 25;       // of a sweep; of ten, a step took 5.5 to 6.4 % longer (bench/overhead)
constexpr uint64_t kStepsForOne = 64;  // later, for a sweep
constexpr uint64_t kMaxGap = 1024;     // steps between two looks for what was not found
// A key of more launches in a step is not split.
constexpr size_t kMaxPlaces = 4096;
constexpr uint32_t kNoPlace = UINT32_MAX;
constexpr uint32_t kTaken = LaunchKeys::kNoKey;  // an operator has this launch

// The last launches of a thread, by number. An operator of more has those.
constexpr size_t kMaxLaunches = 4096, kMaxLaunchesOfCall = 2048;
struct Launched {
  std::array<uint32_t, kMaxLaunches> keys, places;  // places: among the key's launches of the step
};
ThreadBlock<Launched> g_launched;
[[gnu::tls_model("initial-exec")]] constinit thread_local Launched* t_launched = nullptr;
[[gnu::tls_model("initial-exec")]] constinit thread_local uint64_t t_launches = 0;

// The board whose chip has that compute capability, or else the latest one before it.
const Gpu* GpuLike(int cc_major, int cc_minor) noexcept {
  const auto capability = [](const Gpu& gpu) { return std::pair(gpu.cc_major, gpu.cc_minor); };
  const Gpu* best = nullptr;
  for (const Gpu& gpu : AllGpus()) {
    if (!HasEstimates(gpu) || capability(gpu) > std::pair(cc_major, cc_minor)) continue;
    if (best == nullptr || capability(gpu) > capability(*best)) best = &gpu;
  }
  return best;
}

CallCost CostOf(const estimate::Cost& cost, bool computed_again) noexcept {
  CallCost of{.model_flop = cost.model_flop,
              .product_flop = cost.product_flop,
              .hidden_flop = cost.hidden_flop,
              .bytes = cost.compulsory_bytes,
              .pcie_bytes = cost.pcie_bytes,
              .flop = cost.executed_flop};
  for (const estimate::RepeatedCost& repeated : cost.repeated) {
    const uint64_t flop = estimate::SaturatingMultiply(repeated.flop, repeated.launches);
    of.model_flop = estimate::SaturatingAdd(of.model_flop, flop);
    if (repeated.product) of.product_flop = estimate::SaturatingAdd(of.product_flop, flop);
    of.bytes = estimate::SaturatingAdd(of.bytes, estimate::SaturatingMultiply(repeated.bytes, repeated.launches));
    uint64_t& slot = of.flop[static_cast<size_t>(repeated.precision)];
    slot = estimate::SaturatingAdd(slot, flop);
  }
  // What is computed again is asked for once.
  if (computed_again) of.model_flop = of.product_flop = of.hidden_flop = 0;
  return of;
}

template <typename Work>
void SetModelFlop(const Work& work, trace::OperatorWork* told) {
  told->model_flop = work.model_flop;
  told->product_flop = work.product_flop;
  told->hidden_flop = work.hidden_flop;
}

void SetFlop(const std::array<uint64_t, kPrecisionCount>& flop, trace::OperatorWork* told) {
  size_t precisions = kPrecisionCount;
  while (precisions > 0 && flop[precisions - 1] == 0) --precisions;
  told->flop.assign(flop.begin(), flop.begin() + static_cast<std::ptrdiff_t>(precisions));
}

uint32_t GradientsOf(const OpCall& call) noexcept {
  const auto rule = estimate::FindOp(call.name);
  if (!rule || rule->flop != estimate::FlopRule::kConvolutionBackward) return 0;
  constexpr size_t kOfInputAndWeight = 2;
  uint32_t gradients = 0;
  for (const Argument& output : call.outputs.first(std::min(call.outputs.size(), kOfInputAndWeight))) {
    gradients += output.kind == Argument::Kind::kTensor ? 1 : 0;
  }
  return gradients;
}

}  // namespace

const uint64_t* OperatorCalls::LaunchesOfThread() noexcept { return &t_launches; }

void OperatorCalls::NoteObserved(uint32_t key, const LaunchIdentity& identity, uint32_t compiled) noexcept {
  const uint64_t number = slice_.launches.fetch_add(1, std::memory_order_relaxed) + 1;
  if (!whole_) TellLaunchOfSlices(number == slice_.first.load(std::memory_order_relaxed));
  Launched* const launched = g_launched.Get(&t_launched);
  if (launched == nullptr) return;
  uint32_t place = kNoPlace;
  bool is_compiled = false;
  if (lock_.LockFor(kLaunchLockWaitNs)) {
    const HeldLock held(lock_);
    try {
      if (sequences_.size() <= key) sequences_.resize(key + 1);
      Sequence& of = sequences_[key];
      if (of.launched < kMaxPlaces) {
        place = of.launched++;
        if (place == of.now.size()) of.now.emplace_back();
      }
      is_compiled = compiled != 0 && AddCompiled(identity, key, place, compiled);
    } catch (...) {  // the key is not split, then
    }
  }
  launched->keys[t_launches % kMaxLaunches] = is_compiled ? kTaken : key;
  launched->places[t_launches++ % kMaxLaunches] = place;
}

bool OperatorCalls::AddCompiled(const LaunchIdentity& identity, uint32_t key, uint32_t place, uint32_t compiled) {
  const estimate::CompiledCost cost = compiled_.Find(compiled, identity.kernel);
  if (!cost.bytes_known) return false;
  const Launch launch{key, place};
  Add(HashMix(HashMix(key, compiled), identity.kernel), std::span(&launch, 1), [&](trace::OperatorWork* told) {
    told->op = identity.kernel;
    if (identity.site.phase != Phase::kRecompute) SetModelFlop(cost, told);
    told->compulsory_bytes = cost.bytes;
    SetFlop(cost.executed_flop, told);
  });
  return true;
}

uint32_t OperatorCalls::DefineCompiled(const CompiledWork& work) noexcept {
  const Gpu* const gpu = gpu_.load(std::memory_order_relaxed);
  return gpu != nullptr ? compiled_.Define(work, *gpu, policy(), unknown_) : 0;
}

void OperatorCalls::SetDevice(int cc_major, int cc_minor) noexcept {
  gpu_.store(GpuLike(cc_major, cc_minor), std::memory_order_relaxed);
}

void OperatorCalls::OnPolicy(const PolicyFacts& policy) noexcept {
  const estimate::PrecisionPolicy defaults;  // torch's
  const auto allows = [](uint32_t flag, bool by_default) {
    return flag == Tristate::kUnknown ? by_default : flag == Tristate::kOn;
  };
  convolution_tf32_.store(allows(policy.cudnn_tf32, defaults.convolution_tf32), std::memory_order_relaxed);
  matmul_tf32_.store(allows(policy.matmul_tf32, defaults.matmul_tf32), std::memory_order_relaxed);
}

bool OperatorCalls::OnOp(const OpCall& call, bool computed_again) noexcept {
  const Gpu* const gpu = gpu_.load(std::memory_order_relaxed);
  // What a program does on the host is none of the GPU's work.
  if (!observing() || call.on_host || gpu == nullptr || t_launched == nullptr) return false;
  const estimate::Cost cost = estimate::EstimateCost(call, *gpu, policy());
  if (!cost.kernel) return false;

  std::array<Launch, kMaxLaunchesOfCall> own;
  size_t count = 0;
  const uint64_t oldest = t_launches > kMaxLaunches ? t_launches - kMaxLaunches : 0;
  for (uint64_t i = std::max(call.first_launch, oldest); i < t_launches && count < own.size(); ++i) {
    const uint32_t key = std::exchange(t_launched->keys[i % kMaxLaunches], kTaken);
    if (key != kTaken) own[count++] = {key, t_launched->places[i % kMaxLaunches]};
  }
  if (count == 0) return false;
  const auto is_floating = [](const TensorView& tensor) { return estimate::IsFloating(tensor.dtype); };
  if (!cost.known && std::ranges::any_of(call.tensors, is_floating)) unknown_.Note(call.name);

  const CallCost costs = CostOf(cost, computed_again);
  uint64_t hash = HashMix(estimate::HashSignature(call), costs.model_flop);
  hash = HashMix(HashMix(hash, costs.bytes), count);
  std::sort(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(count));
  for (size_t i = 0; i < count; ++i) hash = HashMix(hash, own[i].key);
  if (!lock_.LockFor(kLaunchLockWaitNs)) return true;
  const HeldLock held(lock_);
  try {
    Add(hash, std::span(own).first(count), [&](trace::OperatorWork* told) { Describe(call, costs, told); });
  } catch (...) {
    recorder_.CountDrop("operators for which there was no memory");
  }
  return true;
}

void OperatorCalls::Know(uint32_t key) {
  if (known_.size() <= key) known_.resize(key + 1);
  if (!known_[key]) known_count_.fetch_add(1, std::memory_order_relaxed);
  known_[key] = true;
}

template <typename Make>
void OperatorCalls::Add(uint64_t hash, std::span<const Launch> launched, const Make& make) {
  auto found = works_.find(hash);
  if (found == works_.end()) {
    if (works_.size() == kMaxWorks) return recorder_.CountDrop("works of operators: too many");
    Work work;
    make(&work.told.work);
    for (const Launch& launch : launched) {
      if (work.keys.empty() || work.keys.back() != launch.key) {
        work.keys.push_back(launch.key);
        work.told.work.launches.push_back(0);
      }
      ++work.told.work.launches.back();
      Know(launch.key);
    }
    found = works_.emplace(hash, std::move(work)).first;
  }
  if (found->second.told.work.calls++ == 0) heard_.push_back(&found->second);
  for (const Launch& launch : launched) {
    if (launch.key >= sequences_.size()) continue;
    std::vector<LaunchKeys::WorkName>& now = sequences_[launch.key].now;
    if (launch.place < now.size()) now[launch.place] = found->second.name();
  }
}

void OperatorCalls::Describe(const OpCall& call, const CallCost& cost, trace::OperatorWork* told) {
  std::array<char, estimate::kMaxSignature> buffer;
  told->op = recorder_.Intern(call.name);
  told->signature = recorder_.Intern(estimate::FormatSignature(call, buffer));
  SetModelFlop(cost, told);
  told->compulsory_bytes = cost.bytes;
  told->pcie_bytes = cost.pcie_bytes;
  SetFlop(cost.flop, told);
  const auto rule = estimate::FindOp(call.name);
  told->multiplies = rule && estimate::CountFlop(*rule, call).matrix > 0;
  told->gradients = GradientsOf(call);
}

// --- The end of a step.

void OperatorCalls::SplitKeys() {
  for (uint32_t key = 0; key < sequences_.size(); ++key) {
    Sequence& of = sequences_[key];
    if (of.now.empty()) continue;
    const bool known = !of.varies && std::ranges::find(of.now, LaunchKeys::WorkName()) == of.now.end();
    const bool differ = std::ranges::find_if(of.now, [&](auto name) { return name != of.now[0]; }) != of.now.end();
    if (known && differ && of.now.size() < kMaxPlaces && !of.split && of.now == of.before) {
      of.split = true;
      Split(key, of);
    }
    of.before = std::exchange(of.now, {});
    of.varies = false;
  }
}

// The works that the key has a part of are told again, of the pieces.
void OperatorCalls::Split(uint32_t key, const Sequence& sequence) {
  const std::vector<uint32_t> pieces = keys_.Split(key, sequence.now);
  if (pieces.empty()) return;
  for (const uint32_t piece : pieces) Know(piece);
  for (auto& [hash, work] : works_) {
    const auto at = std::ranges::find(work.keys, key);
    const auto name = std::ranges::find(sequence.now, work.name());
    if (at == work.keys.end() || name == sequence.now.end()) continue;
    Work of_piece = work;
    of_piece.keys[static_cast<size_t>(at - work.keys.begin())] =
        pieces[static_cast<size_t>(name - sequence.now.begin())];
    TellOne(of_piece, of_piece.calls);
  }
}

void OperatorCalls::TellOne(const Work& work, uint64_t calls) {
  OperatorWork told = work.told;
  told.work.calls = calls;
  for (const uint32_t key : work.keys) told.launched.push_back(keys_.Identity(key));
  recorder_.NoteOperatorWork(std::move(told));
}

void OperatorCalls::Tell() {
  for (Work* const work : std::exchange(heard_, {})) {
    const uint64_t calls = std::exchange(work->told.work.calls, 0);
    work->calls += calls;
    TellOne(*work, calls);
  }
}

bool OperatorCalls::IsDue(uint64_t step) const noexcept {
  if (none_ || always_ || observed_ < kLeast) return !none_;
  const uint32_t size = keys_.size();
  if (known_count_.load(std::memory_order_relaxed) >= size) return false;
  if (observed_ >= kFirst && observed_ * kStepsForOne > step) return false;
  return size > last_size_ || step >= next_;
}

// --- Slices.

bool OperatorCalls::GoesOn() noexcept {
  const uint64_t launches = slice_.launches.load(std::memory_order_relaxed);
  if (whole_ || launches < slice_.least.load(std::memory_order_relaxed)) return true;
  uint64_t unknown = 0;
  slice_.stopped.compare_exchange_strong(unknown, launches, std::memory_order_relaxed);
  return false;
}

bool OperatorCalls::EndsSweep(uint64_t launches) noexcept {
  if (whole_) return true;
  // The first step of the first sweep only tells how many launches there are.
  const bool heard =
      slice_.from_beginning.load(std::memory_order_relaxed) || slice_.first.load(std::memory_order_relaxed) != 0;
  const uint64_t stopped = slice_.stopped.exchange(0, std::memory_order_relaxed);
  of_last_step_ = launches;
  if (heard && stopped == 0) return true;
  slice_.first.store(stopped, std::memory_order_relaxed);
  slice_.from_beginning.store(stopped == 0, std::memory_order_relaxed);
  slice_.least.store(stopped + std::max<uint64_t>(launches / kSlices, 1), std::memory_order_relaxed);
  return false;
}

// What a step has heard is told at its end, so that a program that is over before the sweep has lost nothing.
void OperatorCalls::EndSlice(bool ends_sweep) noexcept {
  if (!lock_.LockFor(kStepLockWaitNs)) return;
  const HeldLock held(lock_);
  for (Sequence& of : sequences_) of.varies |= std::exchange(of.launched, 0) != of.now.size();
  try {
    Tell();
    if (ends_sweep) SplitKeys();
  } catch (...) {
    recorder_.CountDrop("operators for which there was no memory");
  }
}

void OperatorCalls::EndSweep(uint64_t step) noexcept {
  ++observed_;
  const uint32_t size = keys_.size();
  gap_ = size > last_size_ ? 1 : std::min(2 * gap_, kMaxGap);
  next_ = step + 1 + gap_;
  last_size_ = size;
}

// --- The end of a step.

void OperatorCalls::OnStepEnd(uint64_t step) noexcept {
  keys_.BeginStep();
  unknown_.Report();
  if (gpu_.load(std::memory_order_relaxed) == nullptr) return;
  const uint64_t launches = slice_.launches.exchange(0, std::memory_order_relaxed);
  if (observing()) {
    const bool ends_sweep = EndsSweep(launches);
    EndSlice(ends_sweep);
    if (!ends_sweep) return;
    EndSweep(step);
  }
  const bool due = IsDue(step + 1);
  slice_.first.store(0, std::memory_order_relaxed);
  slice_.least.store(std::max<uint64_t>(of_last_step_ / kSlices, 1), std::memory_order_relaxed);
  slice_.from_beginning.store(due && (whole_ || of_last_step_ != 0), std::memory_order_relaxed);
  observing_.store(due, std::memory_order_relaxed);
}

}  // namespace rfinject::cupti
