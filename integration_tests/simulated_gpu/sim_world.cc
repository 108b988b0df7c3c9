// File: sim_world.cc
//
// What the simulated GPU's driver and its CUPTI share: hooks, failures, what was done wrong, the chip and its clock.
#include <atomic>
#include <map>
#include <mutex>
#include <string>
#include <vector>

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
  const SimHooks* hooks = nullptr;
  const SimDriver* driver = nullptr;
  void* callback = nullptr;
  std::atomic<int> graph_ids{SIM_GRAPH_IDS};
};

World& TheWorld() {
  static World* world = new World;
  return *world;
}

std::atomic<uint32_t> g_correlation{0};
std::atomic<uint64_t> g_clock{1'000'000};
thread_local int t_inside_launch = 0;

constexpr uint64_t kOtherNs = 1000;  // of what is no kernel

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
  if (const SimHooks* hooks = TheWorld().hooks) hooks->run(launch);
  uint64_t ns = launch->kernel != nullptr ? launch->kernel->ns : kOtherNs;
  for (size_t i = 0; launch->graph != nullptr && i < launch->graph->count; ++i) {
    const SimNode& node = launch->graph->nodes[i];
    ns += node.kernel != nullptr ? node.kernel->ns : node.transfer_ns;
  }
  g_clock += ns;
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

uint64_t sim_clock(void) { return g_clock; }
}
