#include "virtual_gpu/driver/state.h"

#include <pthread.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <new>
#include <set>
#include <utility>

namespace rfinject::virtual_gpu {
namespace {

// Made from gpus/chips.csv, whose rows are in the order of their compute capabilities.
constexpr ChipLimits kLimits[] = {
#include "virtual_gpu/driver/chip_limits.inc"
};

// Filled from the front under the lock. What is read is released by who wrote it.
std::array<std::atomic<const rfinject_virtual_observer*>, 4> g_observers{};
std::atomic<uint64_t> g_launches{0};
std::atomic<int> g_captures{0};
std::atomic<uint64_t> g_skipped_ns{0};
std::atomic<uint64_t> g_occupied_ns{0};
thread_local CUstream t_last_stream = nullptr;
thread_local constinit bool t_hidden = false;
thread_local constinit uint64_t t_launches = 0;
thread_local constinit Work t_work;
thread_local uint64_t t_untold_ns = 0;  // that this thread's launches and copies took, as far as the driver knows
thread_local constinit NodeCost* t_captured = nullptr;  // of the last node, until its cost is told

// The parent forks while no other thread holds the lock, so that the child's copy of the state is whole. The child
// makes the lock anew: the old one belongs to the parent's thread, which has another number, and glibc lets no other
// thread unlock a recursive lock.
void LockForFork() { StateLock().lock(); }
void UnlockInParent() { StateLock().unlock(); }
void RenewInChild() { new (&StateLock()) std::recursive_mutex; }

}  // namespace

Board& TheBoard() {
  static Board* const board = new Board;
  return *board;
}

const ChipLimits& LimitsOf(int cc) {
  const ChipLimits* best = &kLimits[0];
  for (const ChipLimits& limits : kLimits) {
    if (limits.cc <= cc) best = &limits;
  }
  return *best;
}

std::recursive_mutex& StateLock() {
  static auto* const mutex = new std::recursive_mutex;  // never destroyed: exit handlers call the driver
  return *mutex;
}

uint64_t NewId() {
  static std::atomic<uint64_t> next{1};
  return next.fetch_add(1, std::memory_order_relaxed);
}

uint64_t ClockNow() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<uint64_t>(now.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(now.tv_nsec) +
         g_skipped_ns.load(std::memory_order_relaxed);
}

void WaitUntil(uint64_t ns) {
  const uint64_t now = ClockNow();
  if (ns > now) g_skipped_ns.fetch_add(ns - now, std::memory_order_relaxed);
}

void Occupy(CUstream stream, uint64_t ns) {
  CUstream real = RealStream(stream);
  const Lock lock(StateLock());
  real->busy_until = std::max(real->busy_until, ClockNow()) + ns;
  g_occupied_ns.fetch_add(ns, std::memory_order_relaxed);
}

void OccupyUntold(CUstream stream, uint64_t ns) {
  if (t_hidden) return;
  CUstream real = RealStream(stream);
  Occupy(real, ns);
  t_last_stream = real;
  t_untold_ns += ns;
}

bool Hidden() { return t_hidden; }

void CountLaunch() { ++t_launches; }

void TellNode(rfinject_virtual_node_event event, const void* graph, CUgraphNode node, CUgraphNode original) {
  if (t_hidden) return;
  const rfinject_virtual_node told = {graph, node, original, static_cast<int>(node->type)};
  Tell<&rfinject_virtual_observer::node>(static_cast<int>(event), &told);
}

Work TakeWork() { return std::exchange(t_work, Work{}); }

void NoteLaunch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared, const Work& work,
                CUstream stream) {
  CUstream real = RealStream(stream);
  OccupyUntold(real, kLaunchNs);
  t_captured = nullptr;
  g_launches.fetch_add(1, std::memory_order_relaxed);
  CountLaunch();
  rfinject_virtual_launch launch = {};
  launch.name = function->name.c_str();
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.shared_bytes = shared;
  launch.device = real->context != nullptr ? real->context->device : 0;
  launch.stream = real->id;
  launch.flop = work.flop;
  launch.bytes = work.bytes;
  Tell<&rfinject_virtual_observer::launch>(&launch);
}

void CountCaptures(int change) { g_captures.fetch_add(change, std::memory_order_relaxed); }

NodeCost* NewNodeCost() { return t_captured = new NodeCost; }
void ForgetCaptured() { t_captured = nullptr; }

void NoteReplayed(const NodeCost& cost, CUstream stream) {
  if (cost.what == 0) return;  // an operator's last node is told of all of them
  if (cost.ns > t_untold_ns) Occupy(stream, cost.ns - t_untold_ns);
  t_untold_ns = 0;
  Tell<&rfinject_virtual_observer::replay>(cost.what);
}

void NoteReplay() {
  t_untold_ns = 0;
  Tell<&rfinject_virtual_observer::replay>(uint64_t{0});
}

