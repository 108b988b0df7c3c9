#include "cli/report/facts/run_name.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace rfinject::cli {
namespace {

constexpr std::array<std::string_view, 5> kModelOptions = {"-a", "--arch", "--model", "--model-name", "--model_name"};

std::string NameInArguments(const std::vector<std::string>& argv) {
  for (size_t i = 0; i < argv.size(); ++i) {
    for (const std::string_view option : kModelOptions) {
      const std::string_view word = argv[i];
      if (word == option && i + 1 < argv.size() && !argv[i + 1].empty() && argv[i + 1][0] != '-') return argv[i + 1];
      if (word.size() > option.size() + 1 && word.starts_with(option) && word[option.size()] == '=') {
        return std::string(word.substr(option.size() + 1));
      }
    }
  }
  return {};
}

std::string LettersAndDigits(std::string_view text) {
  std::string kept;
  for (const char c : text) {
    if (c >= 'A' && c <= 'Z') kept += static_cast<char>(c - 'A' + 'a');
    if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9')) kept += c;
  }
  return kept;
}

}  // namespace

std::string ModelName(const RunKey& key, const std::vector<ProcessInfo>& processes) {
  // Several roots are several networks: one word of the command line cannot name them.
  if (key.models.size() <= 1) {
    for (const ProcessInfo& process : processes) {
      if (std::string name = NameInArguments(process.argv); !name.empty()) return name;
    }
  }
  std::string name;
  for (const std::string& model : key.models) name += (name.empty() ? "" : " + ") + model;
  return name.empty() ? "no model" : name;
}

bool SameNetwork(const RunKey& a, const std::vector<ProcessInfo>& a_processes, const RunKey& b,
                 const std::vector<ProcessInfo>& b_processes) {
  if (a.models == b.models && a.parameters == b.parameters && a.parameters > 0) return true;
  if (a.parameters > 0 && b.parameters > 0 && a.parameters != b.parameters) return false;
  return LettersAndDigits(ModelName(a, a_processes)) == LettersAndDigits(ModelName(b, b_processes));
}

std::string GpuTitle(const RunKey& key) {
  if (!key.estimated_gpu.empty()) return key.estimated_gpu;
  return key.gpu.empty() ? "unknown GPU" : key.gpu;
}

}  // namespace rfinject::cli
