#include "cli/import/formats.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/import/et/estimate.h"
#include "cli/import/et/execution_trace.h"
#include "cli/import/file_name.h"
#include "cli/import/ncu/ncu_csv.h"
#include "cli/import/nsys/nsys_sqlite.h"
#include "cli/import/torch/byte_stream.h"
#include "cli/import/torch/perfetto.h"
#include "cli/import/torch/recording.h"
#include "cli/import/torch/torch_profiler.h"

namespace rfinject::cli {
namespace {

// A program's own output may stand before ncu's table.
constexpr size_t kBeginning = 64u << 10;

constexpr std::string_view kCsv[] = {".csv", ".csv.gz"};
constexpr std::string_view kSqlite[] = {".sqlite", ".sqlite.gz"};
constexpr std::string_view kTorch[] = {".json.gz", ".json", ".json.zip", ".pftrace", ".pftrace.gz"};
constexpr std::string_view kEt[] = {".json.gz", ".json", ".json.zip"};

bool IsNcuCsv(std::string_view bytes) { return bytes.find("\"Kernel Name\"") != std::string_view::npos; }
bool IsTorch(std::string_view bytes) { return LooksLikeTorchRecording(bytes) || LooksLikePerfettoTrace(bytes); }
bool IsSqlite(std::string_view bytes) { return bytes.starts_with("SQLite format 3"); }

constexpr ImportFormat kFormats[] = {
    {"ncu", "the CSV of Nsight Compute (ncu --csv, pages raw and details)", kCsv, false, true, IsNcuCsv,
     ImportNcuCsv},
    {"nsys", "the SQLite export of Nsight Systems (times only)", kSqlite, false, true, IsSqlite, ImportNsysSqlite},
    {"torch", "a recording of torch.profiler (JSON, .gz or .zip; .pftrace)", kTorch, true, true, IsTorch,
     ImportTorchProfiler},
    {"et", "an execution trace of PyTorch (Chakra's JSON), with --estimate GPU", kEt, true, true,
     LooksLikeExecutionTrace, ImportExecutionTrace},
};

// Packings that are not read. No profiler writes them, and a library for each would be one more that reads what
// others made.
struct ForeignPacking {
  std::string_view begins, ending, command;
};
constexpr ForeignPacking kForeign[] = {
    {"\x28\xb5\x2f\xfd", ".zst", "zstd -d"},
    {"\xfd"
     "7zXZ",
     ".xz", "xz -dk"},
    {"BZh", ".bz2", "bzip2 -dk"},
    {"\x04\x22\x4d\x18", ".lz4", "lz4 -d"},
};

// What unpacks a file that begins so; empty where it is in none of these.
std::string HowToUnpack(std::string_view bytes, const std::string& path) {
  const auto found = std::ranges::find_if(kForeign, [&](const auto& one) { return bytes.starts_with(one.begins); });
  if (found == std::end(kForeign)) return {};
  return absl::StrCat("packed as ", std::string(found->ending), ", which is not read: unpack it (",
                      std::string(found->command), " '", path, "'), or pack it with gzip");
}

std::string Beginning(ByteStream& stream) {
  std::string bytes(kBeginning, '\0');
  size_t size = 0;
  while (size < bytes.size()) {
    const size_t got = stream.Read(bytes.data() + size, bytes.size() - size);
    if (got == 0) break;
    size += got;
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace

std::span<const ImportFormat> ImportFormats() { return kFormats; }

const ImportFormat* FindImportFormat(std::string_view name) {
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats),
                                  [name](const ImportFormat& format) { return format.name == name; });
  return found == std::end(kFormats) ? nullptr : found;
}

std::string ImportFormatNames() {
  std::string names;
  for (size_t i = 0; i < std::size(kFormats); ++i) {
    const char* between = i == 0 ? "" : i + 1 == std::size(kFormats) ? " or " : ", ";
    absl::StrAppend(&names, between, std::string(kFormats[i].name));
  }
  return names;
}

const ImportFormat* RecogniseImport(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ByteStream>> plain = ByteStream::OpenAsItIs(path);
  if (!plain.ok()) return nullptr;
  const std::string bytes = Beginning(**plain);
  const absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::OfBytes(bytes);
  const std::string unpacked = stream.ok() ? Beginning(**stream) : std::string();
  const auto found = std::find_if(std::begin(kFormats), std::end(kFormats), [&](const ImportFormat& format) {
    return format.recognises(format.may_be_packed ? unpacked : bytes);
  });
  return found == std::end(kFormats) ? nullptr : found;
}

std::string WhyPackedIsNothing(const std::string& path) {
  const absl::StatusOr<std::unique_ptr<ByteStream>> plain = ByteStream::OpenAsItIs(path);
  if (!plain.ok()) return {};
  const std::string bytes = Beginning(**plain);
  if (std::string how = HowToUnpack(bytes, path); !how.empty()) return how;
  if (!bytes.starts_with("\x1f\x8b") && !bytes.starts_with("PK")) return {};
  const absl::StatusOr<std::unique_ptr<ByteStream>> stream = ByteStream::OfBytes(bytes);
  if (!stream.ok()) return std::string(stream.status().message());
  return "a packed file, and the first that is in it is no recording of torch.profiler";
}

absl::StatusOr<std::vector<std::string>> FilesToImport(const std::string& folder, const ImportFormat* format) {
  namespace fs = std::filesystem;
  // One that is packed otherwise is said to be, and not passed over.
  const auto ends = [](const ImportFormat& of, std::string_view name) {
    for (const ForeignPacking& packing : kForeign) {
      if (name.ends_with(packing.ending)) name.remove_suffix(packing.ending.size());
    }
    return std::any_of(of.endings.begin(), of.endings.end(),
                       [name](std::string_view ending) { return name.ends_with(ending); });
  };
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    const std::string name = entry->path().filename();
    const bool wanted = format != nullptr ? ends(*format, name)
                                          : std::any_of(std::begin(kFormats), std::end(kFormats),
                                                        [&](const ImportFormat& of) { return ends(of, name); });
    if (wanted && entry->is_regular_file(error)) found.push_back(entry->path());
  }
  if (error) return absl::UnavailableError(absl::StrCat(folder, ": ", error.message()));
  std::sort(found.begin(), found.end());
  return found;
}

absl::StatusOr<Imported> ImportFile(const ImportFormat& format, const std::string& path, ImportOptions options) {
  const NamedRun name = RunOfFileName(path);
  const bool guesses = options.gpu.empty() && !format.names_gpu;
  if (options.model.empty() && !format.names_gpu) options.model = name.model;
  options.likely_model = name.model;
  options.likely_gpu = name.gpu;
  if (guesses) options.gpu = name.gpu;
  options.gpu_is_guessed = guesses && !name.gpu.empty();
  if (const auto plain = ByteStream::OpenAsItIs(path); plain.ok()) {
    const std::string how = HowToUnpack(Beginning(**plain), path);
    if (!how.empty()) return absl::InvalidArgumentError(absl::StrCat(path, ": ", how));
  }
  absl::StatusOr<Imported> imported = format.import(path, options);
  const auto is_taken = [&name](const auto& run) { return run.first.gpu == name.gpu; };
  if (imported.ok() && guesses && !name.other_gpus.empty() && std::ranges::any_of(imported->profile.runs, is_taken)) {
    imported->warnings.insert(imported->warnings.begin(),
                              absl::StrCat(path, ": taken as ", name.gpu, "; --gpu says it if it was ",
                                           absl::StrJoin(name.other_gpus, " or ")));
  }
  return imported;
}

}  // namespace rfinject::cli
