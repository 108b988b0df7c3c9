// File: assets.h
//
// The style sheet and the script of the HTML report, compiled in from report.css and report.js. They are literals, so
// they may stand in the page as they are.
#ifndef RFINJECT_CLI_EMIT_HTML_ASSETS_ASSETS_H_
#define RFINJECT_CLI_EMIT_HTML_ASSETS_ASSETS_H_

#include "cli/emit/markup.h"

namespace rfinject::cli {

extern const Literal kReportCss;
extern const Literal kReportJs;

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_HTML_ASSETS_ASSETS_H_
