// File: sanitized.h
//
// Whether a test runs under a sanitizer (CMake defines which). It is five times as slow there: what examines numbers
// by many examples takes fewer, since the ordinary build has them all.
#ifndef RFINJECT_CLI_TESTING_SANITIZED_H_
#define RFINJECT_CLI_TESTING_SANITIZED_H_

#include <cstddef>

namespace rfinject {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Of so many examples each in how many a test takes.
inline constexpr size_t OneIn(size_t of_sanitized) { return kSanitized ? of_sanitized : 1; }

}  // namespace rfinject

#endif  // RFINJECT_CLI_TESTING_SANITIZED_H_
