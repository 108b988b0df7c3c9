#include "cli/picture/palette.h"

#include <cstddef>
#include <initializer_list>

#include "proto/wire/vocabulary.h"

namespace rfinject::cli {
namespace {

struct Shade {
  Literal light, dark;
};

// By Precision. Each has a contrast of at least 3:1 against its ground.
constexpr Shade kPrecisionShades[kToneCount] = {
    {"#7a6a00", "#f0e442"},  // FP64
    {"#0067a5", "#5ab4f0"},  // FP32
    {"#00838f", "#6fe0e8"},  // FP16 scalar
    {"#c8500a", "#ff9d4d"},  // TF32 tensor
    {"#007f5c", "#2fd6a3"},  // FP16 tensor
    {"#a8457f", "#ee9fcb"},  // BF16 tensor
    {"#8a5a2b", "#d2a06d"},  // FP8 and INT8 tensor
    {"#5b4fb5", "#b3a8ff"},  // FP64 tensor
};
// What fills their marks: halfway to the ground, and opaque, so that marks of one colour that lie on one another do
// not look like another colour. palette_test holds them against the shades above.
constexpr Shade kPrecisionFills[kToneCount] = {
    {"#bdb580", "#827e30"},  // FP64
    {"#80b3d2", "#376687"},  // FP32
    {"#80c1c7", "#427c83"},  // FP16 scalar
    {"#e4a885", "#8a5b35"},  // TF32 tensor
    {"#80bfae", "#227760"},  // FP16 tensor
    {"#d4a2bf", "#815c74"},  // BF16 tensor
    {"#c5ad95", "#735c45"},  // FP8 tensor
    {"#ada7da", "#64608e"},  // FP64 tensor
};
// By Phase, of blocks that are wide and lie side by side: strong enough to be told apart, and light enough for a
// label.
constexpr Shade kPhaseShades[kPhaseNames.size()] = {
    {"#b9c0c7", "#59626c"},  // other
    {"#7db8e8", "#2c6a9e"},  // forward
    {"#f0a35e", "#9a5a1c"},  // backward
    {"#8fcf9f", "#2f7d46"},  // optimizer
    {"#d3c26a", "#7d6d1e"},  // data
    {"#d79ac8", "#8a4178"},  // communication
    {"#b3a6ea", "#5f51a8"},  // recompute
    {"#a8d8d6", "#2e7b79"},  // eval
};
constexpr Shade kNoFlop = {"#5f6b76", "#aab4be"};
constexpr Shade kNoFlopFill = {"#afb5bb", "#5f666e"};
constexpr Shade kGround = {"#ffffff", "#14181d"};
constexpr Shade kInk = {"#1b2128", "#e8ecf0"};
constexpr Shade kMuted = {"#56616c", "#a3aeb9"};
constexpr Shade kGrid = {"#e6e9ec", "#2a3038"};
constexpr Shade kAxis = {"#98a2ac", "#5d6873"};
constexpr Shade kFaint = {"#8a949e", "#78838e"};
constexpr Shade kBad = {"#c00024", "#ff6b7d"};
constexpr Shade kSource = {"#a35b00", "#ffb454"};
constexpr Shade kMeasured = {"#00695c", "#5fd6c0"};

// Everything but colours.
constexpr Literal kShapes =
    ".pic text{font-family:sans-serif}\n"
    ".pic polyline{fill:none;stroke-width:1}\n"
    ".pic .ti{font-weight:bold}.pic .gh{font-weight:bold}\n"
    ".pic .so{font-weight:bold}.pic .so,.pic .so2{opacity:.85}\n"
    ".pic .re{opacity:.55}\n"
    ".pic .la,.pic .so,.pic .so2,.pic .re{paint-order:stroke;stroke-width:3px;stroke-linejoin:round}\n"
    ".pic polyline.ro{stroke-width:2;stroke-linejoin:round}.pic polyline.faint{stroke-width:1}\n"
    ".pic .dash{stroke-dasharray:7 4}.pic .dot{stroke-dasharray:1.5 3.5;stroke-linecap:round}\n"
    ".pic polyline.dr{stroke-dasharray:3 2.5}.pic polyline.dc{stroke-width:1.6}\n"
    ".pic polyline.le{stroke-width:.8}.pic polyline.fl{stroke-width:1.4;stroke-dasharray:8 3 2 3}\n"
    ".pic polyline.di{stroke-width:1.2;stroke-dasharray:2 4}\n"
    ".pic .m{stroke-width:1}.pic .m.bad{stroke-width:2.5}.pic .m.out{stroke-dasharray:2 2}\n"
    ".pic .od{opacity:.72}.pic .bk:hover{opacity:.55}.pic .bt{pointer-events:none}\n"
    ".pic .sy{stroke-width:1}.pic .ri{stroke-width:1.6}\n";

// Writes the rules of one ground, each selector below `scope`.
class Rules {
 public:
  Rules(bool dark, Literal scope, Css* out) : dark_(dark), scope_(scope), out_(out) {}

