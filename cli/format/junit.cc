// JUnit's XML: a test case for each condition of a document, for what shows tests.
#include <algorithm>
#include <ostream>
#include <sstream>
#include <string>
#include <string_view>

#include "cli/format/format.h"
#include "cli/text/markup.h"

namespace rfinject::cli {
namespace {

std::string Xml(std::string_view text) { return Escaped(text).text(); }

absl::Status WriteJunit(const Document& document, const WriteOptions&, std::ostream& out) {
  const auto count = [&](Check::Outcome outcome) {
    return std::count_if(document.checks.begin(), document.checks.end(),
                         [outcome](const Check& check) { return check.outcome == outcome; });
  };
  const std::string name = document.title.substr(0, document.title.find(':'));
  out << "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"" << Xml(name) << "\" tests=\""
      << document.checks.size() << "\" failures=\"" << count(Check::Outcome::kFails) << "\" skipped=\""
      << count(Check::Outcome::kUnknown) << "\">\n";
  for (const Check& check : document.checks) {
    out << "  <testcase classname=\"rfinject\" name=\"" << Xml(check.name) << "\"";
    if (check.outcome == Check::Outcome::kHolds) {
      out << "/>\n";
      continue;
    }
    const char* const element = check.outcome == Check::Outcome::kFails ? "failure" : "skipped";
    out << ">\n    <" << element << " message=\"" << Xml(check.text) << "\"/>\n  </testcase>\n";
  }
  out << "  <system-out>";
  // Line by line, because Xml shows a line break by its number.
  std::istringstream log(document.log);
  for (std::string line; std::getline(log, line);) out << Xml(line) << '\n';
  out << "</system-out>\n</testsuite>\n";
  return absl::OkStatus();
}

}  // namespace

namespace formats {
Format junit() { return {.name = "junit", .write = WriteJunit}; }
}  // namespace formats

}  // namespace rfinject::cli
