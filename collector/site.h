// File: site.h
//
// Where in the training program a launch came from. The injector knows (it watches modules and autograd nodes); the
// collector asks through one function pointer, so that neither has to know how the other works.
#ifndef RFINJECT_COLLECTOR_SITE_H_
#define RFINJECT_COLLECTOR_SITE_H_

#include <atomic>
#include <cstdint>

#include "proto/wire/vocabulary.h"

namespace rfinject {

struct Site {
  uint32_t layer = 0;  // id from Recorder::DefineLayer; 0: in no layer
  uint32_t op = 0;     // id from Recorder::Intern; 0: unknown
  uint32_t node = 0;   // id from Recorder::Intern, the autograd node's name; 0: none
  Phase phase = Phase::kOther;

  friend bool operator==(const Site&, const Site&) = default;
};

// Writes the calling thread's site at this instant to `*site`. It takes no lock, allocates nothing, never throws,
// takes no GIL and calls nothing of CUDA, because it runs inside the launch callback. The site is no return value,
// since one comes in two registers and is put together through memory, which a launch would wait for.
using SiteFunction = void (*)(Site* site) noexcept;

// Null until the injector has bound to something; then callers get Site{}.
inline std::atomic<SiteFunction> g_site_function{nullptr};

// Where the calling thread is in the program. Any thread may call these. ReadCurrentSite leaves a Site{} as it is
// where nothing is known.
inline void ReadCurrentSite(Site* site) noexcept {
  const SiteFunction function = g_site_function.load(std::memory_order_acquire);
  if (function != nullptr) function(site);
}
inline Site CurrentSite() noexcept {
  Site site;
  ReadCurrentSite(&site);
  return site;
}

}  // namespace rfinject

#endif  // RFINJECT_COLLECTOR_SITE_H_