  void Fill(std::initializer_list<Css::Part> selectors, const Shade& shade) { Rule(selectors, {"fill:", Of(shade)}); }
  void Stroke(std::initializer_list<Css::Part> selectors, const Shade& shade) {
    Rule(selectors, {"stroke:", Of(shade)});
  }
  void FillAndStroke(std::initializer_list<Css::Part> selectors, const Shade& fill, const Shade& stroke) {
    Rule(selectors, {"fill:", Of(fill), ";stroke:", Of(stroke)});
  }
  void Rule(std::initializer_list<Css::Part> selectors, std::initializer_list<Css::Part> properties) {
    for (const Css::Part& selector : selectors) {
      if (&selector != selectors.begin()) out_->Add({","});
      out_->Add({scope_, ".pic ", selector});
    }
    out_->Add({"{"}).Add(properties).Add({"}\n"});
  }
  Literal Of(const Shade& shade) const { return dark_ ? shade.dark : shade.light; }

 private:
  bool dark_;
  Literal scope_;
  Css* out_;
};

void AddColours(bool dark, Literal scope, Css* out) {
  Rules rules(dark, scope, out);
  rules.Fill({".bg"}, kGround);
  rules.Fill({"text"}, kInk);
  rules.Fill({".mu", ".ax"}, kMuted);
  rules.Fill({".so", ".so2"}, kSource);
  rules.Fill({".ms"}, kMeasured);
  rules.Fill({".re"}, kMuted);
  rules.Stroke({".la", ".so", ".so2", ".re"}, kGround);
  rules.Stroke({".gr", ".gt"}, kGrid);
  rules.Stroke({".tk", ".fr", ".iso"}, kAxis);
  rules.Stroke({".di", ".dr", ".dc", ".le", ".fl"}, kMuted);
  rules.Stroke({".ro.lg", ".ro.me"}, kInk);
  for (size_t p = 0; p < kToneCount; ++p) {
    const Css name = {".p", Digits(p)};
    rules.FillAndStroke({Css{".m", name}, Css{".sy", name}}, kPrecisionFills[p], kPrecisionShades[p]);
    rules.Stroke({Css{"polyline.ro", name}, Css{".ri", name}}, kPrecisionShades[p]);
    rules.Fill({Css{"text", name}}, kPrecisionShades[p]);
  }
  for (size_t phase = 0; phase < kPhaseNames.size(); ++phase) {
    rules.Fill({Css{".bk.h", Digits(phase)}}, kPhaseShades[phase]);
  }
  rules.FillAndStroke({"polyline.tld"}, kPrecisionFills[1], kPrecisionShades[1]);
  rules.FillAndStroke({"polyline.tlt"}, kPrecisionFills[3], kPrecisionShades[3]);
  rules.FillAndStroke({".m.pn", ".sy.pn"}, kNoFlopFill, kNoFlop);
  rules.Rule({".sy0"}, {"fill:none;stroke:", rules.Of(kInk)});
  rules.Fill({".ri"}, kGround);
  rules.Stroke({"polyline.faint", ".ri.faint"}, kAxis);
  rules.Fill({"text.faint"}, kFaint);
  rules.Stroke({".m.bad"}, kBad);
  rules.Fill({"text.bad"}, kBad);
}

}  // namespace

std::string ToneOf(int precision) {
  const bool integers = precision == static_cast<int>(Precision::kInt8Tensor);
  return "p" + std::to_string(integers ? static_cast<int>(Precision::kFp8Tensor) : precision);
}

Css PictureStyle(Theme theme) {
  Css css = kShapes;
  AddColours(false, "", &css);
  css.Add({"@media (prefers-color-scheme:dark){\n"});
  if (theme == Theme::kPreferred) {
    AddColours(true, "", &css);
    css.Add({"}\n"});
  } else {
    AddColours(true, ":root:not([data-theme=light]) ", &css);
    css.Add({"}\n"});
    AddColours(true, ":root[data-theme=dark] ", &css);
  }
  return css;
}

}  // namespace rfinject::cli
