// File: memory_report.h
//
// Tells the recorder of the highest peak of device memory, and the user which layers had it when it was full.
#ifndef RFINJECT_COLLECTOR_MEMORY_REPORT_H_
#define RFINJECT_COLLECTOR_MEMORY_REPORT_H_

#include "collector/memory_peak.h"
#include "collector/recorder.h"

namespace rfinject {

// Takes the peak from `memory` if it is higher than the one taken last. Any thread may call this.
void ReportMemory(MemoryWatch* memory, Recorder& recorder) noexcept;

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_MEMORY_REPORT_H_
