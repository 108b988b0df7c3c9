#include "cli/cmd/text_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace rfinject::cli {
namespace {

TEST(TextFile, WhatOpensMayStillFailToBeRead) {
  const std::string path = ::testing::TempDir() + "/text_file_test.txt";
  std::ofstream(path, std::ios::binary) << std::string(20000, 'a') << std::string(1, '\0') << "b\n";
  EXPECT_EQ(ReadTextFile(path).value(), std::string(20000, 'a') + std::string(1, '\0') + "b\n");
  std::filesystem::remove(path);
  EXPECT_EQ(ReadTextFile(path).status().message(), path + ": No such file or directory");
  EXPECT_EQ(ReadTextFile("/").status().message(), "/: Is a directory");
  // Of the kind of a file of a process that has ended: the first page of no process is there.
  EXPECT_EQ(ReadTextFile("/proc/self/mem").status().message(), "/proc/self/mem: Input/output error");
}

}  // namespace
}  // namespace rfinject::cli
