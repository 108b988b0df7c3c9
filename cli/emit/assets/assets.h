// File: assets.h
//
// The style sheet and the script of the HTML report, compiled in from report.css and report.js.
#ifndef RFINJECT_CLI_EMIT_ASSETS_ASSETS_H_
#define RFINJECT_CLI_EMIT_ASSETS_ASSETS_H_

#include <string_view>

namespace rfinject::cli {

extern const std::string_view kReportCss;
extern const std::string_view kReportJs;

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_ASSETS_ASSETS_H_
