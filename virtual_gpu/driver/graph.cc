// Graphs: nodes, and the launch of all of them.
#include <cupti.h>

#include <algorithm>

#include "virtual_gpu/driver/state.h"

using namespace rfinject::virtual_gpu;

namespace {

// Runs are in the order in which nodes were added, which respects their dependencies: captured nodes' always does,
// and cuGraphAdd… wants those that a node depends on to be there. So dependencies are not kept.
CUgraphNode AddNode(CUgraph graph, CUgraphNodeType type) {
  const Lock lock(StateLock());
  graph->nodes.push_back(std::make_unique<CUgraphNode_st>());
  CUgraphNode node = graph->nodes.back().get();
  node->type = type;
  TellNode(RFINJECT_VIRTUAL_NODE_CREATED, graph, node);
  return node;
}

void SetKernel(CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS& parameters) {
  node->function = parameters.func != nullptr ? parameters.func : reinterpret_cast<CUfunction>(parameters.kern);
  const unsigned grid[] = {parameters.gridDimX, parameters.gridDimY, parameters.gridDimZ};
  const unsigned block[] = {parameters.blockDimX, parameters.blockDimY, parameters.blockDimZ};
  std::copy_n(grid, 3, node->grid);
  std::copy_n(block, 3, node->block);
  node->shared = parameters.sharedMemBytes;
}

// Gives an executable graph the nodes of its graph, and of the graphs in it.
void Fill(CUgraphExec exec, CUgraph graph) {
  exec->nodes.clear();
  exec->nodes.reserve(graph->nodes.size());
  for (const auto& node : graph->nodes) {
    exec->nodes.push_back(*node);
    TellNode(RFINJECT_VIRTUAL_NODE_CREATED, exec, &exec->nodes.back());
    TellNode(RFINJECT_VIRTUAL_NODE_CLONED, exec, &exec->nodes.back(), node.get());
  }
}

CUresult Instantiate(CUgraphExec* exec, CUgraph graph) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const Lock lock(StateLock());
  auto made = std::make_unique<CUgraphExec_st>();
  Fill(made.get(), graph);
  *exec = made.release();
  return CUDA_SUCCESS;
}

void Release(CUuserObject object, unsigned count) {
  object->references -= std::min(count, object->references);
  if (object->references != 0) return;
  object->destroy(object->object);
  delete object;
}

void Run(CUgraphExec exec, CUgraphNode_st& node, CUstream stream) {
  TellNode(RFINJECT_VIRTUAL_NODE_RUNS, exec, &node);
  switch (node.type) {
    case CU_GRAPH_NODE_TYPE_KERNEL:
      NoteLaunch(node.function, node.grid, node.block, node.shared, node.work, stream);
      break;
    case CU_GRAPH_NODE_TYPE_MEMCPY:
      OccupyUntold(stream, TransferNs(node.to, node.from, node.bytes));
      CopyBytes(node.to, node.from, node.bytes);
      break;
    case CU_GRAPH_NODE_TYPE_MEMSET:
      OccupyUntold(stream, FillNs(node.bytes * node.value_bytes));
      FillBytes(node.to, node.value, node.value_bytes, node.bytes);
      break;
    case CU_GRAPH_NODE_TYPE_HOST:
      node.host(node.host_data);
      break;
    case CU_GRAPH_NODE_TYPE_GRAPH:
      for (const auto& inner : node.child->nodes) Run(exec, *inner, stream);
      break;
    default:
      break;
  }
  if (node.cost != nullptr) NoteReplayed(*node.cost, stream);
}

}  // namespace

