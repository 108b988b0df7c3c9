// File: attention.h
//
// The FLOP of fused attention. There are two counts: that of all scores, which is the field's convention for the
// model's FLOP, and that of the scores that a causal mask leaves, which is what the kernels compute.
#ifndef RFINJECT_OPERATORS_ATTENTION_H_
#define RFINJECT_OPERATORS_ATTENTION_H_

#include "operators/flop.h"
#include "operators/op_call.h"

namespace rfinject::estimate {

// Whether the operator is an attention in which each query sees only the keys before it.
bool IsCausalAttention(const OpCall& call) noexcept;

// FLOP of s_q queries of d elements, which see s_k keys and values of d_v elements, for each of b batches and h
// heads:
//   forward:  q k^T and p v, 2 b h s_q s_k (d + d_v); the scores' scaling and softmax, 4 each
//   backward: dv, dp, dq, dk: twice the forward's products; the scores' gradient, 5 each. The fused kernels do not
//             keep the scores: they compute q k^T again, 2.5 times the forward when d = d_v (Dao et al., arXiv
//             2205.14135, algorithm 4).
// The model's FLOP are those of all scores, as torch.utils.flop_counter counts. Executed are those that the mask
// leaves: for s_q = s_k = s, s (s + 1) / 2 of s s. Heads that torch has padded count as long as the program's are.
// The blocks that a mask of flex_attention leaves are in the GPU's memory (MaskBlocks): here all scores count.
// Where the lengths of several sequences are not known, they are taken to be alike, which is the least that it can
// be.
FlopCount AttentionFlop(const OpCall& call, bool backward) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_ATTENTION_H_
