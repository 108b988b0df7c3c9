#include "cli/text/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace rfinject::cli {
namespace {

TEST(Units, Prefixes) {
  EXPECT_EQ(WithPrefix(0, "B"), "0 B");
  EXPECT_EQ(WithPrefix(7, "B"), "7 B");
  EXPECT_EQ(WithPrefix(999, "B"), "999 B");
  EXPECT_EQ(WithPrefix(1000, "B"), "1.00 kB");
  EXPECT_EQ(WithPrefix(999499, "B"), "999 kB");
  EXPECT_EQ(WithPrefix(999500, "B"), "1.00 MB");  // never "1000 kB"
  EXPECT_EQ(WithPrefix(15.7e12, "FLOP/s"), "15.7 TFLOP/s");
  EXPECT_EQ(WithPrefix(312e12, "FLOP/s"), "312 TFLOP/s");
  EXPECT_EQ(WithPrefix(5e21, "B"), "5000 EB");
  EXPECT_EQ(WithPrefix(std::numeric_limits<double>::infinity(), "B"), "-");
}

TEST(Units, Durations) {
  EXPECT_EQ(Duration(0), "0 ns");
  EXPECT_EQ(Duration(0.3), "<1 ns");
  EXPECT_EQ(Duration(850), "850 ns");
  EXPECT_EQ(Duration(2500), "2.50 us");
  EXPECT_EQ(Duration(999600), "1.00 ms");
  EXPECT_EQ(Duration(12.34e6), "12.3 ms");
  EXPECT_EQ(Duration(2.1e9), "2.10 s");
  EXPECT_EQ(Duration(3.6e12), "3600 s");
}

TEST(Units, PlainNumbers) {
  EXPECT_EQ(Plain(0), "0");
  EXPECT_EQ(Plain(0.01234), "0.0123");
  EXPECT_EQ(Plain(1), "1.00");
  EXPECT_EQ(Plain(17.44), "17.4");
  EXPECT_EQ(Plain(138.9), "139");
  EXPECT_EQ(Plain(12345), "12345");
}

TEST(Units, SharesDoNotRoundToAllOrNothing) {
  EXPECT_EQ(Percent(0), "0 %");
  EXPECT_EQ(Percent(1e-6), "<0.1 %");
  EXPECT_EQ(Percent(0.004), "0.4 %");
  EXPECT_EQ(Percent(0.5), "50 %");
  EXPECT_EQ(Percent(0.994), "99.4 %");
  EXPECT_EQ(Percent(0.99999), ">99.9 %");
  EXPECT_EQ(Percent(1), "100 %");
  EXPECT_EQ(Percent(1.07), "107 %");
}

TEST(Units, Groups) {
  EXPECT_EQ(Grouped(0), "0");
  EXPECT_EQ(Grouped(999), "999");
  EXPECT_EQ(Grouped(1000), "1,000");
  EXPECT_EQ(Grouped(11689512), "11,689,512");
}

TEST(Units, CountsOfAnySize) {
  EXPECT_EQ(Count(0), "0");
  EXPECT_EQ(Count(1234567), "1,234,567");
  EXPECT_EQ(Count(1.5), "1.50");
  EXPECT_EQ(Count(-3), "-3.00");
  EXPECT_EQ(Count(18446744073709549568.0), "18,446,744,073,709,549,568");  // the last double below 2^64
  EXPECT_EQ(Count(18446744073709551616.0), "1.84e+19");
  EXPECT_EQ(Count(std::numeric_limits<double>::infinity()), "-");
  EXPECT_EQ(Count(std::numeric_limits<double>::quiet_NaN()), "-");
}

}  // namespace
}  // namespace rfinject::cli
