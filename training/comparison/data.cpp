#include <ATen/ATen.h>

#include <iostream>
#include <string>

#include "comparison/comparison.h"
#include "run/columns.h"
#include "sliding_block/evaluation.h"
#include "sliding_block/samples.h"

namespace lcp::training {
namespace {

using torch::Tensor;

struct Steps {
  Samples samples;
  std::vector<double> trajectory;  // of each step; empty where the user's file has no such column
};

// Puts the samples into the order in which programs divide the rows of a file: four for training, one held out, ...
Samples interleaved(const Data& data) {
  const std::int64_t count = data.training.count(), heldout = count / (kHeldOutOneIn - 1);
  const Tensor row = at::arange(count + heldout), group = row.div(kHeldOutOneIn, "floor");
  const Tensor order = at::where(row.remainder(kHeldOutOneIn) == kHeldOutOneIn - 1, count + group, row - group);
  const auto all = [&](Tensor Samples::*member) { return at::cat({data.training.*member, data.heldout.*member}); };
  return Samples{all(&Samples::v), all(&Samples::u), all(&Samples::v_next), all(&Samples::lambda), all(&Samples::gamma)}
      .at(order);
}

Steps read_steps(const std::string& file) {
  const Table table = read_csv(file, {"v", "u", "v_next", "lambda_plus", "lambda_minus", "gamma"}, {"trajectory"});
  const auto column = [&](const char* name) { return column_of(table, name); };
  return {
      {column("v"), column("u"), column("v_next"), columns_of(table, {"lambda_plus", "lambda_minus"}), column("gamma")},
      table.has("trajectory") ? table["trajectory"] : std::vector<double>()};
}

Steps steps_of(const ComparisonFlags& flags, std::int64_t seed) {
  RunFlags run = flags.run;
  run.seed = seed;
  const Data data = load_data(run, flags.block, flags.samples);  // also checks the forces of a file
  return flags.samples.data.empty() ? Steps{interleaved(data), {}} : read_steps(flags.samples.data);
}

Tensor fictitious_forces(const Samples& samples, const physics::SlidingBlock& block) {
  const auto step = physics::step(samples.v, samples.u, block, physics::SlidingBlockFormulation::kDirect).step;
  return at::stack({step.lambda_plus, step.lambda_minus}, -1);
}

// Warns where the file is of another block. Its fictitious forces would be learned without any sign of the mistake.
void check_block(const ComparisonFlags& flags, const Samples& samples) {
  const double error =
      rmse(physics::exact_step(samples.v, samples.u, sliding_block(flags.block)).v_next - samples.v_next);
  const double unit = flags.block.dt * flags.block.max_friction() / flags.block.mass;
  if (error < 0.1 * unit || flags.run.quiet) return;
  std::cerr << "warning: " << flags.samples.data << ": v_next is " << error
            << " m/s (rms) off the steps of a block of --mass, --dt, --mu and --gravity" << std::endl;
}

}  // namespace

std::vector<std::pair<std::string, Table>> files_of(const ComparisonFlags& flags, std::int64_t seed) {
  const Steps steps = steps_of(flags, seed);
  const Samples& samples = steps.samples;
  if (!flags.samples.data.empty() && seed == flags.run.seed) check_block(flags, samples);
  const auto table = [&](const Tensor& lambda, const Tensor& gamma) {
    Table columns;
    const auto add = [&](const char* name, const Tensor& x) { columns.add(name, entries_of(x)); };
    if (!steps.trajectory.empty()) columns.add("trajectory", steps.trajectory);
    add("v", samples.v);
    add("u", samples.u);
    add("v_next", samples.v_next);
    add("lambda_plus", lambda.select(-1, 0));
    add("lambda_minus", lambda.select(-1, 1));
    if (gamma.defined()) add("gamma", gamma);
    return columns;
  };
  return {
      {ComparisonFlags::data_file(seed, "traditional"), table(samples.lambda, samples.gamma)},
      {ComparisonFlags::data_file(seed, "direct"), table(fictitious_forces(samples, sliding_block(flags.block)), {})},
      {ComparisonFlags::data_file(seed, "physical"), table(samples.lambda - samples.lambda.amin(-1, true), {})}};
}

}  // namespace lcp::training
