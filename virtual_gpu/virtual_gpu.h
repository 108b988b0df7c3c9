// File: virtual_gpu.h
//
// The interface of the virtual GPU: what librfinject.so, the runtime and the stand-ins ask of the driver beside
// CUDA's public functions. All of it is C, because the callers find it by dlsym in a library that they do not link.
//
//   rfinject_virtual_board board = {"NVIDIA A100-SXM4-40GB", ...};
//   auto start = (decltype(&rfinject_virtual_gpu_start))dlsym(driver, "rfinject_virtual_gpu_start");
//   start(&board);
//
// The order of the fields is fixed; what is new comes last.
#ifndef RFINJECT_VIRTUAL_GPU_VIRTUAL_GPU_H_
#define RFINJECT_VIRTUAL_GPU_VIRTUAL_GPU_H_

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

// What a program can ask about the board that the virtual GPU pretends to be. All devices are alike.
struct rfinject_virtual_board {
  const char* name;  // as cuDeviceGetName says it
  int devices;
  int cc_major, cc_minor;
  int sm_count;
  uint64_t memory_bytes;  // as torch's total_memory says it
  uint64_t l2_bytes;
  double sm_hz, dram_bytes_per_s, pcie_bytes_per_s;
  int quiet;  // 1: no line about what is missing
  // 1: the program's values are computed (--values all): what is read is right unless it was said that it is not, and
  // memory that the host does not have is refused.
  int computes;
};

// Starts the virtual GPU. Must be called once, before any other function. The strings are copied.
void rfinject_virtual_gpu_start(const struct rfinject_virtual_board* board);

// One kernel that was launched; graph nodes count when the graph is launched. `name` lives as long as the process.
struct rfinject_virtual_launch {
  const char* name;  // as the ELF file spells it (mangled), or the stand-in's
  unsigned grid[3], block[3], shared_bytes;
  int device;
  uint64_t stream;  // CUDA's id of it
  // The work that the kernel stands for, as the stand-in that launched it says; 0: not known.
  double flop, bytes;
};

// Tells the work that the next kernel which this thread launches stands for: floating-point operations, and the bytes
// that it has to read and write at least.
void rfinject_virtual_gpu_describe(double flop, double bytes);

// One call of a driver's function that launches, copies, fills, allocates, frees, captures, or makes, updates or
// destroys a graph.
struct rfinject_virtual_call {
  const char* function;    // the name that it is exported by: "cuMemAlloc_v2"
  const void* parameters;  // its arguments, in the struct that CUPTI's generated_cuda_meta.h has for it
  const char* kernel;      // what a launch launches, as the ELF file spells it; null: no launch
  void* context;           // the current CUcontext
};

// What happens to a node of a graph, inside of a call. `type` is a CUgraphNodeType. A node that is cloned was created
// just before. RUNS comes before the node's kernel is observed, when its graph is launched.
enum rfinject_virtual_node_event {
  RFINJECT_VIRTUAL_NODE_CREATED,
  RFINJECT_VIRTUAL_NODE_CLONED,
  RFINJECT_VIRTUAL_NODE_RUNS,
  RFINJECT_VIRTUAL_NODE_DESTROYED
};
struct rfinject_virtual_node {
  const void* graph;     // CUgraph; the CUgraphExec, where the node is of one
  const void* node;      // CUgraphNode
  const void* original;  // the node that it is cloned from; null: none
  int type;
};

// While `hidden` is not 0, nobody is told of what this thread calls: the calls then do what NCCL's kernels would do.
void rfinject_virtual_gpu_hide(int hidden);

// Returns how many kernels this process has launched.
uint64_t rfinject_virtual_gpu_launches(void);

// The kernels that this thread launched since the last call take `nanoseconds` together, as the estimator says. The
// last stream that this thread launched to becomes busy for what is missing to that.
void rfinject_virtual_gpu_tell(uint64_t nanoseconds);

// Whether any stream of the process is being captured into a graph.
int rfinject_virtual_gpu_capturing(void);

// Whether this thread has captured something into a graph whose time was not told yet: 1 or 0.
int rfinject_virtual_gpu_captured(void);

// Tells the time of what this thread has captured last, as rfinject_virtual_gpu_tell does: it takes so long whenever
// the graph is launched, and the observers' `replay` is then told `what`.
void rfinject_virtual_gpu_tell_captured(uint64_t nanoseconds, uint64_t what);

// A launch of a kernel that was compiled while the program runs and that the program loaded itself (Triton's),
// launched or captured. `name` lives as long as the process.
struct rfinject_virtual_loaded_launch {
  const char* name;
  unsigned grid[3], block[3], shared_bytes;
  int device;
  const uint64_t* words;  // what its parameters of eight bytes hold: addresses among them
  size_t word_count;
};

// A collective of NCCL's, or a send or receive, after the kernel that stands for it was launched or captured.
struct rfinject_virtual_collective {
  const char* kind;  // "all_reduce", "all_gather", "reduce_scatter", "broadcast", "reduce", "all_to_all", …
  int ranks;
  // Of the arrays that it is done on, as nccl-tests counts (doc/PERFORMANCE.md): the larger of a rank's two buffers.
  uint64_t bytes;
  uint64_t send_bytes, receive_bytes;  // of this rank's buffers
};

