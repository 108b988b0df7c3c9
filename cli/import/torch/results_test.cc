#include "cli/import/torch/results.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace rfinject::cli {
namespace {

using Sizes = std::vector<int64_t>;

// The shape of the first result; empty where none is found.
Sizes Result(const std::string& name, const std::string& dims, const std::string& types, const std::string& values,
             const Sizes& seen = {}) {
  RecordedCall call(name, dims + "\n" + types + "\n\n" + values, DType::kFloat);
  if (!AddResults(seen, &call)) return {-1};
  const OpCall view = call.call();
  if (view.outputs.empty() || view.outputs[0].kind != Argument::Kind::kTensor) return {-2};
  const TensorView& tensor = view.tensors[view.outputs[0].first];
  return {tensor.shape.begin(), tensor.shape.begin() + tensor.rank};
}

TEST(ResultsTest, Convolutions) {
  const std::string types =
      R"(["float","float","float","ScalarList","ScalarList","ScalarList","Scalar","ScalarList","Scalar"])";
  const std::string dims = "[[8,3,224,224],[64,3,7,7],[64],[],[],[],[],[],[]]";
  EXPECT_EQ(Result("aten::convolution", dims, types, R"(["","","","[2, 2]","[3, 3]","[1, 1]","False","[0, 0]","1"])"),
            (Sizes{8, 64, 112, 112}));
  EXPECT_EQ(Result("aten::convolution", dims, types, R"(["","","","[1]","[0]","[2]","False","[0]","1"])"),
            (Sizes{8, 64, 212, 212}));
  EXPECT_EQ(Result("aten::convolution", "[[8,16,10,10],[16,4,4,4],[],[],[],[],[],[],[]]", types,
                   R"(["","","","[2, 2]","[1, 1]","[1, 1]","True","[0, 0]","2"])"),
            (Sizes{8, 8, 20, 20}));
  // Without values what was seen counts, where it can be this one's.
  EXPECT_EQ(Result("aten::convolution", dims, types, ""), (Sizes{-1}));
  EXPECT_EQ(Result("aten::convolution", dims, types, "", {8, 64, 112, 112}), (Sizes{8, 64, 112, 112}));
  EXPECT_EQ(Result("aten::convolution", dims, types, "", {8, 32, 112, 112}), (Sizes{-1}));
}

TEST(ResultsTest, Products) {
  const std::string two = R"(["float","float"])", three = R"(["float","float","float"])";
  EXPECT_EQ(Result("aten::mm", "[[2,3],[3,4]]", two, ""), (Sizes{2, 4}));
  EXPECT_EQ(Result("aten::bmm", "[[5,2,3],[5,3,4]]", two, ""), (Sizes{5, 2, 4}));
  EXPECT_EQ(Result("aten::addmm", "[[4],[2,3],[3,4]]", three, ""), (Sizes{2, 4}));
  EXPECT_EQ(Result("aten::linear", "[[6,2,3],[7,3],[7]]", three, ""), (Sizes{6, 2, 7}));
  EXPECT_EQ(Result("aten::mm", "[[2],[3,4]]", two, ""), (Sizes{-1}));
}

// Operands of a byte an element, whose scales are in FP32.
TEST(ResultsTest, ProductsOfEightBitsReturnWhatTheyAreAskedFor) {
  const auto bytes_of_result = [](const std::string& types, const std::string& values,
                                  const std::string& name = "aten::_scaled_mm") {
    RecordedCall call(name, "[[32,16],[16,64],[1],[1],[],[],[],[]]\n" + types + "\n\n" + values, DType::kFloat);
    EXPECT_TRUE(AddResults({}, &call));
    const OpCall view = call.call();
    return view.tensors[view.outputs[0].first].element_size;
  };
  const std::string types = R"(["c10::Float8_e4m3fn","c10::Float8_e4m3fn","float","float","","","Scalar","Scalar"])";
  EXPECT_EQ(bytes_of_result(types, R"(["","","","","","","15","True"])"), 2u);
  EXPECT_EQ(bytes_of_result(types, R"(["","","","","","","6","True"])"), 4u);
  // PyTorch 2.1 to 2.4.
  EXPECT_EQ(bytes_of_result(R"(["c10::Float8_e5m2","c10::Float8_e4m3fn","","Scalar","float","float","","Scalar"])",
                            R"(["","","","6","","","","False"])"),
            4u);
  EXPECT_EQ(bytes_of_result(types, ""), 2u);
  EXPECT_EQ(bytes_of_result(R"(["signed char","signed char"])", "", "aten::_int_mm"), 4u);
}

TEST(ResultsTest, PoolsAndReductions) {
  const std::string pool = R"(["float","ScalarList","ScalarList","ScalarList","ScalarList","Scalar"])";
  EXPECT_EQ(Result("aten::max_pool2d_with_indices", "[[1,64,112,112],[],[],[],[],[]]", pool,
                   R"(["","[3, 3]","[2, 2]","[1, 1]","[1, 1]","False"])"),
            (Sizes{1, 64, 56, 56}));
  EXPECT_EQ(Result("aten::max_pool2d_with_indices", "[[1,64,113,113],[],[],[],[],[]]", pool,
                   R"(["","[2, 2]","[2, 2]","[0, 0]","[1, 1]","True"])"),
            (Sizes{1, 64, 57, 57}));
  const std::string mean = R"(["float","ScalarList","Scalar",""])";
  EXPECT_EQ(Result("aten::mean", "[[2,8,7,7],[],[],[]]", mean, R"(["","[-1, -2]","True",""])"), (Sizes{2, 8, 1, 1}));
  EXPECT_EQ(Result("aten::mean", "[[2,8,7,7],[],[],[]]", mean, R"(["","[2, 3]","False",""])"), (Sizes{2, 8}));
  EXPECT_EQ(Result("aten::sum", "[[2,8],[]]", R"(["float",""])", ""), (Sizes{}));
  EXPECT_EQ(Result("aten::mean", "[[2,8,7,7],[],[],[]]", R"(["float","GenericList","Bool",""])", "", {2, 8, 1, 1}),
            (Sizes{2, 8, 1, 1}));
}

TEST(ResultsTest, Elementwise) {
  EXPECT_EQ(Result("aten::add", "[[4,1,3],[5,1]]", R"(["float","float"])", ""), (Sizes{4, 5, 3}));
  EXPECT_EQ(Result("aten::add_", "[[4,3],[3]]", R"(["float","float"])", ""), (Sizes{4, 3}));
  EXPECT_EQ(Result("aten::embedding", "[[1000,16],[2,7]]", R"(["float","long int"])", ""), (Sizes{2, 7, 16}));
  EXPECT_EQ(Result("aten::cat", "[[[2,3],[4,3]],[]]", R"(["TensorList","Scalar"])", ""), (Sizes{18}));
  EXPECT_EQ(Result("aten::arange", "[[],[]]", R"(["Scalar",""])", ""), (Sizes{-1}));
}

TEST(ResultsTest, GradientsOfAConvolutionAreThoseOfTheMask) {
  RecordedCall call("aten::convolution_backward",
                    "[[8,64,112,112],[8,3,224,224],[64,3,7,7],[]]\n[\"float\",\"float\",\"float\",\"ScalarList\"]\n\n"
                    "[\"\",\"\",\"\",\"[False, True, False]\"]",
                    DType::kFloat);
  ASSERT_TRUE(AddResults({}, &call));
  const OpCall view = call.call();
  ASSERT_EQ(view.outputs.size(), 3u);
  EXPECT_EQ(view.outputs[0].kind, Argument::Kind::kNone);
  EXPECT_EQ(view.outputs[1].kind, Argument::Kind::kTensor);
  EXPECT_EQ(view.outputs[2].kind, Argument::Kind::kNone);
}

}  // namespace
}  // namespace rfinject::cli
