#include "cli/import/numbers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>

namespace rfinject::cli {
namespace {

struct NumberCase {
  const char* text;
  DecimalMark mark;
  double value;
};

TEST(ParseNumber, ReadsWhatPeopleHave) {
  const NumberCase cases[] = {
      {"0", DecimalMark::kUnknown, 0},
      {"1,215,000,000.00", DecimalMark::kUnknown, 1215000000.0},
      {"27.595.520", DecimalMark::kUnknown, 27595520.0},
      {"27.595.520,5", DecimalMark::kPoint, 27595520.5},  // evidence beats the file's mark
      {"1 234,5", DecimalMark::kUnknown, 1234.5},
      {"1\u202F234\u202F567,25", DecimalMark::kUnknown, 1234567.25},
      {"1'234'567.25", DecimalMark::kUnknown, 1234567.25},
      {"12.34", DecimalMark::kUnknown, 12.34},
      {"1,234", DecimalMark::kPoint, 1234.0},
      {"1,234", DecimalMark::kComma, 1.234},
      {"1.234", DecimalMark::kPoint, 1.234},
      {"1.234", DecimalMark::kComma, 1234.0},
      {"0,125", DecimalMark::kPoint, 0.125},
      {"-3.5", DecimalMark::kUnknown, -3.5},
      {"1.5e+09", DecimalMark::kUnknown, 1.5e9},
      {"9007199254740993", DecimalMark::kUnknown, 9007199254740992.0},
      {"123456789012345678901234", DecimalMark::kUnknown, 123456789012345678901234.0},
  };
  for (const NumberCase& c : cases) {
    const auto value = ParseNumber(c.text, c.mark);
    ASSERT_TRUE(value.has_value()) << c.text;
    EXPECT_NEAR(*value, c.value, std::abs(c.value) * 1e-15) << c.text;
  }
}

TEST(ParseNumber, RefusesWhatIsNoNumber) {
  for (const char* text : {"", "-", "n/a", "nan", "inf", "12abc", "1.2.3,4,5", ".", ",", "1e", "1e+", "1e99999",
                           "0x10", "--1", "12 MB"}) {
    EXPECT_FALSE(ParseNumber(text, DecimalMark::kUnknown).has_value()) << text;
  }
}

TEST(EvidenceOf, OneGroupProvesNothing) {
  EXPECT_EQ(EvidenceOf("1.234"), DecimalMark::kUnknown);
  EXPECT_EQ(EvidenceOf("123,456"), DecimalMark::kUnknown);
  EXPECT_EQ(EvidenceOf("42"), DecimalMark::kUnknown);
  EXPECT_EQ(EvidenceOf("1234.567"), DecimalMark::kPoint);  // four digits before are no group
  EXPECT_EQ(EvidenceOf("0.125"), DecimalMark::kPoint);
  EXPECT_EQ(EvidenceOf("1,23"), DecimalMark::kComma);
  EXPECT_EQ(EvidenceOf("1.234.567"), DecimalMark::kComma);
}

TEST(ParseUnit, ScalesToTheBase) {
  const struct {
    const char* unit;
    double factor;
    Dimension dimension;
  } cases[] = {
      {"", 1, Dimension::kCount},
      {"byte", 1, Dimension::kBytes},
      {"Kbyte", 1e3, Dimension::kBytes},
      {"Mbyte", 1e6, Dimension::kBytes},
      {"Gbyte", 1e9, Dimension::kBytes},
      {"MB", 1e6, Dimension::kBytes},
      {"KiB", 1024, Dimension::kBytes},
      {"nsecond", 1e-9, Dimension::kSeconds},
      {"usecond", 1e-6, Dimension::kSeconds},
      {"us", 1e-6, Dimension::kSeconds},
      {"ms", 1e-3, Dimension::kSeconds},
      {"inst", 1, Dimension::kCount},
      {"Ghz", 1e9, Dimension::kPerSecond},
      {"cycle/nsecond", 1e9, Dimension::kPerSecond},
      {"Gbyte/second", 1e9, Dimension::kBytesPerSecond},
      {"byte/second", 1, Dimension::kBytesPerSecond},
      {"%", 1, Dimension::kPercent},
  };
  for (const auto& c : cases) {
    const auto scale = ParseUnit(c.unit);
    ASSERT_TRUE(scale.has_value()) << c.unit;
    EXPECT_NEAR(scale->factor / c.factor, 1, 1e-12) << c.unit;
    EXPECT_EQ(scale->dimension, c.dimension) << c.unit;
  }
}

TEST(ParseNumber, TheShortWayGivesWhatTheLongOneGives) {
  // A sign keeps a number from the short way. All texts of up to 6 of these characters, and long ones drawn at
  // random.
  constexpr std::string_view kCharacters = "0123.,";
  const auto compare = [](const std::string& text) {
    for (const DecimalMark mark : {DecimalMark::kUnknown, DecimalMark::kPoint, DecimalMark::kComma}) {
      const auto direct = ParseNumber(text, mark), signed_one = ParseNumber("+" + text, mark);
      ASSERT_EQ(direct.has_value(), signed_one.has_value()) << text;
      ASSERT_EQ(direct.value_or(-1), signed_one.value_or(-1)) << text;
    }
  };
  for (size_t length = 1; length <= 6; ++length) {
    size_t count = 1;
    for (size_t i = 0; i < length; ++i) count *= kCharacters.size();
    for (size_t n = 0; n < count; ++n) {
      std::string text;
      for (size_t i = 0, rest = n; i < length; ++i, rest /= kCharacters.size()) {
        text += kCharacters[rest % kCharacters.size()];
      }
      ASSERT_NO_FATAL_FAILURE(compare(text));
    }
  }
  uint32_t state = 1;
  const auto draw = [&](uint32_t below) { return (state = state * 1664525u + 1013904223u) % 65536u % below; };
  for (int n = 0; n < 20000; ++n) {
    std::string text;
    for (uint32_t length = 7 + draw(20); length > 0; --length)
      text += draw(5) == 0 ? ".,"[draw(2)] : static_cast<char>('0' + draw(10));
    ASSERT_NO_FATAL_FAILURE(compare(text));
  }
}

TEST(ParseUnit, RefusesUnknownUnits) {
  for (const char* unit : {"furlong", "Mfoo", "byte/byte", "byte/", "/second", "second/second"}) {
    EXPECT_FALSE(ParseUnit(unit).has_value()) << unit;
  }
}

}  // namespace
}  // namespace rfinject::cli
