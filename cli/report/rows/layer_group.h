// File: layer_group.h
//
// Says which layers of a model are alike. A network of hundreds of layers has a dozen kinds of them, and one line for
// a kind says more than the same line fifty times.
#ifndef RFINJECT_CLI_REPORT_ROWS_LAYER_GROUP_H_
#define RFINJECT_CLI_REPORT_ROWS_LAYER_GROUP_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "cli/profile/profile.h"

namespace rfinject::cli {

// The name of the layers that are like this one: its class, the window of a convolution, and the channels or features
// that it takes and gives: "Conv2d 3x3 512->512", "Linear 768->3072", "LayerNorm 768". The window follows from the
// number of weights (output channels x input channels x window, or output channels x window where each channel is
// convolved alone) and is left out where that is no square. What is not known is left out.
std::string LayerGroup(const LayerInfo& layer);

// Bytes of a tensor by its text, "f32[8,3,224,224]"; 0 where the type is not known.
uint64_t ShapeBytes(std::string_view shape);

// The first `depth` parts of a layer's path: "h.0" of "h.0.attn.proj" and 2. All of them for 0.
std::string_view FirstParts(std::string_view path, size_t depth);

}  // namespace rfinject::cli

#endif  // RFINJECT_CLI_REPORT_ROWS_LAYER_GROUP_H_
