// File: sim_world.cc
//
// What the simulated GPU's driver and its CUPTI share: hooks, failures, what was done wrong, the chip. What it does,
// and when, is in sim_time.cc.
#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "integration_tests/simulated_gpu/sim_time.h"
#include "integration_tests/simulated_gpu/simulator.h"

namespace {

struct Failure {
  int code;
  bool every;
};

struct World {
  std::mutex mutex;
  std::map<std::string, Failure> failures;
  std::map<std::string, uint64_t> calls;
  std::vector<std::string> order;
  std::string violations;
  std::string chip = "GA100";
  int compute_capability = 80;
  std::atomic<const SimHooks*> hooks{nullptr};
  const SimDriver* driver = nullptr;
  void* callback = nullptr;
  std::atomic<int> graph_ids{SIM_GRAPH_IDS};
  std::atomic<int> exclusive{1};
  std::atomic<int> zeros{0}, clock_khz{0};
};

World& TheWorld() {
  static World* world = new World;
  return *world;
}

std::atomic<uint32_t> g_correlation{0};
thread_local int t_inside_launch = 0;

// What the real libraries have answered: these one after another, each with its question and its answer behind it.
// The memory is shared with forked processes; what one has not written whole is not there for the next.
struct Answer {
  size_t hash;                     // of the question
  size_t question, answer, whole;  // sizes; `whole` is that of all
};
struct Answers {
  std::atomic<size_t> used;
  alignas(Answer) char text[];
};
constexpr size_t kAnswers = size_t{64} << 20;  // pages that are not written to cost nothing
std::atomic<Answers*> g_answers{nullptr};
std::mutex g_answers_mutex;  // of the threads of this process

}  // namespace

extern "C" {

void sim_set_hooks(const SimHooks* hooks) { TheWorld().hooks = hooks; }
void sim_set_driver(const SimDriver* driver) { TheWorld().driver = driver; }

void sim_call_enter(SimLaunch* launch, uint64_t* correlation_data) {
  launch->correlation_id = ++g_correlation;
  ++t_inside_launch;
  if (const SimHooks* hooks = TheWorld().hooks) hooks->enter(launch, correlation_data);
}
void sim_call_run(const SimLaunch* launch) {
  const SimHooks* hooks = TheWorld().hooks;
  sim::Launch(
      *launch,
      [&] {
        return hooks != nullptr ? hooks->begin(launch) : SimSlow{1, 0};
      },
      [hooks](const SimLaunch& run, const SimSpan* spans) {
        if (hooks != nullptr) hooks->run(&run, spans);
      });
}
void sim_call_exit(const SimLaunch* launch, uint64_t* correlation_data, CUresult result) {
  if (const SimHooks* hooks = TheWorld().hooks) hooks->exit(launch, correlation_data, &result);
  --t_inside_launch;
}
void sim_context_destroy(CUcontext context) {
  if (const SimHooks* hooks = TheWorld().hooks) hooks->context_destroy(context);
}

void sim_node(const SimNodeEvent* event) {
  if (const SimHooks* hooks = TheWorld().hooks) hooks->node(event);
}
void sim_set_graph_ids(int which) { TheWorld().graph_ids = which; }
int sim_graph_ids(void) { return TheWorld().graph_ids; }

void sim_set_chip(const char* name, int major, int minor) {
  TheWorld().chip = name;
  TheWorld().compute_capability = major * 10 + minor;
}
const char* sim_chip(void) { return TheWorld().chip.c_str(); }
int sim_compute_capability(void) { return TheWorld().compute_capability; }

void sim_fail(const char* function, int code, int every) {
  std::lock_guard lock(TheWorld().mutex);
  TheWorld().failures[function] = {code, every != 0};
}

int sim_take_failure(const char* function) {
  World& world = TheWorld();
  std::lock_guard lock(world.mutex);
  if (++world.calls[function] == 1) world.order.push_back(function);
  auto at = world.failures.find(function);
  if (at == world.failures.end()) return 0;
  int code = at->second.code;
  if (!at->second.every) world.failures.erase(at);
  return code;
}

uint64_t sim_calls(const char* function) {
  std::lock_guard lock(TheWorld().mutex);
  return TheWorld().calls[function];
}

const char* sim_function(size_t index) {
  std::lock_guard lock(TheWorld().mutex);
  return index < TheWorld().order.size() ? TheWorld().order[index].c_str() : nullptr;
}

void sim_violation(const char* text) {
  std::lock_guard lock(TheWorld().mutex);
  TheWorld().violations += text;
  TheWorld().violations += '\n';
}
const char* sim_violations(void) { return TheWorld().violations.c_str(); }

int sim_inside_launch(void) { return t_inside_launch; }

void* sim_callback(void) { return TheWorld().callback; }
void sim_set_callback(void* callback) { TheWorld().callback = callback; }

int sim_is_current(CUcontext context) {
  const SimDriver* driver = TheWorld().driver;
  return driver != nullptr && driver->is_current(context) != 0 ? 1 : 0;
}
int sim_device_of(CUcontext context) {
  const SimDriver* driver = TheWorld().driver;
  return driver != nullptr ? driver->device_of(context) : 0;
}

void sim_set_exclusive(int exclusive) { TheWorld().exclusive = exclusive; }
void sim_set_zeros(int zeros) { TheWorld().zeros = zeros; }
int sim_zeros(void) { return TheWorld().zeros; }
void sim_set_clock_khz(int khz) { TheWorld().clock_khz = khz; }
int sim_clock_khz(void) {
  const int held = TheWorld().clock_khz;
  const SimDriver* driver = TheWorld().driver;
  return held != 0 || driver == nullptr ? held : driver->clock_khz;
}
int sim_exclusive(void) { return TheWorld().exclusive; }

void sim_share_answers(void) {
  std::lock_guard lock(g_answers_mutex);
  if (g_answers != nullptr) return;
  void* memory = mmap(nullptr, kAnswers, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory != MAP_FAILED) g_answers = static_cast<Answers*>(memory);
}

const void* sim_answer(const void* question, size_t size, size_t* answer_size) {
  const Answers* answers = g_answers;
  if (answers == nullptr) return nullptr;
  const size_t hash = std::hash<std::string_view>()({static_cast<const char*>(question), size});
  const size_t used = answers->used.load(std::memory_order_acquire);
  Answer at;
  for (size_t i = 0; i < used; i += at.whole) {
    memcpy(&at, answers->text + i, sizeof at);
    const char* asked = answers->text + i + sizeof at;
    if (at.hash != hash || at.question != size || memcmp(asked, question, size) != 0) continue;
    *answer_size = at.answer;
    return asked + size;
  }
  return nullptr;
}

void sim_keep_answer(const void* question, size_t size, const void* answer, size_t answer_size) {
  Answers* answers = g_answers;
  if (answers == nullptr) return;
  std::lock_guard lock(g_answers_mutex);
  const size_t hash = std::hash<std::string_view>()({static_cast<const char*>(question), size});
  const size_t used = answers->used.load(std::memory_order_relaxed);
  const Answer header = {hash, size, answer_size, sizeof(Answer) + size + answer_size};
  if (sizeof(Answers) + used + header.whole > kAnswers) return;
  char* at = answers->text + used;
  memcpy(at, &header, sizeof header);
  memcpy(at + sizeof header, question, size);
  memcpy(at + sizeof header + size, answer, answer_size);
  answers->used.store(used + header.whole, std::memory_order_release);
}
}
