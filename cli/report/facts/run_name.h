// File: run_name.h
//
// Makes the name that tells a run from others.
#ifndef RFINJECT_CLI_REPORT_FACTS_RUN_NAME_H_
#define RFINJECT_CLI_REPORT_FACTS_RUN_NAME_H_

#include <string>
#include <vector>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// The network as its users call it. A class name alone is often shared ("ResNet" is ResNet-18 and ResNet-50), so what
// the program was told counts first: the word after -a, --arch, --model, --model-name or --model_name ("resnet18").
// Without one the class names of the roots: "Generator + Discriminator"; "no model" where there are none.
std::string ModelName(const RunKey& key, const std::vector<ProcessInfo>& processes);

// Whether two runs are of one network: equal classes and parameters, or equal names, without regard to case, dashes
// and the like. Imported runs have a name and no parameters.
bool SameNetwork(const RunKey& a, const std::vector<ProcessInfo>& a_processes, const RunKey& b,
                 const std::vector<ProcessInfo>& b_processes);

// What the run ran on: the GPU's name, "unknown GPU" without one.
std::string GpuTitle(const RunKey& key);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_FACTS_RUN_NAME_H_
