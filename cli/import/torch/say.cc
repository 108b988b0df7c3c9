#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "cli/import/torch/stages.h"

namespace rfinject::cli {
namespace {

using enum trace::Severity;

std::string NoTimes(const TorchRecording& recording) {
  return absl::StrCat(recording.without_time,
                      recording.without_time == 1 ? " event of the GPU has" : " events of the GPU have",
                      " no usable time; the first ends at byte ", recording.without_time_at);
}

class Explainer {
 public:
  Explainer(const TorchRecording& recording, const CallTree& tree, const CostedTimes& times,
            const JoinedCalls* joined)
      : recording_(recording), tree_(tree), times_(times), joined_(joined) {}

  std::vector<trace::Diagnostic> Explain() {
    if (recording_.all_activities.size() == 0) {
      Say(kInfo, "counters-only",
          "counters are those of the profiler, of kernels that ran one by one: there are no times");
    } else {
      Say(kInfo, "flop-from-shapes", std::string(kWorkOfShapes));
    }
    if (!recording_.cut.empty()) {
      Say(kWarning, "recording-cut", absl::StrCat(recording_.cut, "; what came before is here"));
    }
    if (const std::string lacking = times_.lacking.Text(times_.total_ns); !lacking.empty()) {
      const bool no_shapes = recording_.operands.size() <= 1;
      Say(no_shapes ? kWarning : kInfo, "work-not-known", lacking,
          no_shapes ? "torch.profiler.profile(record_shapes=True)" : "");
    }
    ExplainDamage();
    ExplainRest();
    ExplainJoins();
    ExplainNames();
    ExplainStreams();
    if (times_.outside_ns > 0) {
      Say(kInfo, "outside-steps",
          absl::StrCat(TimeText(times_.outside_ns), " of the GPU's time was launched outside of the ",
                       tree_.steps().size(), " steps, and is part of the sums"));
    }
    ExplainSteps();
    if (tree_.steps().empty()) {
      const std::string taken = tree_.step_count() > 1 ? "each pass of the trace of names" : "all of it";
      Say(kWarning, "no-steps",
          "nothing says what a step is (the profiler's step()): " + taken + " is taken for one");
    }
    if (recording_.without_time > 0) Say(kWarning, "no-times", NoTimes(recording_));
    return std::move(said_);
  }

 private:
  void Say(trace::Severity severity, const char* id, std::string text, const char* remedy = "") {
    said_.push_back({.severity = severity, .id = id, .text = std::move(text), .remedy = remedy});
  }

  // What of the file cannot be, was lost, or was not used.
  void ExplainDamage() {
    const TorchDamage& damage = recording_.damage;
    if (damage.events > 0) {
      Say(kWarning, "events-unreadable",
          absl::StrCat(damage.events, damage.events == 1 ? " event is" : " events are",
                       " no JSON and left out; the first begins at byte ", damage.first_at));
    }
    if (damage.overlapping.count > 0) Say(kWarning, "kernels-overlap", damage.overlapping.Text());
    if (damage.launches_without_kernel > 0) {
      Say(kWarning, "kernels-not-recorded",
          absl::StrCat("of ", damage.launches, damage.launches == 1 ? " launch " : " launches ",
                       damage.launches_without_kernel, damage.launches_without_kernel == 1 ? " has" : " have",
                       " no kernel in the file: sums lack them, and means are of the kernels that are there"));
    }
    if (damage.clock_went_back > 0) {
      Say(kWarning, "clock-jumps",
          absl::StrCat("the host's clock went back ", damage.clock_went_back,
                       damage.clock_went_back == 1 ? " time" : " times", ", by up to ",
                       TimeText(static_cast<double>(damage.clock_back_ns)),
                       ": times across such a place cannot be trusted"));
    }
    if (times_.early > 0) {
      Say(kWarning, "clocks-apart",
          absl::StrCat(times_.early, times_.early == 1 ? " kernel or copy begins" : " kernels and copies begin",
                       " before the call that launches ", times_.early == 1 ? "it" : "them", ", by up to ",
                       TimeText(static_cast<double>(times_.early_ns)),
                       ": the clocks of host and GPU are apart, so gaps and waits are not what they seem"));
    }
    std::vector<std::string> counters;
    for (const auto& [name, samples] : recording_.samples) {
      counters.push_back(
          absl::StrFormat("%s %.4g (%d)", name, samples.sum / static_cast<double>(samples.count), samples.count));
    }
    constexpr size_t kNamed = 4;
    const size_t more = counters.size() - std::min(kNamed, counters.size());
    counters.resize(counters.size() - more);
    if (!counters.empty()) {
      Say(kInfo, "counters-over-time",
          absl::StrCat("samples of the whole GPU's counters, whose mean and number are ",
                       absl::StrJoin(counters, ", "), more > 0 ? ", …" : "", ", are of no kernel, and in no row"));
    }
    std::set<uint32_t> gpus;
    for (const TorchLaunch& launch : recording_.launches) gpus.insert(launch.device);
    if (gpus.size() > 1) {
      Say(kInfo, "several-gpus", absl::StrCat("the file has ", gpus.size(), " GPUs, whose times are added up"));
    }
    if (times_.given_ns > 0) {
      Say(kInfo, "work-of-the-compiler",
          absl::StrCat("FLOP and bytes of ", TimeText(times_.given_ns),
                       " in kernels that torch.compile made are Inductor's own (kernel_flop, kernel_num_gb)"));
    }
  }

