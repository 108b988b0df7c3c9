#include "cli/emit/markup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

namespace rfinject::cli {
namespace {

TEST(MarkupText, EscapesWhatEndsAnElementOrAnAttribute) {
  EXPECT_EQ(MarkupText("</script> \"a\" 'b' & <b>"), "&lt;/script&gt; &quot;a&quot; &#39;b&#39; &amp; &lt;b&gt;");
}

TEST(MarkupText, ShowsByNumberWhatXmlForbidsOrWhatReordersText) {
  EXPECT_EQ(MarkupText(std::string("\0", 1)), "&lt;U+0000&gt;");
  EXPECT_EQ(MarkupText("\x1b[31m"), "&lt;U+001B&gt;[31m");
  EXPECT_EQ(MarkupText("\x7f"), "&lt;U+007F&gt;");
  EXPECT_EQ(MarkupText("a\xe2\x80\xae"
                       "b"),
            "a&lt;U+202E&gt;b");
  EXPECT_EQ(MarkupText("\xef\xbf\xbe"), "&lt;U+FFFE&gt;");
  EXPECT_EQ(MarkupText("\xc2\x85"), "&lt;U+0085&gt;");
}

TEST(MarkupText, KeepsTextOfEveryScript) {
  const std::string text = "layer \xd7\xa9\xd7\x9b \xe5\xb1\x82 \xf0\x9f\x94\xa5 \xc3\xa9";
  EXPECT_EQ(MarkupText(text), text);
}

TEST(MarkupText, NamesBrokenBytesOneByOne) {
  EXPECT_EQ(MarkupText("\xff"), "&lt;byte FF&gt;");
  EXPECT_EQ(MarkupText("\xc3"), "&lt;byte C3&gt;");                     // cut
  EXPECT_EQ(MarkupText("\xc0\xaf"), "&lt;byte C0&gt;&lt;byte AF&gt;");  // overlong
  EXPECT_EQ(MarkupText("\xe0\x80\xaf"), "&lt;byte E0&gt;&lt;byte 80&gt;&lt;byte AF&gt;");
  EXPECT_EQ(MarkupText("\xed\xa0\x80"), "&lt;byte ED&gt;&lt;byte A0&gt;&lt;byte 80&gt;");  // a surrogate
  EXPECT_EQ(MarkupText("\xf4\x90\x80\x80").substr(0, 15), "&lt;byte F4&gt;");              // above U+10FFFF
}

TEST(JsonText, CannotEndAScriptElement) {
  EXPECT_EQ(JsonText("</script><!--&"), "\"\\u003c/script\\u003e\\u003c!--\\u0026\"");
}

TEST(JsonText, EscapesQuotesControlsAndLineSeparators) {
  EXPECT_EQ(JsonText("\"\\\n\x01"), "\"\\\"\\\\\\u000a\\u0001\"");
  EXPECT_EQ(JsonText("\xe2\x80\xa8"), "\"\\u2028\"");
  EXPECT_EQ(JsonText("\xff"), "\"\\ufffd\"");
  EXPECT_EQ(JsonText("\xf0\x9f\x94\xa5"), "\"\xf0\x9f\x94\xa5\"");
}

TEST(JsonNumber, ReadsBackAsTheSameDouble) {
  for (const double value : {0.0, 1.0, 0.1, 3628146688.0, 1.0 / 3, 1e300, -2.5e-7}) {
    EXPECT_EQ(std::stod(JsonNumber(value)), value);
  }
  EXPECT_EQ(JsonNumber(NAN), "null");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::infinity()), "null");
}

TEST(Coordinate, HasOneDigitAndNoNegativeZero) {
  EXPECT_EQ(Coordinate(1.25), "1.2");
  EXPECT_EQ(Coordinate(3), "3");
  EXPECT_EQ(Coordinate(-0.01), "0");
  EXPECT_EQ(Coordinate(-1.5), "-1.5");
}

TEST(TextWidth, GrowsWithTheTextAndCountsCodePoints) {
  EXPECT_GT(TextWidth("mmmm"), TextWidth("iiii"));
  EXPECT_DOUBLE_EQ(TextWidth("\xc3\xa9"), TextWidth("n"));
  EXPECT_DOUBLE_EQ(TextWidth(""), 0);
}

TEST(ElideMiddle, KeepsBothEndsAndNeverCutsACharacter) {
  EXPECT_EQ(ElideMiddle("layer1.0.conv1", 20), "layer1.0.conv1");
  EXPECT_EQ(ElideMiddle("abcdefghij", 5), "ab…ij");
  EXPECT_EQ(ElideMiddle("ééééééé", 4), "é…éé");
  EXPECT_EQ(ElideStart("abcdefghij", 5), "…ghij");
  EXPECT_EQ(ElideStart("abc", 5), "abc");
}

}  // namespace
}  // namespace rfinject::cli
