// File: virtual_board.h
//
// What a program can ask of the boards of gpus.csv beside their roofs: the name that the driver gives, and how much
// memory is there.
#ifndef RFINJECT_COLLECTOR_ESTIMATE_VIRTUAL_BOARD_H_
#define RFINJECT_COLLECTOR_ESTIMATE_VIRTUAL_BOARD_H_

#include <optional>

#include "gpus/gpus.h"
#include "virtual_gpu/virtual_gpu.h"

namespace rfinject::estimate {

// nullopt for a board whose memory is not known. `devices` is left 1.
std::optional<rfinject_virtual_board> VirtualBoardOf(const Gpu& gpu) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_COLLECTOR_ESTIMATE_VIRTUAL_BOARD_H_
