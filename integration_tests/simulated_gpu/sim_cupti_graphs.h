// File: sim_cupti_graphs.h
//
// The simulated CUPTI's numbers of graphs' nodes, and what it records of a graph's launch.
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_GRAPHS_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_GRAPHS_H_

#include <cupti.h>

#include <vector>

#include "integration_tests/simulated_gpu/simulator.h"

namespace sim {

// Whether the events of graphs' nodes can be had: not from a CUPTI that does not know them.
bool KnowsResource(CUpti_CallbackId cbid);
// Gives a node that was created or cloned its number, and says which callback tells of it.
CUpti_CallbackId NumberNode(const SimNodeEvent& event, CUpti_GraphData* data);
// The number of a node; 0 where there are none.
uint64_t NumberOf(const void* node);
// What a launch runs that is none of a graph.
SimNode NodeOf(const SimLaunch& launch);
// Writes the activity record of what a launch, or a node of the graph that it launches, ran at that time. All records
// take the room of the longest, CUpti_ActivityKernel10; a reader must use cuptiActivityGetNextRecord anyway.
void WriteRecord(const SimLaunch& launch, const SimNode& node, SimSpan span, uint8_t* record);
// A graph's nodes as the activity records have them, in that order.
std::vector<SimNode> Recorded(const SimGraph& graph);

}  // namespace sim

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_CUPTI_GRAPHS_H_
