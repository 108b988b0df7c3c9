#include "cli/import/file_name.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "gpus/gpus.h"

namespace rfinject::cli {
namespace {

std::string Lower(std::string_view text) { return absl::AsciiStrToLower(std::string(text)); }

std::string_view BaseName(std::string_view path) { return path.substr(path.rfind('/') + 1); }

bool IsSeparator(char c) { return c == '_' || c == '-' || c == '.' || c == ' '; }

// Where `word` stands in `name` between separators; npos when it does not.
size_t FindWord(std::string_view name, std::string_view word) {
  for (size_t at = name.find(word); at != std::string_view::npos; at = name.find(word, at + 1)) {
    const size_t end = at + word.size();
    if ((at == 0 || IsSeparator(name[at - 1])) && (end == name.size() || IsSeparator(name[end]))) return at;
  }
  return std::string_view::npos;
}

}  // namespace

std::string OtherProfileRemedy(std::string_view path) {
  const std::string name(BaseName(path));
  const std::string stem = name.substr(0, name.rfind('.'));
  if (name.ends_with(".nsys-rep") || name.ends_with(".qdrep")) {
    return "Nsight Systems' own format; 'nsys export --type sqlite " + name + "' writes what 'rfinject import nsys " +
           stem + ".sqlite -o " + stem + ".rfx' reads";
  }
  if (name.ends_with(".ncu-rep")) {
    return "Nsight Compute's own format; 'ncu --import " + name + " --csv --page raw > " + stem +
           ".csv' writes what 'rfinject import ncu " + stem + ".csv -o " + stem + ".rfx' reads";
  }
  return {};
}

NamedRun RunOfFileName(std::string_view path) {
  std::string_view base = BaseName(path);
  for (std::string_view ending :
       {".gz", ".zip", ".csv", ".sqlite", ".ncu", ".nsys", ".txt", ".json", ".pftrace", ".trace", ".pt"}) {
    if (base.size() > ending.size() && base.ends_with(ending)) base.remove_suffix(ending.size());
  }
  const std::string name = Lower(base);
  NamedRun run;
  size_t at = std::string::npos, length = 0;
  for (const Gpu& gpu : AllGpus()) {
    const std::string full = Lower(gpu.name);
    if (full.size() > length && FindWord(name, full) != std::string::npos) {
      run.gpu = gpu.name;
      at = FindWord(name, full);
      length = full.size();
    }
  }
  if (run.gpu.empty()) {
    for (const Gpu& gpu : AllGpus()) {
      const std::string first = Lower(gpu.name.substr(0, gpu.name.find('-')));
      if (FindWord(name, first) == std::string::npos) continue;
      if (!run.gpu.empty()) {
        if (first.size() == length) run.other_gpus.emplace_back(gpu.name);
        continue;
      }
      run.gpu = gpu.name;
      at = FindWord(name, first);
      length = first.size();
    }
  }
  std::string model(base);
  if (at != std::string::npos) model.erase(at, length);
  const auto not_separator = [](char c) { return !IsSeparator(c); };
  model.erase(model.begin(), std::find_if(model.begin(), model.end(), not_separator));
  model.erase(std::find_if(model.rbegin(), model.rend(), not_separator).base(), model.end());
  run.model = model.empty() ? "program" : model;
  return run;
}

}  // namespace rfinject::cli
