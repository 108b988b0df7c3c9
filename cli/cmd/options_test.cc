#include "cli/cmd/options.h"

#include <gtest/gtest.h>

#include <string>

#include "cli/cmd/launch.h"

namespace rfinject::cli {
namespace {

constexpr Option kOptions[] = {{"output", 'o', "FILE", "where"},
                               {"strict", 's', "", "flag"},
                               {"quiet", 'q', "", "flag"},
                               {"steps", 0, "N", "number"}};

struct Parse {
  Parse(std::vector<std::string> words, std::string_view kind) : storage(std::move(words)) {
    for (std::string& word : storage) pointers.push_back(word.data());
    ::testing::internal::CaptureStderr();
    ::testing::internal::CaptureStdout();
    code = ParseOptions("verb", {"usage", {std::begin(kOptions), std::end(kOptions)}, kind}, pointers, &parsed);
    out = ::testing::internal::GetCapturedStdout();
    errors = ::testing::internal::GetCapturedStderr();
    rest = parsed.words;
  }
  std::vector<std::string> storage;
  std::vector<char*> pointers;
  ParsedOptions parsed;
  std::optional<int> code;
  std::vector<std::string> rest;
  std::string out, errors;
};

using Words = std::vector<std::string>;

TEST(Options, EveryWayToGiveAValue) {
  for (const Words& words : {Words{"-o", "x"}, Words{"-ox"}, Words{"--output", "x"}, Words{"--output=x"},
                             Words{"-sox"}, Words{"-so", "x"}}) {
    Parse parse(words, kFiles);
    EXPECT_FALSE(parse.code) << parse.errors;
    EXPECT_EQ(parse.parsed.Value("output"), "x");
  }
  Parse last({"-o", "x", "-o", "y"}, kFiles);
  EXPECT_EQ(last.parsed.Value("output"), "y");
  Parse dash({"--output=x", "-o", "-"}, kFiles);
  EXPECT_EQ(dash.parsed.Value("output"), "-");
}

TEST(Options, WordsAnywhere) {
  Parse parse({"a", "--strict", "b", "--", "-o", "--nothing"}, kFiles);
  EXPECT_FALSE(parse.code);
  EXPECT_EQ(parse.rest, (Words{"a", "b", "-o", "--nothing"}));
  EXPECT_TRUE(parse.parsed.Has("strict"));
  EXPECT_FALSE(parse.parsed.Has("output"));
}

TEST(Options, TheFirstWordEndsThem) {
  Parse parse({"-q", "python", "-o", "y", "--bogus", "--", "z"}, kPrograms);
  EXPECT_FALSE(parse.code);
  EXPECT_EQ(parse.rest, (Words{"python", "-o", "y", "--bogus", "--", "z"}));
  EXPECT_FALSE(parse.parsed.Has("output"));
  Parse dashes({"-o", "x", "--", "-q", "--"}, kPrograms);
  EXPECT_EQ(dashes.rest, (Words{"-q", "--"}));
}

TEST(Options, MistakesAreUsageErrors) {
  for (const Words& words : {Words{"--nothing"}, Words{"-x"}, Words{"-qx"}, Words{"--strict=1"}, Words{"-o"},
                             Words{"--output"}, Words{"--=x"}, Words{"---"}, Words{"--output="}, Words{"-o", ""},
                             Words{"-so", ""}, Words{"a", ""}, Words{"--", ""}}) {
    Parse parse(words, kFiles);
    ASSERT_TRUE(parse.code) << words[0];
    EXPECT_EQ(*parse.code, 2);
    EXPECT_NE(parse.errors.find("rfinject verb: "), std::string::npos);
    EXPECT_EQ(parse.out, "");
  }
  // What a script with an unset variable gives. A program's own arguments may be empty.
  EXPECT_NE(Parse({"-o", ""}, kFiles).errors.find("--output is empty; it wants FILE"), std::string::npos);
  EXPECT_FALSE(Parse({"program", ""}, kPrograms).code);
  EXPECT_NE(Parse({"--ouptut=x"}, kFiles).errors.find("did you mean --output?"), std::string::npos);
}

TEST(Options, Help) {
  for (const char* word : {"-h", "--help"}) {
    Parse parse({word}, kPrograms);
    ASSERT_TRUE(parse.code);
    EXPECT_EQ(*parse.code, 0);
    EXPECT_NE(parse.out.find("-o, --output FILE"), std::string::npos);
    EXPECT_EQ(parse.errors, "");
  }
}

TEST(Options, Numbers) {
  uint64_t value = 7;
  EXPECT_TRUE(ParseNumber("0", &value));
  EXPECT_EQ(value, 0u);
  EXPECT_TRUE(ParseNumber("1234567890123456789", &value));
  for (const char* text : {"", "-1", "+1", " 1", "1 ", "0x10", "1e3", "99999999999999999999"}) {
    EXPECT_FALSE(ParseNumber(text, &value)) << text;
  }
}

TEST(Options, Nearest) {
  constexpr std::string_view kWords[] = {"report", "merge", "run"};
  EXPECT_EQ(Nearest("reprot", kWords), "report");
  EXPECT_EQ(Nearest("Merge", kWords), "merge");
  EXPECT_EQ(Nearest("python", kWords), "");
  EXPECT_EQ(Nearest("", kWords), "");
}

TEST(Launch, PreloadIsPrependedOnce) {
  EXPECT_EQ(PrependPreload("/l.so", ""), "/l.so");
  EXPECT_EQ(PrependPreload("/l.so", "/a.so b.so"), "/l.so:/a.so b.so");
  EXPECT_EQ(PrependPreload("/l.so", "/l.so:/a.so"), "/l.so:/a.so");
  EXPECT_EQ(PrependPreload("/l.so", "/l.so"), "/l.so");
}

TEST(Launch, PatternFolders) {
  EXPECT_EQ(PatternFolder("/a/b/"), "/a/b/");
  EXPECT_EQ(PatternFolder("/a/b"), "/a/");
  EXPECT_EQ(PatternFolder("/a/%h/b/x.rfx"), "/a/");
  EXPECT_EQ(PatternFolder("/a/b%p.rfx"), "/a/");
  EXPECT_EQ(PatternFolder("/100%%/x"), "/100%/");
  EXPECT_EQ(PatternFolder("x"), "");
}

TEST(Launch, AbsolutePatterns) {
  EXPECT_EQ(AbsolutePattern("/a/%p"), "/a/%p");
  const std::string absolute = AbsolutePattern("a/%p");
  EXPECT_EQ(absolute[0], '/');
  EXPECT_TRUE(absolute.ends_with("/a/%p"));
}

}  // namespace
}  // namespace rfinject::cli
