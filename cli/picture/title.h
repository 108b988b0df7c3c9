// File: title.h
//
// The title of a picture, and the badge that says where its numbers come from.
#ifndef RFINJECT_CLI_PICTURE_TITLE_H_
#define RFINJECT_CLI_PICTURE_TITLE_H_

#include <string_view>

#include "cli/picture/picture.h"
#include "cli/report/report.h"

namespace rfinject::cli {

// Adds both; `view` ("roofline") begins the subtitle. The plot's box must be known.
void AddTitle(const Report& report, std::string_view view, Picture* out);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_PICTURE_TITLE_H_
