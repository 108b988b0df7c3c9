// File: simulator.h
//
// The simulated GPU's own interface: how a test says what a kernel does, makes calls fail, and asks what was done
// wrong. Plain C, defined in libsim_world.so (sim_world.cc), which lies between a driver and the simulated libcupti:
// the simulated libcuda.so.1 (sim_cuda.cc), whose launches are a test's own, or the virtual GPU's
// (virtual_driver.cc), whose launches are PyTorch's.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIMULATOR_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIMULATOR_H_

#include <cuda.h>
#include <stddef.h>
#include <stdint.h>

extern "C" {

// A kernel: its address is its CUfunction. Metrics that are not listed count 0.
struct SimMetric {
  const char* name;  // with roll-up
  double value;
};
struct SimKernel {
  const char* name;
  uint64_t ns;  // how long it takes, undisturbed
  const SimMetric* metrics;
  size_t metric_count;
  const SimKernel*
      waits_for;  // it ends when the next launch of that kernel has ended, as communication does; or null
};

// When work is on the GPU, by sim_now's clock.
struct SimSpan {
  uint64_t start, end;
};
// What measuring makes of a kernel's time: `times` as long, and `ns` more.
struct SimSlow {
  uint64_t times, ns;
};

// The next kernel that this thread launches does what `kernel` does, whatever its CUfunction is, so that launches of
// one function may differ. Of the simulated libcuda.so.1.
void sim_launch_as(const SimKernel* kernel);

// What a node of a CUDA graph runs: a kernel, or a copy.
struct SimNode {
  const SimKernel* kernel;  // null: a copy
  uint64_t transfer_ns;     // of a copy
  const void* handle;       // its CUgraphNode; null: none
  uint32_t grid[3], block[3];
};
// A CUDA graph: its address is its CUgraphExec. Its nodes run one after another.
struct SimGraph {
  const SimNode* nodes;
  size_t count;
};

// What happens to a node, as the driver tells its profilers. A node that is cloned was created before.
struct SimNodeEvent {
  int cloned;  // 0: created
  const void* graph;
  const void* node;
  const void* original;  // that it is cloned from
  int type;              // CUgraphNodeType
};

// A launch as the driver tells its profilers about it.
struct SimLaunch {
  uint32_t cbid;
  const char* function_name;
  const char* symbol;  // the kernel's name, as the callback tells it before anything runs; null: no kernel, or
                       // `kernel` has it
  const void* params;
  const SimKernel* kernel;  // null: a graph or a copy
  const SimGraph* graph;    // of a graph
  uint64_t transfer_ns;     // of a copy
  uint32_t correlation_id;
  CUcontext context;
  CUstream stream;
  uint32_t grid[3], block[3];
  uint32_t dynamic_shared_bytes;
};

// The calls that a profiler hooks into; all are made on the launching thread.
struct SimHooks {
  void (*enter)(const SimLaunch* launch, uint64_t* correlation_data);
  SimSlow (*begin)(const SimLaunch* launch);  // its work is about to be put on a stream
  // It has been put there, and will be on the GPU at `spans`: one, or one for each node of a graph.
  void (*run)(const SimLaunch* launch, const SimSpan* spans);
  void (*exit)(const SimLaunch* launch, uint64_t* correlation_data, const CUresult* result);
  void (*context_destroy)(CUcontext context);
  void (*node)(const SimNodeEvent* event);
};
void sim_set_hooks(const SimHooks* hooks);

// What the driver answers when CUPTI asks it, without a call that a test could make fail.
struct SimDriver {
  int (*is_current)(CUcontext context);
  int (*device_of)(CUcontext context);
  int clock_khz;  // that the GPU runs at, if nobody holds it
};
void sim_set_driver(const SimDriver* driver);

// A call of the driver's, which tells the profilers in this order, on one thread: `enter` gives it its correlation
// id, `run` puts its work on a stream (a call that fails or is captured has none) and waits while the queue is full.
void sim_call_enter(SimLaunch* launch, uint64_t* correlation_data);
void sim_call_run(const SimLaunch* launch);
void sim_call_exit(const SimLaunch* launch, uint64_t* correlation_data, CUresult result);
void sim_context_destroy(CUcontext context);
void sim_node(const SimNodeEvent* event);

// How CUPTI tells graphs' nodes apart.
enum SimGraphIds {
  SIM_GRAPH_IDS,             // by numbers: callbacks, cuptiGetGraphNodeId, and the records' graphNodeId
  SIM_GRAPH_NO_IDS,          // not at all: the callbacks cannot be had, numbers neither
  SIM_GRAPH_NO_IDS_SWAPPED,  // the same, and the first two different kernels of a graph are recorded in turn
  SIM_GRAPH_NO_IDS_GRIDS     // the same as NO_IDS, and a kernel of a graph is recorded with another grid
};
void sim_set_graph_ids(int which);
int sim_graph_ids(void);

void sim_set_chip(const char* name, int major, int minor);
const char* sim_chip(void);
int sim_compute_capability(void);  // 80 for 8.0

// The next call of `function` (and, with `every`, all later ones) returns `code`. Works for the driver's and CUPTI's.
void sim_fail(const char* function, int code, int every);
// Counts a call of `function`, and says what it must return now: 0, or the code that sim_fail set.
int sim_take_failure(const char* function);
// How often `function` was called.
uint64_t sim_calls(const char* function);
// Names of all functions that asked sim_take_failure, in the order of their first call; null behind the last.
const char* sim_function(size_t index);

// A use of the interface that its documentation forbids. The test fails when there is one.
void sim_violation(const char* text);
const char* sim_violations(void);  // "" when there is none

// Whether this thread is inside a launch, that is, in a launch callback: nothing of CUDA or CUPTI's profilers may be
// called there.
int sim_inside_launch(void);

// What the profiler has subscribed, a CUpti_CallbackFunc; for calling it without the simulator's own cost. Set by the
// simulated CUPTI.
void* sim_callback(void);
void sim_set_callback(void* callback);

// Whether the context is the calling thread's current one; the device it is on.
int sim_is_current(CUcontext context);
int sim_device_of(CUcontext context);

// --- Time. Host and GPU have one clock, in ns since 1970. Each thread has come to a moment of it, and none is behind
// those that launch: what a thread of the collector's waits for does not hold the program up. In virtual time a
// thread goes on by what its calls take and what it waits for, and by nothing else, so that a test is exact and never
// waits. In real time what it computes is added, and it sleeps as long as it is ahead of the machine; what else the
// machine does is not counted. `real` says how often as long it takes: 1, or more on a machine with much to do; 0 is
// virtual. With costs, calls take as long as on the recorded GPU (sim_costs.h); without, nothing. At first: virtual,
// with costs.
void sim_set_time(int real, int costs);
int sim_costs(void);
uint64_t sim_now(void);              // where the calling thread has come to
void sim_spend(uint64_t ns);         // it is busy for so long
void sim_wait_until(uint64_t then);  // it waits
// What only computes goes on by the thread's own time, which may be behind the program's: a thread that slept for too
// long on this machine comes up. What it has computed itself since it was at `then` is not counted.
uint64_t sim_own_now(void);
void sim_compute_until(uint64_t then);
uint64_t sim_waited(void);  // for how long its launches have waited for room in the queue, together

// --- The GPU (sim_time.cc). What is launched is queued, 1,024 launches a context; a stream's work is done in order,
// and that of several at once.
// What is launched in the context from now on begins `ns` after all before it has ended.
void sim_barrier(CUcontext context, uint64_t ns);
// When all that was launched in the context, or on the stream, has ended.
uint64_t sim_idle_at(CUcontext context);
uint64_t sim_stream_idle_at(CUcontext context, CUstream stream);
// Tells each kernel that is on the device within [from, to). Told can be what ends after sim_keep_from's last word
// for the device, which is 0 when nothing needs to be kept.
void sim_keep_from(int device, uint64_t from);
void sim_kernels_between(int device, uint64_t from, uint64_t to,
                         void (*tell)(void* user, const SimKernel* kernel, SimSpan span), void* user);

// Launches of all threads wait until then (sim_costs.h, kHoldLaunches).
void sim_hold_until(uint64_t then);

// Whether PM sampling and the range profiler exclude each other on a device, as they do at first
// (docs/measurements/h200).
void sim_set_exclusive(int exclusive);
// Whether the counters stay zero, as where another process holds them; what patched code counts is right.
void sim_set_zeros(int zeros);
int sim_zeros(void);
// Somebody locks the clock; 0: nobody.
void sim_set_clock_khz(int khz);
int sim_clock_khz(void);
int sim_exclusive(void);

// From now on, what the real libraries answer is kept for this process and those that it forks, of which one may run
// at a time (sim_answers.h).
void sim_share_answers(void);
// The answer to a question, valid to the end of the process; null when it is not kept.
const void* sim_answer(const void* question, size_t size, size_t* answer_size);
void sim_keep_answer(const void* question, size_t size, const void* answer, size_t answer_size);
}

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIMULATOR_H_
