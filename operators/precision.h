// File: precision.h
//
// Says which of the GPU's units does an operator's arithmetic. It follows from the kind of operator, the type of its
// operands, what the chip has, and what torch allows.
#ifndef RFINJECT_OPERATORS_PRECISION_H_
#define RFINJECT_OPERATORS_PRECISION_H_

#include "gpus/gpus.h"
#include "operators/op_call.h"
#include "operators/op_table.h"
#include "proto/wire/vocabulary.h"

namespace rfinject::estimate {

struct PrecisionPolicy {
  bool convolution_tf32 = true;  // torch.backends.cudnn.allow_tf32: on since torch 1.7
  bool matmul_tf32 = false;      // torch.backends.cuda.matmul.allow_tf32: off since torch 1.12
};

// The unit for arithmetic of `unit`'s kind on `dtype`.
//
//   kind                    FP64         FP32                    FP16         BF16         FP8, INT8 (matmul)
//   convolution, matmul     FP64 tensor  TF32 tensor if allowed  FP16 tensor  BF16 tensor  FP8, INT8 tensor
//     without such a unit   FP64         FP32                    FP32         FP32         FP16 tensor, FP32
//   vector                  FP64         FP32                    FP32         FP32         FP32
//
// Half types outside of the tensor cores run on the FP32 units: ATen's elementwise, reduction and normalisation
// kernels convert each element to `at::OpMathType`, which is float for both (ATen/OpMathType.h), and torch asks
// cuBLAS and cuDNN for FP32 accumulation (CUBLAS_COMPUTE_32F; CUDNN_DATA_FLOAT as the convolution's math type), so
// that a GPU without tensor cores multiplies in FP32 as well. The packed FP16 rate of P100 (Precision::kFp16) is
// never asked for.
Precision UnitFor(Unit unit, DType dtype, const Gpu& gpu, PrecisionPolicy policy) noexcept;

}  // namespace rfinject::estimate

#endif  // RFINJECT_OPERATORS_PRECISION_H_