RFINJECT_CUDA cuGraphCreate(CUgraph* graph, unsigned) { return Set(graph, new CUgraph_st); }
RFINJECT_CUDA cuGraphDestroy(CUgraph graph) {
  if (graph == nullptr) return CUDA_ERROR_INVALID_VALUE;
  return Traced("cuGraphDestroy", cuGraphDestroy_params{graph}, nullptr, [&] {
    const Lock lock(StateLock());
    for (const auto& [object, count] : graph->objects) Release(object, count);
    for (const auto& node : graph->nodes) TellNode(RFINJECT_VIRTUAL_NODE_DESTROYED, graph, node.get());
    delete graph;
    return CUDA_SUCCESS;
  });
}
RFINJECT_CUDA cuGraphGetNodes(CUgraph graph, CUgraphNode* nodes, size_t* count) {
  const Lock lock(StateLock());
  if (nodes != nullptr) {
    *count = std::min(*count, graph->nodes.size());
    for (size_t i = 0; i < *count; ++i) nodes[i] = graph->nodes[i].get();
  } else {
    *count = graph->nodes.size();
  }
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type) { return Set(type, node->type); }
RFINJECT_CUDA cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t) {
  return Set(node, AddNode(graph, CU_GRAPH_NODE_TYPE_EMPTY));
}
RFINJECT_CUDA cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                   const CUDA_KERNEL_NODE_PARAMS* parameters) {
  *node = AddNode(graph, CU_GRAPH_NODE_TYPE_KERNEL);
  SetKernel(*node, *parameters);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t,
                                 const CUDA_HOST_NODE_PARAMS* parameters) {
  *node = AddNode(graph, CU_GRAPH_NODE_TYPE_HOST);
  (*node)->host = parameters->fn;
  (*node)->host_data = parameters->userData;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode*, size_t, CUgraph child) {
  *node = AddNode(graph, CU_GRAPH_NODE_TYPE_GRAPH);
  (*node)->child = child;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* parameters) {
  *parameters = CUDA_KERNEL_NODE_PARAMS{};
  parameters->func = node->function;
  parameters->gridDimX = node->grid[0];
  parameters->gridDimY = node->grid[1];
  parameters->gridDimZ = node->grid[2];
  parameters->blockDimX = node->block[0];
  parameters->blockDimY = node->block[1];
  parameters->blockDimZ = node->block[2];
  parameters->sharedMemBytes = node->shared;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph, unsigned long long flags) {
  return Traced("cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags_params{exec, graph, flags}, nullptr,
                [&] { return Instantiate(exec, graph); });
}
RFINJECT_CUDA cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph,
                                           CUDA_GRAPH_INSTANTIATE_PARAMS* parameters) {
  parameters->result_out = CUDA_GRAPH_INSTANTIATE_SUCCESS;
  parameters->hErrNode_out = nullptr;
  return Traced("cuGraphInstantiateWithParams", cuGraphInstantiateWithParams_params{exec, graph, parameters}, nullptr,
                [&] { return Instantiate(exec, graph); });
}
RFINJECT_CUDA cuGraphExecUpdate(CUgraphExec exec, CUgraph graph, CUgraphExecUpdateResultInfo* result) {
  return Traced("cuGraphExecUpdate_v2", cuGraphExecUpdate_v2_params{exec, graph, result}, nullptr, [&] {
    const Lock lock(StateLock());
    Fill(exec, graph);
    result->result = CU_GRAPH_EXEC_UPDATE_SUCCESS;
    return CUDA_SUCCESS;
  });
}
RFINJECT_CUDA cuGraphExecDestroy(CUgraphExec exec) {
  return Traced("cuGraphExecDestroy", cuGraphExecDestroy_params{exec}, nullptr, [&] {
    for (CUgraphNode_st& node : exec->nodes) TellNode(RFINJECT_VIRTUAL_NODE_DESTROYED, exec, &node);
    delete exec;
    return CUDA_SUCCESS;
  });
}
RFINJECT_CUDA cuGraphUpload(CUgraphExec, CUstream) { return CUDA_SUCCESS; }
namespace {

CUresult LaunchAll(CUgraphExec exec, CUstream handle) {
  CUstream stream = RealStream(handle);
  if (stream->recording != nullptr) {
    for (const CUgraphNode_st& node : exec->nodes) *Capture(stream, node.type) = node;  // with what was told of it
    ForgetCaptured();
    return CUDA_SUCCESS;
  }
  for (CUgraphNode_st& node : exec->nodes) Run(exec, node, stream);
  NoteReplay();
  return CUDA_SUCCESS;
}

}  // namespace

RFINJECT_CUDA cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  if (exec == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  return Traced("cuGraphLaunch", cuGraphLaunch_params{exec, stream}, nullptr,
                [&] { return LaunchAll(exec, stream); });
}

RFINJECT_CUDA cuUserObjectCreate(CUuserObject* object, void* data, CUhostFn destroy, unsigned references, unsigned) {
  return Set(object, new CUuserObject_st{data, destroy, references});
}
RFINJECT_CUDA cuUserObjectRetain(CUuserObject object, unsigned count) {
  const Lock lock(StateLock());
  object->references += count;
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuUserObjectRelease(CUuserObject object, unsigned count) {
  const Lock lock(StateLock());
  Release(object, count);
  return CUDA_SUCCESS;
}
RFINJECT_CUDA cuGraphRetainUserObject(CUgraph graph, CUuserObject object, unsigned count, unsigned flags) {
  const Lock lock(StateLock());
  if ((flags & CU_GRAPH_USER_OBJECT_MOVE) == 0) object->references += count;
  graph->objects.emplace_back(object, count);
  return CUDA_SUCCESS;
}
