// File: windows.h
//
// Divides a recording into windows of whole steps, so that not all of its events have to be unpacked at once. An
// operator, what it calls and what these calls launch are in one window. Annotations and modules, which launch
// nothing themselves, are in each window that they reach into.
//
//   const TorchWindows windows(recording, outline, 1 << 18);
//   for (size_t i = 0; i < windows.size(); ++i) Use(windows.Unpack(i, recording));
#ifndef RFINJECT_CLI_IMPORT_TORCH_WINDOWS_H_
#define RFINJECT_CLI_IMPORT_TORCH_WINDOWS_H_

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cli/import/torch/outline.h"
#include "cli/import/torch/recording.h"

namespace rfinject::cli {

inline constexpr uint64_t kOneWindow = UINT64_MAX;

class TorchWindows {
 public:
  // A window has at least `events`, if so many are left, and one step. Where no step begins while no operator runs,
  // there is one.
  TorchWindows(const TorchRecording& recording, const RecordingOutline& outline, uint64_t events);

  size_t size() const { return cuts_.size() + 1; }
  // Each call and each activity is in one window.
  TorchWindow Unpack(size_t window, const TorchRecording& recording) const;

 private:
  using Window = uint16_t;
  static constexpr size_t kMostWindows = UINT16_MAX;

  size_t WindowAt(int64_t time) const;
  void FindCuts(const TorchRecording& recording, const RecordingOutline& outline, uint64_t events);
  void FindWindowsOfActivities(const TorchRecording& recording);

  std::vector<int64_t> cuts_;                         // where the next window begins; ascending
  std::vector<Window> of_activities_;                 // one each; empty where there is one window
  std::vector<std::pair<Window, Window>> of_blocks_;  // of activities: the first and last window in it
};

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_IMPORT_TORCH_WINDOWS_H_
