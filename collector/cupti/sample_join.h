// File: sample_join.h
//
// Gives what PM sampling counted to the kernels that ran meanwhile. A sample says what the whole GPU moved in a few
// microseconds, and a kernel's record says when it ran; on one clock, the kernel moved what the samples within its
// interval say. Nothing is stopped, flushed or serialized for it. Everything here is pure: it calls nothing of CUPTI
// and reads no clock.
//
//   const SampleWindow window = …;               // decoded by CUPTI, without the first sample
//   const std::vector<TimedKernel> kernels = …;  // activity records of the same time, sorted by start
//   const Joined joined = JoinSamples(window, kernels, {.fitted_metrics = 2, .first_sample_ns = …});
//   if (joined.fits()) … joined.value(kernel, metric) …
#ifndef RFINJECT_COLLECTOR_CUPTI_SAMPLE_JOIN_H_
#define RFINJECT_COLLECTOR_CUPTI_SAMPLE_JOIN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

namespace rfinject::cupti {

// Samples in order of time. They need not follow each other without a gap, but none overlaps the next.
struct SampleWindow {
  size_t metrics = 0;
  std::vector<uint64_t> begin, end;  // ticks of the sampling clock
  std::vector<double> values;        // a sample's values one after the other

  size_t size() const { return begin.size(); }
};

struct TimedKernel {
  uint32_t group = 0;  // kernels of one group do the same work: one launch key, or one name and grid
  uint64_t start_ns = 0;
  uint64_t end_ns = 0;
};

struct JoinOptions {
  // The first so many metrics are added up; their rate over time is what the clocks are aligned by.
  size_t fitted_metrics = 1;
  // What is thought of the clocks. CUPTI has one clock for both, in ns, unless the program gave it another
  // (cuptiActivityRegisterTimestampCallback); then both have that one.
  double ticks_per_ns = 1;
  double ticks_tolerance = 0;         // relative; 0 where `ticks_per_ns` is known
  uint64_t first_sample_ns = 0;       // where the first sample begins on the kernels' clock
  double offset_tolerance_ns = 50e3;  // how far off that may be
};

enum class JoinVerdict : uint8_t {
  kFits,        // the clocks were aligned by what the kernels move
  kAsExpected,  // nothing tells: the rate hardly varies, or kernels are shorter than samples; the expected offset
                // stays
  kTooFew,      // there are not enough samples in the time of the kernels
  kDoesNotFit,  // these kernels do not explain these samples, whatever the offset
};

struct Joined {
  struct Kernel {
    bool whole = false;  // it ran wholly inside the sampled time
    // Its values are its own: nothing else ran in nine tenths of its time, and a sample lies wholly inside it.
    // Otherwise they are its part of samples in which others ran as well, by time, and OverlapSolver tells them
    // apart.
    bool alone = false;
    uint32_t samples = 0;  // that lie wholly inside it
  };
  // A sample in which kernels ran that are not alone.
  struct Shared {
    uint32_t first = 0, count = 0;  // of `parts`
  };
  struct Part {
    uint32_t kernel = 0;
    double share = 0;  // of the kernel's time that lies in the sample
  };

  JoinVerdict verdict = JoinVerdict::kTooFew;
  double offset_ns = 0;  // to be added to JoinOptions::first_sample_ns
  double ticks_per_ns = 1;
  // The variance of the rate within groups of kernels, as a share of the variance of all samples.
  double unexplained = 1;
  // Of what the fitted metrics counted from the first kernel to the last; a sample counts by the time in which a
  // kernel ran.
  double share_in_kernels = 0;
  size_t metrics = 0;
  std::vector<Kernel> kernels;
  std::vector<double> values;  // a kernel's values one after the other
  std::vector<Shared> shared;
  std::vector<Part> parts;
  std::vector<double> rest;  // of each shared sample, one metric after the other: without the kernels that are alone

  bool fits() const { return verdict == JoinVerdict::kFits || verdict == JoinVerdict::kAsExpected; }
  double value(size_t kernel, size_t metric) const { return values[kernel * metrics + metric]; }
};

// Aligns the clocks (clock_fit.h) and gives each sample to the kernels in it. `kernels` must be sorted by start.
//
// A sample in which one kernel ends and another begins is expected to hold what the nearest samples inside both say;
// what it holds more or less goes to each by the square of what was expected of it, which is least squares for errors
// in proportion to rates. So the values of all kernels together are what was sampled while a kernel ran.
Joined JoinSamples(const SampleWindow& window, const std::vector<TimedKernel>& kernels, const JoinOptions& options);

}  // namespace rfinject::cupti

#endif  // RFINJECT_COLLECTOR_CUPTI_SAMPLE_JOIN_H_
