// File: graph_breaks.h
//
// What a report says of the places where torch.compile ended a graph.
#ifndef RFINJECT_CLI_WORDS_GRAPH_BREAKS_H_
#define RFINJECT_CLI_WORDS_GRAPH_BREAKS_H_

#include <string>
#include <vector>

#include "cli/report/report.h"

namespace rfinject::cli {

// Returns a sentence for each of the first few places, those that most bytes cross first, and one for the rest:
// "net.py:12 in Net.forward, 3.2 MB cross it: Tensor.item". None where no graph was ended.
std::vector<std::string> GraphBreakTexts(const Report& report);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_WORDS_GRAPH_BREAKS_H_
