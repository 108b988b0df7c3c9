// File: sim_time.h
//
// Between the simulated GPU's clock and queue (sim_time.cc) and its driver's calls (sim_world.cc).
#ifndef RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_TIME_H_
#define RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_TIME_H_

#include <functional>

#include "integration_tests/simulated_gpu/simulator.h"

namespace sim {

// Queues a launch: waits for room, asks `begin` what measuring adds, and calls `run` with when its work will be on
// the GPU. Of a kernel that waits for another, `run` is called when that one has been launched.
void Launch(const SimLaunch& launch, const std::function<SimSlow()>& begin,
            const std::function<void(const SimLaunch&, const SimSpan*)>& run);

}  // namespace sim

#endif  // RFINJECT_INTEGRATION_TESTS_SIMULATED_GPU_SIM_TIME_H_
