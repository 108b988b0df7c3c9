// File: settings_parser.h
//
// The function behind GetSettings. Tests call it, because it can be called more than once.
#ifndef RFINJECT_COLLECTOR_SETTINGS_PARSER_H_
#define RFINJECT_COLLECTOR_SETTINGS_PARSER_H_

#include <string>

#include "collector/settings.h"

namespace rfinject {

// `environment` is a null-terminated array of "NAME=value", as environ is. A relative output is made absolute from
// the current folder. What is wrong with it is appended to `*errors`, one line each. May throw std::bad_alloc.
Settings ParseSettings(const char* const* environment, std::string* errors);

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SETTINGS_PARSER_H_
