#include "cli/cmd/defaults.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>

#include "cli/cmd/commands.h"

namespace rfinject::cli {
namespace {

std::string Said(std::string_view text, bool of_folder = false) {
  const absl::StatusOr<std::vector<Default>> parsed = ParseDefaults(text, "f.toml", of_folder);
  if (!parsed.ok()) return std::string(parsed.status().message());
  std::string said;
  for (const Default& one : *parsed) said += one.verb + "." + one.option + "=" + one.value + ";";
  return said;
}

TEST(ParseDefaults, EveryKindOfValue) {
  EXPECT_EQ(Said("[run]\nskip = 10\noverhead = 0.5\nquiet = true\nkill = false\n[report]\nby = \"op\"\n"),
            "report.by=op;run.overhead=0.5;run.quiet=;run.skip=10;");
  EXPECT_EQ(Said(""), "");
}

TEST(ParseDefaults, MistakesNameTheLine) {
  EXPECT_EQ(Said("[run]\n\nskipp = 1\n"), "f.toml:3: [run] skipp: there is no such option; did you mean skip?");
  EXPECT_EQ(Said("[runn]\nskip = 1\n"), "f.toml:1: 'runn' is no table of a verb, such as [run] or [report]");
  EXPECT_EQ(Said("skip = 1\n"), "f.toml:1: 'skip' is no table of a verb, such as [run] or [report]");
  EXPECT_EQ(Said("[run]\nskip = true\n"), "f.toml:2: [run] skip wants a value, not true or false");
  EXPECT_EQ(Said("[run]\nquiet = 1\n"), "f.toml:2: [run] quiet wants true or false");
  EXPECT_EQ(Said("[run]\nskip = [1]\n"), "f.toml:2: [run] skip wants a text or a number");
  EXPECT_EQ(Said("[run\n").substr(0, 9), "f.toml:1:");
}

TEST(ParseDefaults, TheWorkingFoldersFileNamesNoFiles) {
  for (const char* text : {"[run]\noutput = \"/x\"", "[report]\nforce = true", "[doctor]\npython = \"./evil\"",
                           "[report]\ntheory = \"x\""}) {
    EXPECT_EQ(Said(text, true).substr(0, 9), "f.toml:2:") << text;
    EXPECT_NE(Said(text, false).substr(0, 6), "f.toml") << text;
  }
  EXPECT_EQ(Said("[run]\nskip = 1", true), "run.skip=1;");
}

TEST(ParseDefaults, NestingIsBounded) { EXPECT_EQ(Said("[run]\nskip = " + std::string(60000, '['))[0], 'f'); }

class Files : public ::testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/rfinject-defaults-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    std::filesystem::create_directory(folder_ + "/config");
    std::filesystem::create_directory(folder_ + "/work");
    ASSERT_EQ(chdir((folder_ + "/work").c_str()), 0);
    setenv("XDG_CONFIG_HOME", (folder_ + "/config").c_str(), 1);
    unsetenv("RFINJECT_CONFIG");
    unsetenv("RFINJECT_SKIP");
    unsetenv("RFINJECT_LOG");
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  static void Write(const std::string& path, const std::string& text, mode_t mode = 0644) {
    std::ofstream(path) << text;
    ASSERT_EQ(chmod(path.c_str(), mode), 0);
  }
  // What `rfinject run WORDS` would go by.
  static ParsedOptions Run(std::vector<std::string> words) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    ParsedOptions parsed;
    EXPECT_FALSE(ParseOptions("run", RunHelp(), arguments, &parsed));
    parsed.words.clear();
    return parsed;
  }

  std::string folder_;
};

TEST_F(Files, TheNearerCounts) {
  Write(folder_ + "/config/rfinject.toml", "[run]\nskip = 1\nsteps = 2\noutput = \"/x/\"\nquiet = true\n");
  Write(".rfinject.toml", "[run]\nskip = 3\n");
  ParsedOptions parsed = Run({"true"});
  EXPECT_EQ(parsed.Value("skip"), "3");
  EXPECT_EQ(parsed.Value("steps"), "2");
  EXPECT_EQ(parsed.Value("output"), "/x/");
  EXPECT_TRUE(parsed.Has("quiet"));
  parsed = Run({"--skip", "4", "-v", "true"});
  EXPECT_EQ(parsed.Value("skip"), "4");
  EXPECT_FALSE(parsed.Has("quiet"));
  setenv("RFINJECT_SKIP", "5", 1);  // MakeVariables leaves it alone
  EXPECT_FALSE(Run({"true"}).Has("skip"));
}

