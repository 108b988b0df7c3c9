// `rfinject top`: a job that runs, in a terminal, from what its traces say by now.
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "cli/cmd/commands.h"
#include "cli/cmd/load.h"
#include "cli/cmd/options.h"
#include "cli/cmd/screen.h"
#include "cli/cmd/shared_options.h"
#include "cli/cmd/streams.h"
#include "cli/cmd/user_calibration.h"
#include "cli/profile/limit.h"
#include "cli/report/live.h"
#include "cli/report/machine.h"
#include "cli/report/rows/column.h"
#include "cli/report/run_list.h"
#include "cli/text/grid.h"
#include "cli/trace/follow.h"
#include "cli/view/live_view.h"

namespace rfinject::cli {
namespace {

constexpr std::string_view kTopUsage =
    "rfinject top [options] [FOLDER|TRACE]\n\n"
    "A job as it runs: how long a step takes, how far the GPU is from its roof, the layers with most to win,\n"
    "and which ranks still write. It only reads the traces, also those of another machine on a shared file\n"
    "system; the job does not notice. Without a name it is the latest run in rfinject-out/.\n"
    "Keys: q quits, s sorts, b other rows, p pauses, h help. Where there is no terminal, it prints once.";

constexpr std::array<std::string_view, 3> kTopBys = {"layer", "op", "kernel"};
constexpr std::array kByOf = {By::kLayer, By::kOp, By::kKernel};

struct SortKey {
  std::string_view column, words;
};
constexpr std::array kSorts = {SortKey{"to_win_per_step_ns", "what could be won"},
                               SortKey{"time_per_step_ns", "time"}, SortKey{"flop_per_step", "FLOP"}};

constexpr size_t kByGain = 0, kByTime = 1;

// No more than one look a second, and no more than a tenth of one processor: the next look comes after nine times
// what the last one took.
constexpr absl::Duration kLeastPause = absl::Seconds(1);
constexpr int kShareOfTime = 9;

constexpr std::array<std::string_view, 11> kHelp = {
    "q  quit",
    "s  the rows by what could be won, by time, by FLOP",
    "b  a row a layer, an operator, a kernel",
    "p  pause: the screen stays as it is",
    "h  this text, and back",
    "",
    "quiet: the trace has not grown for far longer than usual; it does not say why",
    "ended: the process said that it ended; one that is killed says nothing",
    "Times and FLOP are of all steps so far. The last steps are those that came",
    "since the look before.",
    "`rfinject report` on the same folder has all of it.",
};

class Top {
 public:
  Top(std::string path, By by, Calibration calibration)
      : follower_(std::move(path)), by_(by), calibration_(std::move(calibration)) {}

  absl::StatusOr<bool> Look(const std::function<bool()>& keep_on) {
    absl::StatusOr<bool> news = follower_.Look(keep_on);
    if (!news.ok() || !*news) return news;
    profile_ = follower_.run().profile;
    (void)LimitProfile(Limits(), &profile_);  // what it left out is a diagnostic of the run
    // The tally before is that of the look before, which may be of another run.
    before_ = follower_.run().of.files.front() == shown_ ? live_.tally : StepTally();
    shown_ = follower_.run().of.files.front();
    Fold();
    return true;
  }

  // The same numbers a moment later, or in another order.
  void Fold() {
    std::vector<TraceWriter> writers;
    for (const FollowedTrace& trace : follower_.run().traces) {
      TraceWriter writer{.trace = trace.path,
                         .start_unix_ns = trace.process.start_unix_ns,
                         .changed_unix_ns = trace.changed_unix_ns,
                         .ended = trace.ended,
                         .damage = std::string(trace.damage.message())};
      if (trace.process.world_size > 0) writer.rank = trace.process.rank;
      writers.push_back(std::move(writer));
    }
    live_ = FoldLive(
        profile_, writers, absl::ToUnixNanos(absl::Now()), MachineFor,
        {.by = by_, .sort = std::string(kSorts[sort_].column), .before = before_, .calibration = &calibration_});
    shown_sort_ = sort_;
    // On a GPU without roofs it is not known what could be won.
    if (sort_ == kByGain && live_.report.machine.name.empty()) {
      shown_sort_ = kByTime;
      SortRows(*FindColumn(kSorts[kByTime].column), &live_.report);
    }
  }

  std::string Text(LiveLook look, const WriteOptions& writing) const {
    look.command = CommandText(follower_.run().of.argv);
    look.sort_column = kSorts[shown_sort_].column;
    look.sorted_by = kSorts[shown_sort_].words;
    std::ostringstream text;
    (void)FindFormat(kDefaultFormat)->write(LiveDocument(live_, look), writing, text);
    return std::move(text).str();
  }

  void SortNext() {
    sort_ = (sort_ + 1) % kSorts.size();
    Fold();
  }
  void ByNext() {
    const size_t at = static_cast<size_t>(std::find(kByOf.begin(), kByOf.end(), by_) - kByOf.begin());
    by_ = kByOf[(at + 1) % kByOf.size()];
    Fold();
  }

