// A step as the GPU saw it: a picture for files and pages, its kernels for machines.
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cli/picture/timeline.h"
#include "cli/view/run_views.h"

namespace rfinject::cli {
namespace {

constexpr auto kLooks = std::to_array<TableLook>({
    {.column = "start_ns", .title = "at", .width = 8},
    {.column = "duration_ns", .title = "time", .width = 8},
    {.column = "lane", .title = "lane", .width = 4, .priority = 4},
    {.column = "phase", .title = "phase", .priority = 3, .left = true},
    {.column = "layer", .title = "layer", .priority = 1, .left = true, .most_width = 40},
    {.column = "op", .title = "operator", .priority = 5, .left = true, .most_width = 40},
    {.column = "kernel", .title = "kernel", .priority = 2, .left = true, .most_width = 60},
    {.column = "dram_bytes", .title = "bytes", .width = 8, .unit = "B"},
});

Data TimelineData(const Timeline& timeline) {
  const auto parts_of = [&timeline](auto value_of) {
    Data list = Data::List();
    for (const TimelinePart& part : timeline.parts) list.Append(Data(value_of(part)));
    return list;
  };
  return Data::Object()
      .Add("device", timeline.title)
      .Add("device_index", Cell{uint64_t{timeline.device}})
      .Add("step", timeline.known() ? Cell{timeline.step} : Cell{})
      .Add("period_ns", KnownCell(timeline.period_ns))
      .Add("busy_ns", KnownCell(timeline.busy_ns))
      .Add("windows", Cell{timeline.windows})
      .Add("sampled_share", timeline.known() ? Cell{timeline.sampled_share} : Cell{})
      .Add("dram_bytes_per_s",
           parts_of([](const TimelinePart& part) { return part.sampled ? Cell{part.dram_bytes_per_s} : Cell{}; }))
      .Add("tensor_share", parts_of([&timeline](const TimelinePart& part) {
             return part.sampled && timeline.has_tensor ? Cell{part.tensor_share} : Cell{};
           }))
      .Add("rows", KernelsOf(timeline.kernels));
}

}  // namespace

Section TimelineSection(const Timeline& timeline) {
  Section section{.id = "timeline"};
  section.lead.push_back({.text = TimelineText(timeline)});
  if (!timeline.known()) return section;
  section.figures = {{Figure{.id = "timeline", .lay_out = [&timeline](Medium medium) {
                               return Drawn{LayOutTimeline(timeline, TimelineSize(timeline, WideFigure(medium)))};
                             }}}};
  return section;
}

Document TimelineDocument(std::vector<Timeline> timelines) {
  const auto owner = std::make_shared<const std::vector<Timeline>>(std::move(timelines));
  Document document{.title = "rfinject report: a step as the GPU saw it", .owner = owner};
  for (const Timeline& timeline : *owner) {
    Section section = TimelineSection(timeline);
    section.heading = timeline.title + ": a step as the GPU saw it";
    if (timeline.known())
      section.table = Table{.rows = KernelsOf(timeline.kernels), .looks = {kLooks.begin(), kLooks.end()}};
    for (std::vector<Figure>& row : section.figures) {
      for (Figure& figure : row) figure.id += "-" + std::to_string(document.sections.size() + 1);
    }
    document.sections.push_back(std::move(section));
    document.lines.push_back(WithConstants({{"run", uint64_t{document.lines.size() + 1}}, {"device", timeline.title}},
                                           KernelsOf(timeline.kernels)));
  }
  document.data.Add("schema", "rfinject.timeline/1").Add("runs", Data::ListOf(*owner, TimelineData));
  return document;
}

}  // namespace rfinject::cli
