#include "virtual_gpu/loader/stub_library.h"

#include <dlfcn.h>

#include <map>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace rfinject::virtual_gpu {
namespace {

std::map<std::string, int>& Calls() {
  static std::map<std::string, int> calls;
  return calls;
}

int Report(const char* name, int status) {
  ++Calls()[name];
  return status;
}

TEST(StubLibrary, EveryStubSaysItsNameAndReturnsItsStatus) {
  std::vector<Stub> stubs;
  for (int i = 0; i < 500; ++i) stubs.push_back({"stubLibraryTest" + std::to_string(i), 800 + i});
  ASSERT_EQ(LoadLibraryBytes(MakeLibrary("libstubtest.so.1", stubs, &Report), "stubs"), "");
  // By the name alone: the loader knows it, and there is no file.
  void* library = dlopen("libstubtest.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  for (const Stub& stub : stubs) {
    const auto function = reinterpret_cast<int (*)()>(dlsym(library, stub.name.c_str()));
    ASSERT_NE(function, nullptr) << stub.name;
    EXPECT_EQ(function(), stub.status);
    EXPECT_EQ(Calls()[stub.name], 1);
  }
  EXPECT_EQ(dlsym(library, "stubLibraryTest500"), nullptr);
}

TEST(StubLibrary, OneWhoseTypeIsATextReturnsAText) {
  ASSERT_EQ(LoadLibraryBytes(MakeLibrary("libstubtext.so.1", {{"stubLibraryText", 7, true}}, &Report), "text"), "");
  void* library = dlopen("libstubtext.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto function = reinterpret_cast<const char* (*)()>(dlsym(library, "stubLibraryText"));
  ASSERT_NE(function, nullptr);
  EXPECT_STREQ(function(), "not supported on rfinject's virtual GPU");
  EXPECT_EQ(Calls()["stubLibraryText"], 1);
}

TEST(StubLibrary, WhatIsNotInItIsFoundInWhatItNeeds) {
  ASSERT_EQ(LoadLibraryBytes(MakeLibrary("libstubneeded.so.1", {{"stubLibraryNeeded", 9}}, &Report), "needed"), "");
  ASSERT_EQ(LoadLibraryBytes(MakeLibrary("libstubneeds.so.1", {}, nullptr, {"libstubneeded.so.1"}), "needs"), "");
  void* library = dlopen("libstubneeds.so.1", RTLD_NOW | RTLD_NOLOAD);
  ASSERT_NE(library, nullptr);
  const auto function = reinterpret_cast<int (*)()>(dlsym(library, "stubLibraryNeeded"));
  ASSERT_NE(function, nullptr);
  EXPECT_EQ(function(), 9);
}

TEST(StubLibrary, AnEmptyOneStandsForItsName) {
  ASSERT_EQ(dlopen("libstubempty.so.7", RTLD_NOW), nullptr);
  ASSERT_EQ(LoadLibraryBytes(MakeLibrary("libstubempty.so.7", {}, nullptr), "empty"), "");
  EXPECT_NE(dlopen("libstubempty.so.7", RTLD_NOW), nullptr);
}

}  // namespace
}  // namespace rfinject::virtual_gpu