  bool damaged() const { return !live_.damages.empty(); }
  bool anything() const { return live_.anything; }

 private:
  RunFollower follower_;
  By by_;
  const Calibration calibration_;
  size_t sort_ = kByGain, shown_sort_ = kByGain;
  Profile profile_;  // of the run, bounded
  std::string shown_;
  StepTally before_;
  LiveRun live_;
};

int PrintOnce(Top* top, const WriteOptions& writing) {
  const absl::StatusOr<bool> news = top->Look([] { return true; });
  if (!Succeeded(news.status())) return 1;
  Print(top->Text({.most_ranks = writing.most_rows}, writing), Colors::kOurs);
  return FinishOutput(top->damaged() ? 1 : 0);
}

// The signal that ended it, or the status of what failed.
struct Ending {
  int signal = 0;
  absl::Status status;
};

Ending Show(Top* top, Screen* screen) {
  absl::Time next_look = absl::InfinitePast();
  bool paused = false, help = false;
  for (;;) {
    if (!paused && absl::Now() >= next_look) {
      const absl::Time start = absl::Now();
      const absl::StatusOr<bool> news = top->Look([screen] { return !screen->HasInput(); });
      if (!news.ok()) return {.status = news.status()};
      if (!*news) top->Fold();  // what is silent is so for longer
      const absl::Time end = absl::Now();
      next_look = end + std::max(kLeastPause, kShareOfTime * (end - start));
    }
    const Screen::Size size = screen->size();
    WriteOptions writing = WriteOptionsFor(STDOUT_FILENO);
    writing.width = size.columns;
    writing.height = static_cast<size_t>(std::max(size.lines - 1, 1));
    std::vector<std::string> lines;
    if (help) {
      std::ostringstream text;
      for (const std::string_view line : kHelp) {
        if (line.size() > static_cast<size_t>(std::max(size.columns, 0))) {
          WriteWrapped(text, line, size.columns, "", "  ");
        } else {
          text << line << '\n';
        }
      }
      lines = absl::StrSplit(text.str(), '\n');
    } else {
      lines = absl::StrSplit(top->Text({.paused = paused}, writing), '\n');
    }
    lines.resize(writing.height);
    const std::string_view keys = "q quit  s sort  b layer, op, kernel  p pause  h help";
    lines.emplace_back(keys.substr(0, static_cast<size_t>(std::max(size.columns, 1))));
    if (absl::Status drawn = screen->Draw(lines); !drawn.ok()) return {.status = std::move(drawn)};
    const Screen::Input input = screen->Wait(paused ? absl::Hours(1) : next_look - absl::Now());
    if (input.what == Screen::What::kEnd) return {.signal = input.signal};
    if (input.what != Screen::What::kKey) continue;
    switch (input.key) {
      case 'q':
        return {};
      case 's':
        top->SortNext();
        break;
      case 'b':
        top->ByNext();
        break;
      case 'p':
        paused = !paused;
        break;
      case 'h':
      case '?':
        help = !help;
        break;
      default:
        break;
    }
  }
}

}  // namespace

VerbHelp TopHelp() {
  return {kTopUsage,
          {{"once", 0, "", "print what there is now, and end"},
           {"by", 0, "WHAT", "rows by layer (default), op or kernel", ChoicesOf(kTopBys)},
           {"rows", 0, "N", "with --once: rows of the table, and ranks; 0: all. Default 10"},
           kCalibrationOption},
          kFiles};
}

int TopMain(const ParsedOptions& parsed) {
  if (parsed.words.size() > 1)
    return UsageError("top", "one folder or trace is wanted: jobs are shown one at a time");
  constexpr uint64_t kRows = 10;
  OptionReader reader(parsed);
  const size_t by = reader.Word("by", kTopBys, kTopBys.front());
  const uint64_t rows = reader.Number("rows", kRows);
  Calibration calibration = reader.CalibrationOption();
  if (!reader.ok()) return Refused("top", reader.status());
  const std::string path = parsed.words.empty() ? NewestRunHere("top") : parsed.words.front();
  if (path.empty()) return 2;
  Top top(path, kByOf[by], std::move(calibration));
  if (parsed.Has("once") || !Screen::IsPossible()) {
    WriteOptions writing = WriteOptionsFor(STDOUT_FILENO);
    writing.most_rows = rows;
    return PrintOnce(&top, writing);
  }
  Ending ending;
  {
    // What is wrong with the name is said before the screen is taken.
    if (const absl::StatusOr<bool> news = top.Look([] { return true; }); !Succeeded(news.status())) return 1;
    absl::StatusOr<std::unique_ptr<Screen>> screen = Screen::Open();
    if (!Succeeded(screen.status())) return 1;
    ending = Show(&top, screen->get());
  }
  if (!Succeeded(ending.status)) return 1;
  // The caller sees by which signal the command ended.
  if (ending.signal != 0) ::raise(ending.signal);
  return 0;
}

}  // namespace rfinject::cli