  // What has no FLOP and no bytes, whatever shapes are recorded.
  void ExplainRest() {
    std::vector<std::string> parts;
    for (const auto& [ns, what] :
         {std::pair(times_.moved_ns, "copies and memory sets"), std::pair(times_.communicated_ns, "communication"),
          std::pair(times_.without_operator_ns, "kernels without an operator")}) {
      if (ns > 0) parts.push_back(absl::StrCat(TimeText(ns), " in ", what));
    }
    if (parts.empty()) return;
    Say(kInfo, "no-work",
        absl::StrCat("there are no FLOP and no bytes for ", absl::StrJoin(parts, ", "),
                     ", which no operator's rule describes"));
  }

  // What did not find where it belongs, or in two ways.
  void ExplainJoins() {
    if (tree_.without_launch > 0) {
      Say(kInfo, "launch-not-recorded",
          absl::StrCat("of ", tree_.without_launch, " of ", recording_.all_activities.size(),
                       " kernels and copies the launch is not in the file"));
    }
    if (tree_.disagree > 0) {
      Say(kInfo, "joins-disagree",
          absl::StrCat("of ", tree_.disagree,
                       " launches the profiler's number of the operator names another one than "
                       "the call that launched them; the call counts"));
    }
    if (tree_.of_graphs > 0) {
      Say(kInfo, "cuda-graphs", absl::StrCat(tree_.of_graphs, " kernels ran from CUDA graphs, and have no operator"));
    }
    if (!recording_.counters.empty() && tree_.counted.empty()) {
      Say(kInfo, "counters-not-joined",
          absl::StrCat("of ", recording_.counters.size(),
                       " kernels with counters the launches are not all in the file: they have no operator"));
    }
    if (joined_ != nullptr) {
      Say(joined_->joined == 0 ? kWarning : kInfo, "execution-trace-joined",
          absl::StrCat("of ", joined_->joined + joined_->not_joined, " operators ", joined_->joined,
                       " have operands and results of an execution trace"));
    }
  }

  // Where it ran on several streams: all of the time, by stream.
  void ExplainStreams() {
    std::map<std::pair<uint32_t, uint32_t>, uint64_t> ns;  // by device and stream
    recording_.all_activities.ForEach([&](uint64_t /*index*/, const TorchActivity& activity) {
      ns[{recording_.launches[activity.launch].device, activity.stream}] += static_cast<uint64_t>(activity.duration);
    });
    if (ns.size() < 2) return;
    std::vector<std::pair<uint64_t, std::string>> streams;
    for (const auto& [stream, time] : ns) {
      streams.emplace_back(time, absl::StrCat("stream ", stream.second, " of GPU ", stream.first));
    }
    std::sort(streams.rbegin(), streams.rend());
    constexpr size_t kNamed = 8;
    std::vector<std::string> named;
    uint64_t rest = 0;
    for (size_t i = 0; i < streams.size(); ++i) {
      if (i < kNamed) {
        named.push_back(absl::StrCat(streams[i].first, " ns on ", streams[i].second));
      } else {
        rest += streams[i].first;
      }
    }
    if (rest > 0) named.push_back(absl::StrCat(rest, " ns on ", streams.size() - kNamed, " more"));
    Say(kInfo, "streams", absl::StrCat("the GPU's time is ", absl::StrJoin(named, ", ")));
  }

  // Steps that are unlike the others, all of which are in the sums.
  void ExplainSteps() {
    const std::vector<size_t> odd = OddSteps(times_.steps_ns);
    if (odd.empty()) return;
    constexpr size_t kNamed = 4;
    std::vector<std::string> named;
    for (size_t i = 0; i < std::min(kNamed, odd.size()); ++i) {
      named.push_back(
          absl::StrCat(recording_.texts[tree_.steps()[odd[i]].name], " ", TimeText(times_.steps_ns[odd[i]])));
    }
    std::vector<uint64_t> sorted = times_.steps_ns;
    std::sort(sorted.begin(), sorted.end());
    Say(kInfo, "odd-steps",
        absl::StrCat("of ", sorted.size(), " steps, of ", TimeText(sorted[sorted.size() / 2]),
                     " of GPU time in the middle, ", odd.size(), odd.size() == 1 ? " is" : " are",
                     " unlike the others, and in all sums: ", absl::StrJoin(named, ", "),
                     odd.size() > kNamed ? ", …" : ""));
  }

  void ExplainNames() {
    if (tree_.named == nullptr) return;
    const uint64_t named = tree_.named_by_shape + tree_.named_by_order + tree_.named_modules;
    std::string text =
        absl::StrCat("names of layers are those of another trace: of ", named + tree_.not_named,
                     tree_.named_modules > 0 ? " modules, " : " forward operators ", named, " were found in it");
    if (tree_.named_by_order > 0)
      absl::StrAppend(&text, ", ", tree_.named_by_order, " of these by their order alone");
    Say(named == 0 ? kWarning : kInfo, "names-aligned", text);
  }

  const TorchRecording& recording_;
  const CallTree& tree_;
  const CostedTimes& times_;
  const JoinedCalls* const joined_;
  std::vector<trace::Diagnostic> said_;
};

}  // namespace

std::string WhyNothing(const TorchRecording& recording) {
  for (const auto& [category, count] : recording.other_gpus) {
    return absl::StrCat("the recording has ", count, " events of another accelerator (", category,
                        "), and none of a GPU");
  }
  if (recording.without_time > 0) return NoTimes(recording) + ", and there are no others";
  return "the recording has no kernels: activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA] records them";
}

std::vector<trace::Diagnostic> SayOf(const TorchRecording& recording, const CallTree& tree, const CostedTimes& times,
                                     const JoinedCalls* joined) {
  return Explainer(recording, tree, times, joined).Explain();
}

}  // namespace rfinject::cli
