// File: assets.h
//
// The style sheet of pages, the script of their light and dark (report and diff), and that of the report, compiled in
// from the files beside this one. They are literals, so they may stand in a page as they are.
#ifndef RFINJECT_CLI_EMIT_HTML_ASSETS_ASSETS_H_
#define RFINJECT_CLI_EMIT_HTML_ASSETS_ASSETS_H_

#include "cli/emit/markup.h"

namespace rfinject::cli {

extern const Literal kReportCss;
extern const Literal kThemeJs;
extern const Literal kReportJs;

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_EMIT_HTML_ASSETS_ASSETS_H_
