#include "injector/native/frame_role.h"

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "injector/native/elf_functions.h"

namespace rfinject {
namespace {

using Kind = FrameRole::Kind;

void Expect(std::string_view name, Kind kind, std::string_view class_name = "", bool of_torch = false) {
  const FrameRole role = RoleOfFunction(name);
  EXPECT_EQ(role.kind, kind) << name;
  EXPECT_EQ(role.class_name, class_name) << name;
  EXPECT_EQ(role.of_torch, of_torch) << name;
}

TEST(FrameRoleTest, Modules) {
  Expect("torch::nn::Conv2dImpl::forward(at::Tensor const&)", Kind::kModule, "Conv2d", true);
  Expect("Net::forward(at::Tensor)", Kind::kModule, "Net");
  Expect("(anonymous namespace)::BlockImpl::forward(at::Tensor) [clone .cold]", Kind::kModule, "Block");
  Expect("at::Tensor torch::nn::SequentialImpl::forward<at::Tensor, at::Tensor&>(at::Tensor&)", Kind::kModule,
         "Sequential", true);
  Expect("torch::nn::BatchNormImplBase<2ul, torch::nn::BatchNorm2dImpl>::forward(at::Tensor const&)", Kind::kModule,
         "BatchNorm2d", true);
  Expect("std::pair<at::Tensor, int> my::Thing<float>::forward(std::vector<at::Tensor, std::allocator<at::Tensor> >)",
         Kind::kModule, "Thing");
  Expect(
      "torch::nn::AnyModuleHolder<(anonymous namespace)::BasicBlockImpl, at::Tensor>::forward("
      "std::vector<torch::nn::AnyValue, std::allocator<torch::nn::AnyValue> >&&)",
      Kind::kHolder, "BasicBlock");
}

TEST(FrameRoleTest, OtherPhases) {
  Expect("torch::optim::SGD::step(std::function<at::Tensor ()>)", Kind::kOptimizerStep);
  Expect("torch::optim::Optimizer::zero_grad()", Kind::kZeroGrad);
  Expect("torch::nn::Module::zero_grad()", Kind::kZeroGrad);
  Expect("torch::data::StatelessDataLoader<A, B>::next()", Kind::kData);
}

TEST(FrameRoleTest, NoRole) {
  Expect("torch::nn::AnyValue torch::nn::AnyModule::any_forward<at::Tensor&>(at::Tensor&)", Kind::kNone);
  Expect("Net::forward(at::Tensor)::{lambda(int)#1}::operator()(int) const", Kind::kNone);
  Expect("torch::autograd::CppFunction::forward(int)", Kind::kNone);
  Expect("std::forward(int)", Kind::kNone);
  Expect("forward(int)", Kind::kNone);
  Expect("main", Kind::kNone);
  Expect("", Kind::kNone);
  Expect("((((", Kind::kNone);
  Expect("a<b<c::forward(", Kind::kNone);
  EXPECT_FALSE(MayHaveRole("forward"));
  EXPECT_TRUE(MayHaveRole("_ZN3Net7forwardEN2at6TensorE"));
}

TEST(FrameRoleTest, Demangles) {
  EXPECT_EQ(Demangle("_ZN3Net7forwardEi"), "Net::forward(int)");
  EXPECT_EQ(Demangle("main"), "main");
  EXPECT_EQ(Demangle("_Znonsense"), "_Znonsense");
}

[[gnu::noinline, gnu::used]] int FindMeByName(int x) { return x + 1; }

TEST(ElfFunctionsTest, FindsThisProgramsOwn) {
  std::map<std::string, uint64_t> sizes;
  ASSERT_TRUE(VisitElfFunctions(
      "/proc/self/exe",
      [](void* data, uint64_t begin, uint64_t end, const char* name) {
        (*static_cast<std::map<std::string, uint64_t>*>(data))[Demangle(name)] = end - begin;
      },
      &sizes));
  EXPECT_GT(sizes["main"], 0u);
  EXPECT_GT(sizes["rfinject::(anonymous namespace)::FindMeByName(int)"], 0u);
}

TEST(ElfFunctionsTest, RefusesWhatIsNoElfFile) {
  const VisitFunction none = [](void*, uint64_t, uint64_t, const char*) { ADD_FAILURE(); };
  EXPECT_FALSE(VisitElfFunctions("/etc/passwd", none, nullptr));
  EXPECT_FALSE(VisitElfFunctions("/nowhere", none, nullptr));
  EXPECT_FALSE(VisitElfFunctions("/", none, nullptr));
}

}  // namespace
}  // namespace rfinject
