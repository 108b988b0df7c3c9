#include "operators/linear_algebra.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "operators/flop.h"
#include "operators/op_table.h"
#include "operators/testing/op_text.h"

namespace rfinject::estimate {
namespace {

uint64_t Flop(const std::string& text) {
  const rfinject::testing::OpText op(text);
  const auto rule = FindOp(op.name());
  return rule ? CountFlop(*rule, op.call()).model : UINT64_MAX;
}

TEST(LinearAlgebra, DirectFactorisations) {
  EXPECT_EQ(Flop("aten::linalg_cholesky_ex ( f32[30,30] b0 b0 ) -> ( f32[30,30] i32[] )"), 9000u);
  EXPECT_EQ(Flop("aten::linalg_cholesky_ex ( f32[4,30,30] b0 b0 ) -> ( f32[4,30,30] i32[4] )"), 4 * 9000u);
  EXPECT_EQ(Flop("aten::linalg_lu_factor_ex ( f32[30,30] b1 b0 ) -> ( f32[30,30] i32[30] i32[] )"), 18000u);
  // The longer side may be either.
  for (const char* shape : {"f32[60,30]", "f32[30,60]"}) {
    EXPECT_EQ(Flop("aten::linalg_lu_factor_ex ( " + std::string(shape) + " b1 b0 ) -> ( f32[60,30] i32[30] i32[] )"),
              60 * 900 - 9000u);
  }
  EXPECT_EQ(Flop("aten::linalg_inv_ex ( f32[30,30] b0 ) -> ( f32[30,30] i32[] )"), 54000u);
  EXPECT_EQ(Flop("aten::linalg_qr ( f32[60,30] ) -> ( f32[60,30] f32[30,30] )"), 2 * (2 * 60 * 900 - 18000u));
  EXPECT_EQ(Flop("aten::linalg_qr ( f32[60,30] ) -> ( f32[0] f32[30,30] )"), 2 * 60 * 900 - 18000u);
  EXPECT_EQ(Flop("aten::linalg_cholesky_ex ( c64[30,30] b0 b0 ) -> ( c64[30,30] i32[] )"), 36000u);
}

TEST(LinearAlgebra, Solutions) {
  EXPECT_EQ(Flop("aten::linalg_solve_triangular ( f32[30,30] f32[30,5] b1 b1 b0 ) -> ( f32[30,5] )"), 4500u);
  EXPECT_EQ(Flop("aten::cholesky_solve ( f32[30,5] f32[30,30] b0 ) -> ( f32[30,5] )"), 9000u);
  EXPECT_EQ(Flop("aten::linalg_lu_solve ( f32[2,30,30] i32[2,30] f32[2,30,5] b1 b0 ) -> ( f32[2,30,5] )"), 18000u);
  // One right-hand side, a vector.
  // 4mnr - nnr beside the factorisation, also where there are more columns than rows.
  EXPECT_EQ(Flop("aten::linalg_lstsq ( f32[2,60,30] f32[2,60,5] _ _ ) -> ( f32[2,30,5] f32[0] i64[0] f32[0] )"),
            2 * (2 * 60 * 900 - 18000 + 4 * 60 * 30 * 5 - 900 * 5u));
  EXPECT_EQ(Flop("aten::linalg_lstsq ( f32[30,60] f32[30,5] _ _ ) -> ( f32[60,5] f32[0] i64[0] f32[0] )"),
            2 * 60 * 900 - 18000 + 4 * 60 * 30 * 5 - 900 * 5u);
  EXPECT_EQ(Flop("aten::_linalg_solve_ex ( f32[30,30] f32[30] b1 b0 ) -> ( f32[30] f32[30,30] i32[30] i32[] )"),
            18000 + 1800u);
}

TEST(LinearAlgebra, EigenvaluesAndSingularValues) {
  EXPECT_EQ(Flop("aten::_linalg_eigh ( f32[30,30] b1 ) -> ( f32[30] f32[30,30] )"), 9 * 27000u);
  EXPECT_EQ(Flop("aten::_linalg_eigh ( f32[30,30] b0 ) -> ( f32[30] f32[0] )"), 36000u);
  EXPECT_EQ(Flop("aten::_linalg_svd ( f32[60,30] b0 b1 ) -> ( f32[60,30] f32[30] f32[30,30] )"),
            14 * 60 * 900 + 8 * 27000u);
  EXPECT_EQ(Flop("aten::_linalg_svd ( f32[60,30] b1 b1 ) -> ( f32[60,60] f32[30] f32[30,30] )"),
            4 * 3600 * 30 + 8 * 60 * 900 + 9 * 27000u);
  EXPECT_EQ(Flop("aten::_linalg_svd ( f32[60,30] b0 b0 ) -> ( f32[0] f32[30] f32[0] )"), 4 * 60 * 900 - 36000u);
}

TEST(LinearAlgebra, NothingOfWhatIsNoMatrix) {
  EXPECT_EQ(Flop("aten::linalg_inv_ex ( f32[3] b0 ) -> ( f32[3] i32[] )"), 0u);
  EXPECT_EQ(Flop("aten::linalg_inv_ex ( f32[0,0] b0 ) -> ( f32[0,0] i32[] )"), 0u);
}

}  // namespace
}  // namespace rfinject::estimate
