#include "injector/torch/symbols.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include "collector/testing/failing_memory.h"

namespace rfinject {
namespace {

// A library of torch's name that has none of its functions.
TEST(TorchSymbols, SayWhatIsMissingOrThatMemoryRanOut) {
  ASSERT_NE(dlopen(RFINJECT_EMPTY_TORCH, RTLD_NOW), nullptr) << dlerror();
  TorchSymbols symbols;
  EXPECT_GE(testing::FailEachAllocation([&] { EXPECT_TRUE(FindTorchSymbols(&symbols)); }),
            2);  // the path, and what is missing
  EXPECT_EQ(symbols.path, RFINJECT_EMPTY_TORCH);
  EXPECT_FALSE(symbols.has_record_function());
  EXPECT_NE(symbols.missing.find("at::addGlobalCallback, at::addThreadLocalCallback"), std::string::npos);
}

}  // namespace
}  // namespace rfinject
