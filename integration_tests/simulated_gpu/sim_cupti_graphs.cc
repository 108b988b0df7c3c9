// File: sim_cupti_graphs.cc
//
// As cupti_callbacks.h and NVIDIA's sample cuda_graphs_trace have it: every node has a number of its own, also one
// that is cloned into an executable graph, of which both its creation and its cloning are told; records have the
// number of the node that ran, which is the clone's.
#include "integration_tests/simulated_gpu/sim_cupti_graphs.h"

#include <cupti_activity.h>

#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "integration_tests/simulated_gpu/sim_checks.h"

namespace {

struct Numbers {
  std::mutex mutex;
  std::map<const void*, uint64_t> of;
  uint64_t last = 0x100000000;  // numbers have 64 bits
};
Numbers& TheNumbers() {
  static auto* const numbers = new Numbers;
  return *numbers;
}

template <typename Handle>
Handle As(const void* pointer) {
  return static_cast<Handle>(const_cast<void*>(pointer));
}

}  // namespace

bool sim::KnowsResource(CUpti_CallbackId cbid) {
  return sim_graph_ids() == SIM_GRAPH_IDS || cbid < CUPTI_CBID_RESOURCE_GRAPH_CREATED;
}

CUpti_CallbackId sim::NumberNode(const SimNodeEvent& event, CUpti_GraphData* data) {
  Numbers& numbers = TheNumbers();
  if (event.cloned == 0) {
    // A handle may have been that of a node that is gone.
    std::lock_guard lock(numbers.mutex);
    numbers.of[event.node] = ++numbers.last;
  }
  *data = {};
  data->graph = As<CUgraph>(event.graph);
  data->node = As<CUgraphNode>(event.node);
  data->originalNode = As<CUgraphNode>(event.original);
  data->nodeType = static_cast<CUgraphNodeType>(event.type);
  return event.cloned != 0 ? CUPTI_CBID_RESOURCE_GRAPHNODE_CLONED : CUPTI_CBID_RESOURCE_GRAPHNODE_CREATED;
}

uint64_t sim::NumberOf(const void* node) {
  if (sim_graph_ids() != SIM_GRAPH_IDS) return 0;
  Numbers& numbers = TheNumbers();
  std::lock_guard lock(numbers.mutex);
  const auto at = numbers.of.find(node);
  return at != numbers.of.end() ? at->second : 0;
}

std::vector<SimNode> sim::Recorded(const SimGraph& graph) {
  std::vector<SimNode> nodes(graph.nodes, graph.nodes + graph.count);
  for (size_t i = 1; i < nodes.size() && sim_graph_ids() == SIM_GRAPH_NO_IDS_SWAPPED; ++i) {
    if (nodes[i].kernel == nullptr || nodes[i - 1].kernel == nullptr ||
        nodes[i].kernel->name == nodes[i - 1].kernel->name)
      continue;
    std::swap(nodes[i], nodes[i - 1]);
    break;
  }
  if (sim_graph_ids() == SIM_GRAPH_NO_IDS_GRIDS && !nodes.empty()) ++nodes.back().grid[0];
  return nodes;
}

SimNode sim::NodeOf(const SimLaunch& launch) {
  SimNode node = {launch.kernel, launch.transfer_ns, nullptr, {}, {}};
  memcpy(node.grid, launch.grid, sizeof node.grid);
  memcpy(node.block, launch.block, sizeof node.block);
  return node;
}

void sim::WriteRecord(const SimLaunch& launch, const SimNode& node, SimSpan span, uint8_t* to) {
  if (node.transfer_ns != 0) {
    CUpti_ActivityMemcpy6 record = {};
    record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
    record.start = span.start;
    record.end = span.end;
    record.correlationId = launch.correlation_id;
    record.graphNodeId = NumberOf(node.handle);
    memcpy(to, &record, sizeof record);
    return;
  }
  CUpti_ActivityKernel10 record = {};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.start = span.start;
  record.end = span.end;
  record.correlationId = launch.correlation_id;
  record.name = node.kernel->name;
  record.deviceId = static_cast<uint32_t>(sim_device_of(launch.context));
  record.streamId = launch.stream == nullptr ? 7 : static_cast<uint32_t>(reinterpret_cast<uintptr_t>(launch.stream));
  memcpy(&record.gridX, node.grid, sizeof node.grid);
  memcpy(&record.blockX, node.block, sizeof node.block);
  record.graphNodeId = NumberOf(node.handle);
  memcpy(to, &record, sizeof record);
}

extern "C" CUptiResult CUPTIAPI cuptiGetGraphNodeId(CUgraphNode node, uint64_t* id) {
  SIM_ENTER("cuptiGetGraphNodeId");
  SIM_CHECK("cuptiGetGraphNodeId", node != nullptr && id != nullptr, CUPTI_ERROR_INVALID_PARAMETER);
  if (sim_graph_ids() != SIM_GRAPH_IDS) return CUPTI_ERROR_NOT_SUPPORTED;
  *id = sim::NumberOf(node);
  if (*id == 0) sim::Violation("cuptiGetGraphNodeId", "a node that nobody created");
  return CUPTI_SUCCESS;
}
