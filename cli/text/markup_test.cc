#include "cli/text/markup.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <string>
#include <type_traits>

namespace rfinject::cli {
namespace {

TEST(Escaped, EscapesWhatEndsAnElementOrAnAttribute) {
  EXPECT_EQ(Escaped("</script> \"a\" 'b' & <b>").text(), "&lt;/script&gt; &quot;a&quot; &#39;b&#39; &amp; &lt;b&gt;");
}

TEST(Escaped, ShowsByNumberWhatXmlForbidsOrWhatReordersText) {
  EXPECT_EQ(Escaped(std::string("\0", 1)).text(), "&lt;U+0000&gt;");
  EXPECT_EQ(Escaped("\x1b[31m").text(), "&lt;U+001B&gt;[31m");
  EXPECT_EQ(Escaped("\x7f").text(), "&lt;U+007F&gt;");
  EXPECT_EQ(Escaped("a\xe2\x80\xae"
                    "b")
                .text(),
            "a&lt;U+202E&gt;b");
  EXPECT_EQ(Escaped("\xef\xbf\xbe").text(), "&lt;U+FFFE&gt;");
  EXPECT_EQ(Escaped("\xc2\x85").text(), "&lt;U+0085&gt;");
}

TEST(Escaped, KeepsTextOfEveryScript) {
  const std::string text = "layer \xd7\xa9\xd7\x9b \xe5\xb1\x82 \xf0\x9f\x94\xa5 \xc3\xa9";
  EXPECT_EQ(Escaped(text).text(), text);
}

TEST(Escaped, NamesBrokenBytesOneByOne) {
  EXPECT_EQ(Escaped("\xff").text(), "&lt;byte FF&gt;");
  EXPECT_EQ(Escaped("\xc3").text(), "&lt;byte C3&gt;");                     // cut
  EXPECT_EQ(Escaped("\xc0\xaf").text(), "&lt;byte C0&gt;&lt;byte AF&gt;");  // overlong
  EXPECT_EQ(Escaped("\xe0\x80\xaf").text(), "&lt;byte E0&gt;&lt;byte 80&gt;&lt;byte AF&gt;");
  EXPECT_EQ(Escaped("\xed\xa0\x80").text(), "&lt;byte ED&gt;&lt;byte A0&gt;&lt;byte 80&gt;");  // a surrogate
  EXPECT_EQ(Escaped("\xf4\x90\x80\x80").text().substr(0, 15), "&lt;byte F4&gt;");              // above U+10FFFF
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
    EXPECT_EQ(std::stod(JsonNumber(value).text()), value);
  }
  EXPECT_EQ(JsonNumber(NAN).text(), "null");
  EXPECT_EQ(JsonNumber(std::numeric_limits<double>::infinity()).text(), "null");
}

TEST(Coordinate, HasOneDigitAndNoNegativeZero) {
  EXPECT_EQ(Coordinate(1.25).text(), "1.2");
  EXPECT_EQ(Coordinate(3).text(), "3");
  EXPECT_EQ(Coordinate(-0.01).text(), "0");
  EXPECT_EQ(Coordinate(-1.5).text(), "-1.5");
}

TEST(Fragment, IsPutTogetherOfLiteralsDigitsAndItsOwnLanguage) {
  Markup markup = {"<a n=\"", Digits(3), "\">"};
  markup.Add({Escaped("<x>"), Coordinate(1.5), "</a>"});
  EXPECT_EQ(markup.text(), "<a n=\"3\">&lt;x&gt;1.5</a>");
  const ScriptJson json = {"{\"k\":", JsonString("</script>"), "}"};
  EXPECT_EQ(InScript(json).text(), "{\"k\":\"\\u003c/script\\u003e\"}");
}

// Text that was not escaped is no part of any language, and no language is part of another.
template <typename Fragment, typename... Other>
constexpr bool kTakesNone = !(std::is_convertible_v<Other, typename Fragment::Part> || ...) &&
                            !(std::is_constructible_v<typename Fragment::Part, Other> || ...) &&
                            !(std::is_constructible_v<Fragment, Other> || ...);
static_assert(kTakesNone<Markup, std::string, std::string_view, const char*, char, double, ScriptJson, Css>);
static_assert(kTakesNone<ScriptJson, std::string, std::string_view, const char*, char, double, Markup, Css>);
static_assert(kTakesNone<Css, std::string, std::string_view, const char*, char, double, Markup, ScriptJson>);
static_assert(!std::is_constructible_v<Digits, std::string> && !std::is_constructible_v<Digits, char>);

TEST(RoundedJsonNumber, IsAsShortAsItCanBeSaid) {
  const auto text = [](double value) { return RoundedJsonNumber(value, 5).text(); };
  EXPECT_EQ(text(166249999), "16625e4");
  EXPECT_EQ(text(0.009476449), "94764e-7");
  EXPECT_EQ(text(-0.009476449), "-94764e-7");
  EXPECT_EQ(text(0), "0");
  EXPECT_EQ(text(12.5), "12.5");
  EXPECT_EQ(text(310), "310");
  EXPECT_EQ(text(1e300), "1e300");
  EXPECT_EQ(text(std::nan("")), "null");
  for (const double value : {1.0, 123456789.0, 5e-324, 0.1, 99999.6}) {
    const double read = std::strtod(text(value).c_str(), nullptr);
    EXPECT_NEAR(read / value, 1, value < 1e-300 ? 1 : 5e-5) << value;
  }
}

}  // namespace
}  // namespace rfinject::cli
