// File: assets.h
//
// The style sheet and the script of pages, compiled in from the files beside this one. The script is the modules in
// js/, one behind the other. Both are literals, so they may stand in a page as they are.
#ifndef RFINJECT_CLI_FORMAT_HTML_ASSETS_ASSETS_H_
#define RFINJECT_CLI_FORMAT_HTML_ASSETS_ASSETS_H_

#include "cli/text/markup.h"

namespace rfinject::cli {

extern const Literal kReportCss;
extern const Literal kPageJs;

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_FORMAT_HTML_ASSETS_ASSETS_H_
