// File: real_cupti.h
//
// The toolkit's CUPTI, for tests: its host functions need neither a GPU nor a driver. CUPTI 13.2's do need one (see
// docs/inside/HARDWARE_SOURCE.md), so the test takes a version that is known to answer without.
#ifndef RFINJECT_COLLECTOR_CUPTI_REAL_CUPTI_H_
#define RFINJECT_COLLECTOR_CUPTI_REAL_CUPTI_H_

#include <unistd.h>

#include <string>

#include "collector/cupti/api.h"

namespace rfinject::cupti {

// The folder of the toolkit's libcupti.so.13: RFINJECT_TEST_CUPTI_DIR (set by CMake to what lies beside the headers),
// empty when there is none.
inline std::string RealCuptiFolder() {
  for (const char* folder : {RFINJECT_TEST_CUPTI_DIR, RFINJECT_TEST_CUPTI_DIR "/../lib"}) {
    if (access((std::string(folder) + "/libcupti.so.13").c_str(), R_OK) == 0) return folder;
  }
  return {};
}

// The table of the toolkit's CUPTI, loaded once; nullptr when there is none.
inline const Api* RealCupti() {
  static const Api* api = []() -> const Api* {
    LoadOptions options;
    options.driver_ready = true;  // 13.0 answers cuptiGetVersion without one
    options.cuda_major = 13;
    options.folders = {RealCuptiFolder()};
    if (options.folders[0].empty()) return nullptr;
    LoadResult result = LoadApi(options);
    return result.status == LoadStatus::kOk ? new Api(result.api) : nullptr;
  }();
  return api;
}

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_REAL_CUPTI_H_