void NoteLoadedLaunch(CUfunction function, const unsigned* grid, const unsigned* block, unsigned shared,
                      void* const* arguments, CUstream stream) {
  std::vector<uint64_t> words;
  const auto& parameters = function->info.parameters;
  for (size_t i = 0; arguments != nullptr && i < parameters.size(); ++i) {
    if (parameters[i].second != sizeof(uint64_t) || arguments[i] == nullptr) continue;
    memcpy(&words.emplace_back(), arguments[i], sizeof(uint64_t));
  }
  rfinject_virtual_loaded_launch launch = {};
  launch.name = function->name.c_str();
  std::copy_n(grid, 3, launch.grid);
  std::copy_n(block, 3, launch.block);
  launch.shared_bytes = shared;
  launch.device = stream->context != nullptr ? stream->context->device : 0;
  launch.words = words.data();
  launch.word_count = words.size();
  Tell<&rfinject_virtual_observer::loaded_launch>(&launch);
}

void SayOnce(const std::string& text) {
  if (TheBoard().quiet) return;
  const Lock lock(StateLock());
  static auto* const said = new std::set<std::string>;
  if (!said->insert(text).second) return;
  const std::string line = "rfinject: " + text + "\n";
  if (write(STDERR_FILENO, line.data(), line.size()) < 0) return;
}

}  // namespace rfinject::virtual_gpu

using namespace rfinject::virtual_gpu;

RFINJECT_DOOR void rfinject_virtual_gpu_start(const rfinject_virtual_board* given) {
  const Lock lock(StateLock());
  Board& board = TheBoard();
  if (board.devices != 0) return;
  board.name = given->name;
  board.cc_major = given->cc_major;
  board.cc_minor = given->cc_minor;
  board.sm_count = given->sm_count;
  board.memory_bytes = given->memory_bytes;
  board.l2_bytes = given->l2_bytes;
  board.sm_hz = given->sm_hz;
  board.dram_bytes_per_s = given->dram_bytes_per_s;
  board.pcie_bytes_per_s = given->pcie_bytes_per_s;
  board.quiet = given->quiet != 0;
  board.computes = given->computes != 0;
  board.devices = given->devices;
  pthread_atfork(&LockForFork, &UnlockInParent, &RenewInChild);
}

RFINJECT_DOOR int rfinject_virtual_gpu_observe(const rfinject_virtual_observer* observer) {
  const Lock lock(StateLock());
  for (auto& place : g_observers) {
    const rfinject_virtual_observer* const taken = place.load(std::memory_order_relaxed);
    if (taken == nullptr) place.store(observer, std::memory_order_release);
    if (taken == nullptr || taken == observer) return 0;
  }
  return 1;
}

RFINJECT_DOOR const rfinject_virtual_observer* rfinject_virtual_gpu_observer(int index) {
  const auto place = static_cast<size_t>(index);
  return place < g_observers.size() ? g_observers[place].load(std::memory_order_acquire) : nullptr;
}

RFINJECT_DOOR void rfinject_virtual_gpu_describe(double flop, double bytes) { t_work = {flop, bytes}; }

RFINJECT_DOOR void rfinject_virtual_gpu_hide(int hidden) { t_hidden = hidden != 0; }

RFINJECT_DOOR const uint64_t* rfinject_virtual_gpu_thread_launches() { return &t_launches; }

RFINJECT_DOOR void rfinject_virtual_gpu_carried_out() { --t_launches; }

RFINJECT_DOOR int rfinject_virtual_gpu_computes() { return TheBoard().computes ? 1 : 0; }

RFINJECT_DOOR uint64_t rfinject_virtual_gpu_launches() { return g_launches.load(std::memory_order_relaxed); }

RFINJECT_DOOR void rfinject_virtual_gpu_tell(uint64_t nanoseconds) {
  if (t_last_stream != nullptr && nanoseconds > t_untold_ns) Occupy(t_last_stream, nanoseconds - t_untold_ns);
  t_untold_ns = 0;
}

RFINJECT_DOOR int rfinject_virtual_gpu_capturing() { return g_captures.load(std::memory_order_relaxed) > 0 ? 1 : 0; }

RFINJECT_DOOR int rfinject_virtual_gpu_captured() { return t_captured != nullptr ? 1 : 0; }

RFINJECT_DOOR void rfinject_virtual_gpu_tell_captured(uint64_t nanoseconds, uint64_t what) {
  if (t_captured != nullptr) *t_captured = {nanoseconds, what};
  t_captured = nullptr;
}

RFINJECT_DOOR void rfinject_virtual_gpu_clock(struct rfinject_virtual_clock* clock) {
  clock->skipped_ns = g_skipped_ns.load(std::memory_order_relaxed);
  clock->occupied_ns = g_occupied_ns.load(std::memory_order_relaxed);
}

RFINJECT_DOOR void rfinject_virtual_gpu_lock() { StateLock().lock(); }
RFINJECT_DOOR void rfinject_virtual_gpu_unlock() { StateLock().unlock(); }

RFINJECT_DOOR int rfinject_virtual_gpu_missing(const char* name, int status) {
  SayOnce(std::string("the virtual GPU has no ") + name +
          ": the call fails (docs/use/VIRTUAL_GPU.md; --estimate-on cpu runs the program without it)");
  return status;
}

RFINJECT_DOOR void rfinject_virtual_gpu_say(const char* text) { SayOnce(text); }
