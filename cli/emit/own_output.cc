#include "cli/emit/own_output.h"

#include <algorithm>
#include <iterator>

namespace rfinject::cli {
namespace {

struct Mark {
  std::string_view begins;
  std::string_view holds;  // further on in what is looked at; empty: anything
};

// Where the first word is one of everyday English, a mark is two words far apart.
constexpr Mark kMarks[] = {
    {"{\n  \"schema\": \"rfinject.", ""},
    {"record,", ""},
    {"run,device,steps,", ""},            // stacks
    {"run,device,allocated_bytes,", ""},  // memory
    {"run,device,source,rank,", ""},      // waits
    {"<!DOCTYPE html>\n", "<title>rfinject"},
    {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg ", "<title>rfinject"},
    {"# Made by rfinject calibrate", ""},
    // Exports.
    {"SQLite format 3", "rfij"},
    {"\x1f\x8b\x08", "rfinject export --to pprof"},
    {"\n", "(rfinject export)"},
    {"# TYPE rfinject_", ""},
    // Tables: of runs, of a comparison, of stacks, of memory.
    {"ESTIMATED on ", "Attribution tier "},
    {"Measured on ", "Attribution tier "},
    {"Imported from ", "Attribution tier "},
    {"Nothing was measured: ", "Attribution tier "},
    {"On ", ", numbers are a step's\n"},
    {"A  ", "\nB  "},
    {"only in A: ", ""},
    {"only in B: ", ""},
    {"", ": in no layer, by native stack, a step\n"},
    {"", ": memory at the peak, by where it was allocated\n"},
    {"", ": what a step waits for, by the clock\n"},
    {"", ": steps by rank, by the clock\n"},
    {"", "| | phase | before | after | change | |\n"},
    {"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"rfinject diff\"", ""},
};

}  // namespace

bool IsOwnOutput(std::string_view beginning) {
  return std::any_of(std::begin(kMarks), std::end(kMarks), [&](const Mark& mark) {
    return beginning.starts_with(mark.begins) && beginning.find(mark.holds) != std::string_view::npos;
  });
}

}  // namespace rfinject::cli
