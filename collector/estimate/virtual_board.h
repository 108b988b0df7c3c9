// File: virtual_board.h
//
// What a program can ask a board of gpus.csv beside its roofs: the name that the driver gives, and how much memory is
// there.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_VIRTUAL_BOARD_H_
#define RFINJECT_COLLECTOR_ESTIMATE_VIRTUAL_BOARD_H_

#include <optional>

#include "gpus/gpus.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject::estimate {

// Returns nullopt for a board whose memory is not known. The name in the result is valid until the next call.
// `devices` is 1 in the result; the caller sets it.
std::optional<rfinject_virtual_board> VirtualBoardOf(const Gpu& gpu) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_VIRTUAL_BOARD_H_
