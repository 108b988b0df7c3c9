// What a mean step does, of the whole run and of its phases. Where steps are not known it is what all of them did.
#include <array>

#include "cli/report/facts/run.h"
#include "cli/report/report.h"

namespace rfinject::cli {
namespace {

enum class Of : uint8_t { kWhole, kForward, kBackward, kOptimizer };

template <Of kOf>
Sums SumsOf(const Report& report) {
  if constexpr (kOf == Of::kWhole) {
    return report.total.sums;
  } else {
    constexpr Phase kPhase = kOf == Of::kForward    ? Phase::kForward
                             : kOf == Of::kBackward ? Phase::kBackward
                                                    : Phase::kOptimizer;
    Sums sums;
    for (const Row& row : report.phases) {
      if (row.phase == kPhase) sums.Add(row.sums);
    }
    return sums;
  }
}

double Flop(const Sums& sums) { return sums.total_flop(); }
double Bytes(const Sums& sums) { return sums.dram_bytes(); }
double Time(const Sums& sums) { return sums.time_ns(); }
double Least(const Sums& sums) { return sums.least_ns(); }
template <Quantity kQuantity>
double Amount(const Sums& sums) {
  return sums[kQuantity];
}

Cell Quotient(double a, double b) { return a > 0 && b > 0 ? Cell{a / b} : Cell{}; }

template <Of kOf, double (*kAmount)(const Sums& sums)>
Cell PerStep(const Report& report) {
  return KnownCell(kAmount(SumsOf<kOf>(report)) / report.steps.divisor());
}
// Of two amounts of one phase; a run without FLOP is one whose FLOP are not known.
template <Of kOf, double (*kA)(const Sums& sums), double (*kB)(const Sums& sums)>
Cell Ratio(const Report& report) {
  const Sums sums = SumsOf<kOf>(report);
  return Quotient(kA(sums), kB(sums));
}
// The backward's amount over the forward's.
template <double (*kAmount)(const Sums& sums)>
Cell BackwardOverForward(const Report& report) {
  return Quotient(kAmount(SumsOf<Of::kBackward>(report)), kAmount(SumsOf<Of::kForward>(report)));
}
template <double Derived::*kMember>
Cell OfWhole(const Report& report) {
  return KnownCell(report.total.derived.*kMember);
}

using enum Of;
constexpr auto kWorkFacts = std::to_array<FactOf<Report>>({
    {UnitColumn("model_flop_per_step", "FLOP", "FLOP that the layers' mathematics asks for."),
     PerStep<kWhole, Amount<Quantity::kModelFlop>>},
    {UnitColumn("flop_per_step", "FLOP", "Executed FLOP."), PerStep<kWhole, Flop>},
    {UnitColumn("dram_bytes_per_step", "B", "Bytes read from and written to the GPU's memory."),
     PerStep<kWhole, Bytes>},
    {PlainColumn("oi_flop_per_byte", "Operational intensity: FLOP over DRAM bytes.", "", "FLOP/B").OfCounters(),
     Ratio<kWhole, Flop, Bytes>},
    {UnitColumn("gpu_time_per_step_ns", "ns", "GPU time of a step."), PerStep<kWhole, Time>},
    {UnitColumn("performance_flop_per_s", "FLOP/s", "FLOP over GPU time."), OfWhole<&Derived::performance_flop_per_s>},
    {UnitColumn("attainable_flop_per_s", "FLOP/s", "FLOP over the least time that the roofs allow."),
     OfWhole<&Derived::attainable_flop_per_s>},
    {ShareColumn("attainable_share", "Least time over GPU time: 1 is at the roof."),
     [](const Report& report) {
       return report.total.sums.least_ns() > 0 ? Cell{report.total.derived.attainable_share} : Cell{};
     }},
    {UnitColumn("least_compute_time_per_step_ns", "ns", "Time that the FLOP need at the peaks of their pipes."),
     PerStep<kWhole, Amount<Quantity::kLeastCompute>>},
    {UnitColumn("least_memory_time_per_step_ns", "ns", "Time that the DRAM bytes need at full bandwidth."),
     PerStep<kWhole, Amount<Quantity::kLeastMemory>>},
    {UnitColumn("least_time_per_step_ns", "ns", "Kernel by kernel the longer of both, summed."),
     PerStep<kWhole, Least>},
    {TextColumn("bound", "What keeps most of the time from being shorter: launch, memory, compute, PCIe or NVLink."),
     [](const Report& report) {
       return TextCell(report.total.sums.least_ns() <= 0 ? "" : BoundName(report.total.derived.bound));
     }},
    {UnitColumn("forward_flop_per_step", "FLOP", "Executed FLOP of the forward."), PerStep<kForward, Flop>},
    {UnitColumn("forward_dram_bytes_per_step", "B", "DRAM bytes of the forward."), PerStep<kForward, Bytes>},
    {UnitColumn("forward_time_per_step_ns", "ns", "GPU time of the forward."), PerStep<kForward, Time>},
    {ShareColumn("forward_time_share").ShownOnly(),
     [](const Report& report) {
       const double whole = report.total.sums.time_ns();
       return whole > 0 ? Cell{SumsOf<kForward>(report).time_ns() / whole} : Cell{};
     }},
    {UnitColumn("forward_least_time_per_step_ns", "ns", "Least time of the forward."), PerStep<kForward, Least>},
    {PlainColumn("forward_oi_flop_per_byte", "Operational intensity of the forward.", "", "FLOP/B").OfCounters(),
     Ratio<kForward, Flop, Bytes>},
    {ShareColumn("forward_attainable_share", "The forward's least time over its GPU time."),
     [](const Report& report) {
       const Sums forward = SumsOf<kForward>(report);
       return forward.least_ns() > 0 ? Cell{Derive(forward).attainable_share} : Cell{};
     }},
    {UnitColumn("backward_flop_per_step", "FLOP", "Executed FLOP of the backward."), PerStep<kBackward, Flop>},
    {UnitColumn("backward_dram_bytes_per_step", "B", "DRAM bytes of the backward."), PerStep<kBackward, Bytes>},
    {UnitColumn("backward_time_per_step_ns", "ns", "GPU time of the backward."), PerStep<kBackward, Time>},
    {UnitColumn("optimizer_time_per_step_ns", "ns", "The optimizer's GPU time."), PerStep<kOptimizer, Time>},
    {PlainColumn("backward_model_flop_per_forward_model_flop", "The backward's model FLOP over the forward's."),
     BackwardOverForward<Amount<Quantity::kModelFlop>>},
    {PlainColumn("backward_flop_per_forward_flop", "The backward's FLOP over the forward's."),
     BackwardOverForward<Flop>},
    {PlainColumn("backward_time_per_forward_time", "The backward's GPU time over the forward's."),
     BackwardOverForward<Time>},
});

}  // namespace

std::span<const FactOf<Report>> WorkFacts() { return kWorkFacts; }

}  // namespace rfinject::cli