// What PyTorch's caching allocator has done: given out `bytes` at `address`, or taken them back (negative), or asked
// for as many in vain. The totals are the allocator's own for the device after that, in bytes.
struct rfinject_virtual_memory {
  uint64_t address;
  int64_t bytes;
  uint64_t allocated, reserved;
  int device;
  int refused;  // 1: the device does not have that much, and the program is told so; there is no address
};

// What others are told of the program's use of the GPU, on the thread that does it. A null member is not wanted. None
// of them may call CUDA or allocate device memory.
//
// A new call of a driver's function that is told of is a Traced (driver/state.h) around its body, and its parameters
// are CUPTI's. Any other event is a member here, and a Tell (tell.h) where it happens.
struct rfinject_virtual_observer {
  // A kernel was launched, and not captured.
  void (*launch)(const struct rfinject_virtual_launch* launch);
  // A graph was launched: called with each `what` that rfinject_virtual_gpu_tell_captured was told, in the order of
  // the capture, and with 0 at the end.
  void (*replay)(uint64_t what);
  void (*loaded_launch)(const struct rfinject_virtual_loaded_launch* launch);
  void (*collective)(const struct rfinject_virtual_collective* collective);
  void (*memory)(const struct rfinject_virtual_memory* memory);
  // A call of the driver is about to be done, and was done, with its CUresult; its kernels are launched in between.
  // This is what CUPTI's callback API tells of a real driver.
  void (*enter)(const struct rfinject_virtual_call* call);
  void (*exit)(const struct rfinject_virtual_call* call, int result);
  void (*node)(int event, const struct rfinject_virtual_node* node);  // a rfinject_virtual_node_event
  // Writes where in the program this thread is, as "train.py:12", with a 0 at its end. Returns 0 where it is not
  // known.
  int (*place)(char* text, size_t size);
};

// From now on `observer` is told, beside those that are told already; it must live as long as the process. Does
// nothing if it is told already. At most 4 are told: returns 0, or 1 if this one is not.
int rfinject_virtual_gpu_observe(const struct rfinject_virtual_observer* observer);

// Returns observer number `index`, counted from 0, or null behind the last. For tell.h.
const struct rfinject_virtual_observer* rfinject_virtual_gpu_observer(int index);

// How far the board's clock is ahead of the host's, because it jumps where a program would have waited for the board;
// and how much work all its streams together were given. Both are in nanoseconds, since the process began.
struct rfinject_virtual_clock {
  uint64_t skipped_ns, occupied_ns;
};
void rfinject_virtual_gpu_clock(struct rfinject_virtual_clock* clock);

// Returns a CUfunction that stands for a library's kernel of that name. There is no code behind it; it is launched
// like any other.
void* rfinject_virtual_gpu_named_kernel(const char* name);

// The lock that guards the driver's state, for what the libraries beside it keep. It is recursive, and a child of
// fork finds it free.
void rfinject_virtual_gpu_lock(void);
void rfinject_virtual_gpu_unlock(void);

// Whether the program uses the GPU, and has not only asked whether there is one: 1 from the first context on.
int rfinject_virtual_gpu_in_use(void);

// Finds the next part of a device's memory, within `bytes` from `address` on, that the host may have written to; all
// other bytes there are zeros. Returns its address and sets `length`; returns 0 when there is no more.
uint64_t rfinject_virtual_gpu_written(uint64_t address, size_t bytes, size_t* length);

// Makes `bytes` of a device's memory zeros, which costs no memory.
void rfinject_virtual_gpu_clear(uint64_t address, size_t bytes);

// Where it is kept how many kernels this thread has launched, or captured, without those that are carried out. It is
// there as long as the thread lives.
const uint64_t* rfinject_virtual_gpu_thread_launches(void);

// What the kernel that this thread has launched last would do has been done.
void rfinject_virtual_gpu_carried_out(void);

// Whether the program's values are computed (rfinject_virtual_board): 1 or 0.
int rfinject_virtual_gpu_computes(void);

// Whether all of these bytes hold what a GPU would have there: the host copied it, or it was computed.
int rfinject_virtual_gpu_known(uint64_t address, size_t bytes);

// The host has written there what a kernel that this thread launched would have computed. `known` is 0 where that was
// computed from what is not known.
void rfinject_virtual_gpu_computed(uint64_t address, size_t bytes, int known);

// A kernel that was not computed would have changed these bytes: they are not known any more.
void rfinject_virtual_gpu_changed(uint64_t address, size_t bytes);

// Until the next call, what this thread copies to the host, in 1, 4 or 8 bytes, from memory that is not known is
// `*value`: an operator reads there how much its kernels have found. Null: no longer.
void rfinject_virtual_gpu_answer(const int64_t* value);

// Whether there is such an answer: 1, and it is written to `value`. For a stand-in that is asked how much it has
// found.
int rfinject_virtual_gpu_answered(int64_t* value);

// Says once that `name` was called and is not there. Always returns `status`.
int rfinject_virtual_gpu_missing(const char* name, int status);

// Writes a line on standard error, once for each text, unless the user wants none.
void rfinject_virtual_gpu_say(const char* text);

#ifdef __cplusplus
}
#endif

#endif  // RFINJECT_VIRTUAL_GPU_VIRTUAL_GPU_H_
