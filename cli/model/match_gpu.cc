#include "cli/model/match_gpu.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

// A GPU's name taken apart: "NVIDIA A100-SXM4-40GB" is model A100, form SXM, 40 GB.
struct Parts {
  std::string model;   // words that say which GPU it is, joined: "A100", "RTX3090TI"
  std::string form;    // "SXM", "PCIE", "NVL", or empty
  std::string socket;  // of an SXM module, "3"; boards with one chip differ by it, in clocks and power
  unsigned gigabytes = 0;
  bool slice = false;  // MIG
};

// The words between blanks, dashes and underscores, in capitals.
std::vector<std::string> WordsOf(std::string_view name) {
  std::vector<std::string> words(1);
  for (const char c : name) {
    if (c == ' ' || c == '-' || c == '_') {
      words.emplace_back();
    } else {
      words.back() += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    }
  }
  std::erase(words, "");
  return words;
}

bool IsNumber(std::string_view word) {
  return !word.empty() && std::all_of(word.begin(), word.end(), [](unsigned char c) { return std::isdigit(c) != 0; });
}

Parts Split(std::string_view name) {
  Parts parts;
  bool hbm3 = false;
  for (const std::string& word : WordsOf(name)) {
    if (word == "NVIDIA" || word == "TESLA" || word == "GEFORCE" || word == "AMD" || word == "INSTINCT" ||
        word == "VF" || word == "AC") {
      continue;  // VF: a virtual function, which is all of the GPU. AC: cooled by air, as "B300 SXM6 AC"
    }
    if (word == "MIG") {
      parts.slice = true;
    } else if (word.starts_with("SXM") && (word.size() == 3 || IsNumber(word.substr(3)))) {
      parts.form = "SXM";
      parts.socket = word.substr(3);
    } else if (word == "OAM") {
      parts.form = "SXM";  // AMD's modules
    } else if (word == "PCIE" || word == "NVL" || word == "DGXS") {
      parts.form = word;
    } else if (word == "HBM3" || word == "HBM3E") {
      hbm3 = true;
    } else if (word.size() > 2 && word.size() < 7 && word.ends_with("GB") &&
               IsNumber(word.substr(0, word.size() - 2))) {
      parts.gigabytes = static_cast<unsigned>(std::stoul(word.substr(0, word.size() - 2)));
    } else {
      parts.model += word;
    }
  }
  if (parts.form.empty() && hbm3) parts.form = "SXM";  // the driver calls the SXM5 module "H100 80GB HBM3"
  return parts;
}

}  // namespace

const Gpu* MatchGpu(std::string_view device_name, uint64_t memory_bytes) {
  if (const Gpu* exact = FindGpu(device_name)) return exact;
  const Parts wanted = Split(device_name);
  if (wanted.slice || wanted.model.empty()) return nullptr;
  const double gigabytes = wanted.gigabytes != 0 ? wanted.gigabytes : static_cast<double>(memory_bytes) / 1e9;
  const Gpu* best = nullptr;
  double best_distance = 0;
  for (const Gpu& gpu : AllGpus()) {
    const Parts row = Split(gpu.name);
    if (row.model != wanted.model) continue;
    // A name without a form is the module's ("NVIDIA H200"); cards say PCIe or NVL.
    const std::string form = wanted.form.empty() && !row.form.empty() ? "SXM" : wanted.form;
    if (!form.empty() && !row.form.empty() && row.form != form) continue;
    if (!wanted.socket.empty() && !row.socket.empty() && row.socket != wanted.socket) continue;
    if (wanted.gigabytes != 0 && row.gigabytes != 0 && row.gigabytes != wanted.gigabytes) continue;
    // Devices report a little less, or in 2^30, than the name on the box.
    const double distance = gigabytes > 0 && row.gigabytes != 0 ? std::abs(std::log(gigabytes / row.gigabytes)) : 0;
    if (distance > 0.25) continue;
    if (best == nullptr || distance < best_distance) {
      best = &gpu;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace rfinject::cli