TEST_F(Files, VariablesGoBeforeFilesForEveryVerb) {
  Write(".rfinject.toml", "[report]\nby = \"phase\"\nstrict = true\nformat = \"json\"\n");
  const auto report = [](std::vector<std::string> words, int code = 0) {
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    ParsedOptions parsed;
    EXPECT_EQ(ParseOptions("report", ReportHelp(), arguments, &parsed).value_or(0), code);
    parsed.words.clear();
    return parsed;
  };
  setenv("RFINJECT_REPORT_BY", "op", 1);
  setenv("RFINJECT_REPORT_STRICT", "0", 1);
  setenv("RFINJECT_BY", "kernel", 1);  // nobody's
  ParsedOptions parsed = report({});
  EXPECT_EQ(parsed.Value("by"), "op");
  EXPECT_FALSE(parsed.Has("strict"));
  EXPECT_EQ(parsed.Value("format"), "json");
  EXPECT_EQ(report({"--by", "layer"}).Value("by"), "layer");
  setenv("RFINJECT_REPORT_STRICT", "1", 1);
  EXPECT_TRUE(report({}).Has("strict"));
  setenv("RFINJECT_CONFIG", "", 1);
  EXPECT_TRUE(report({}).values.empty());
  unsetenv("RFINJECT_CONFIG");
  setenv("RFINJECT_REPORT_RAW", "maybe", 1);
  report({}, 2);
  for (const char* name : {"RFINJECT_REPORT_BY", "RFINJECT_REPORT_STRICT", "RFINJECT_REPORT_RAW", "RFINJECT_BY"}) {
    unsetenv(name);
  }
  EXPECT_EQ(UnknownVariables({"RFINJECT_REPORT_BYE", "RFINJECT_REPORT_BY", "RFINJECT_OVERHEAD", "RFINJECT_DIFF_BY"}),
            std::vector<std::string>{"RFINJECT_REPORT_BYE"});
}

// A verb has options whose variables are not read as another verb's.
TEST_F(Files, NoVariableIsTwoOptions) {
  std::map<std::string, std::string> seen;
  for (const Command& command : AllCommands()) {
    if (command.name == "env") continue;  // has run's
    for (const Option& option : command.describe().options) {
      const std::string variable = VariableOf(command.name, option.name);
      const auto [known, is_new] = seen.emplace(variable, std::string(command.name));
      EXPECT_TRUE(is_new || variable == "RFINJECT_LOG")
          << variable << " of " << command.name << " and " << known->second;
    }
  }
}

TEST_F(Files, WhatOthersMayWriteIsNotUsed) {
  Write(".rfinject.toml", "[run]\nskip = 3\n", 0666);
  EXPECT_FALSE(Run({"true"}).Has("skip"));
  const auto files = ReadDefaultsFiles();
  ASSERT_TRUE(files.ok());
  ASSERT_EQ(files->size(), 1u);
  EXPECT_EQ((*files)[0].ignored, "others may write to it (chmod go-w)");
}

TEST_F(Files, RfinjectConfigNamesAnotherOrNone) {
  Write(".rfinject.toml", "[run]\nskip = 3\n");
  Write("other.toml", "[run]\nskip = 6\n");
  setenv("RFINJECT_CONFIG", "other.toml", 1);
  EXPECT_EQ(Run({"true"}).Value("skip"), "6");
  setenv("RFINJECT_CONFIG", "", 1);
  EXPECT_FALSE(Run({"true"}).Has("skip"));
}

TEST_F(Files, AMistakeIsSaid) {
  Write(".rfinject.toml", "[run]\nskipp = 3\n");
  char word[] = "true";
  char* words[] = {word};
  ParsedOptions parsed;
  EXPECT_EQ(ParseOptions("run", RunHelp(), words, &parsed), 2);
}

}  // namespace
}  // namespace rfinject::cli
