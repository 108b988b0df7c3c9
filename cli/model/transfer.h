// File: transfer.h
//
// What a stopwatch would show for bytes that leave the GPU: copies to and from the host, and collectives of several
// GPUs. Pure maths; few parameters, which transfer.cc has with their sources.
#ifndef RFINJECT_CLI_MODEL_TRANSFER_H_
#define RFINJECT_CLI_MODEL_TRANSFER_H_

#include "cli/model/expected.h"
#include "gpus/gpus.h"

namespace rfinject::cli {

struct Transfer {
  double pcie_bytes = 0, nvlink_bytes = 0;  // of one direction
  bool collective = false;                  // else a copy between the host and the GPU
};

// Latency and bytes over the sustained rate of the link. A copy is one of page-locked memory; from other memory it
// takes longer by as much as the host's own copy does, which nothing here knows. Zero times where nothing is moved,
// or over a link that the GPU lacks.
ExpectedTime ExpectedTransfer(const Transfer& transfer, const Gpu& gpu);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_MODEL_TRANSFER_H_
