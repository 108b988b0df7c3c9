// File: run_views.h
//
// The views of runs that are made of Profiles without a Report: memory, native stacks, waits and ranks. Each makes
// one document of all runs of the profiles, and the sections of one run for a page that holds more.
#ifndef RFINJECT_CLI_VIEW_RUN_VIEWS_H_
#define RFINJECT_CLI_VIEW_RUN_VIEWS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "cli/report/facts/memory.h"
#include "cli/report/facts/waits.h"
#include "cli/report/rows/stacks.h"
#include "cli/report/timeline.h"
#include "cli/view/document.h"

namespace rfinject::cli {

// What lay in the device's memory at the peak. Schema rfinject.memory/1.
Document MemoryDocument(std::vector<MemoryTable> tables);
// `table` must outlive the sections.
std::vector<Section> MemorySections(const MemoryTable& table);

// A step as the GPU saw it. Schema rfinject.timeline/1.
Document TimelineDocument(std::vector<Timeline> timelines);
// `timeline` must outlive the section.
Section TimelineSection(const Timeline& timeline);

// What ran in no layer, by native stack. Schema rfinject.stacks/1.
struct StackTable {
  std::string title;   // of the run
  uint64_t steps = 0;  // 0: not known
  std::vector<StackRow> rows;
};
Document StackDocument(std::vector<StackTable> tables);
// `rows` must outlive the section; `steps` 0: not known.
Section StackSection(const std::vector<StackRow>& rows, uint64_t steps);

// What a step waits for, by the clock, and the same for each rank. Both have all of schema rfinject.waits/1.
Document WaitDocument(std::vector<WaitTable> tables);
Document RankDocument(std::vector<WaitTable> tables);
// `table` must outlive the sections.
std::vector<Section> WaitSections(const WaitTable& table);
Section RankSection(const WaitTable& table);

// How long a step takes; some step must have a time.
std::string StepText(const WaitTable& table);
// How ranks differ, a sentence each; a single rank has none.
std::vector<std::string> RankTexts(const WaitTable& table);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_VIEW_RUN_VIEWS_H_
