#include "rows/train_lcp_rows.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <utility>

#include "network/black_box.h"
#include "run/program.h"
#include "sliding_block/evaluation.h"

namespace lcp::training {
namespace {

using torch::Tensor;

constexpr struct {
  const char* name;
  nn::SymmetricBasis basis;
} kBases[] = {{"none", nn::SymmetricBasis::kNone},
              {"diagonal", nn::SymmetricBasis::kDiagonal},
              {"nonnegative", nn::SymmetricBasis::kNonnegative}};

// The family of the black boxes that --h network trains: relu, two hidden layers of 64 units, three step sizes.
constexpr std::int64_t kFamilyOfH = 4;

// v_next of the held-out samples by the additional model h(v, u) [Notes, 3.1.3]. One in five samples chooses among
// networks.
Tensor prediction_without_forces(const RowFlags& flags, const Data& data) {
  if (flags.h == "affine") return affine_prediction(data.training, data.heldout);
  const Samples& known = data.training;
  const Motion all{at::stack({known.v, known.u}, 1), known.v_next.unsqueeze(1)};
  const Tensor rows = at::arange(known.count(), torch::kLong), fifth = rows.remainder(5) == 4;
  const auto unit = [](const Tensor& of) { return of.std(0, /*unbiased=*/false).clamp_min(1e-300); };
  BlackBoxOptions options;
  options.seed = flags.run.seed;
  const BlackBox h = best_of_family(kFamilyOfH, all.at(rows.index({~fifth})), all.at(rows.index({fifth})), unit(all.x),
                                    unit(all.v_next), options);
  return h.predict(at::stack({data.heldout.v, data.heldout.u}, 1)).squeeze(1);
}

nn::TraditionalModel make_model(const RowFlags& flags) {
  torch::manual_seed(generator(flags.run.seed, Stream::kParameters).current_seed());
  nn::SymmetricBasis basis = {};
  for (const auto& known : kBases) {
    if (flags.basis == known.name) basis = known.basis;
  }
  nn::TraditionalModel model(options_of<nn::TraditionalModelOptions>(flags.block)
                                 .force_unit(flags.block.max_friction())
                                 .parameters(flags.parameters)
                                 .monotone(flags.monotone())
                                 .relu_pairs(flags.relu_pairs > 0)
                                 .affine_matrix(flags.affine())
                                 .basis(basis));
  model->to(flags.run.scalar_type());
  Tensor held = held_entries(flags.hold);
  if (flags.monotone()) held = with_monotone(held);
  if (flags.known_vector) held = held | held_entries("vector");
  Tensor values = nn::TraditionalModelImpl::true_rows(1);
  if (flags.no_bias) {
    for (const std::int64_t row : {0, 1}) held[row][5] = true;  // the true value is 0
  }
  model->hold(held, values);
  return model;
}

}  // namespace

void RowFlags::add_to(CommandLine& line) {
  run.add_to(line);
  samples.add_to(line);
  training.add_to(line);
  block.add_to(line);
  line.add("alpha", alpha, "Weights A1 A2 of violated complementarity and nonnegativity",
           [](const std::vector<double>& x) {
             const bool valid = x.size() == 2 && x[0] > 0 && x[1] >= 0 && std::isfinite(x[0] + x[1]);
             return valid ? "" : "two finite numbers, A1 > 0, A2 >= 0";
           });
  line.add_switch("squared", squared, "Penalise squares, not absolute values");
  line.add(
      "hold", hold,
      "Which entries of [M|W] are held at their true values; with none the rows shrink to 0: " + listed(held_names()),
      one_of(held_names()));
  line.add_switch("no-bias", no_bias, "Hold W13 = W23 = 0");
  if (parameters == nn::Parameters::kRows) {
    add_matrix_flag(line, matrix, /*may_be_affine=*/true);
    line.add("relu-pairs", relu_pairs,
             "If > 0, learn each entry of M as max(P, 0) - max(N, 0), which can become exactly 0, with a penalty "
             "of this weight on P N > 0; in the second half of the training a 0 is final",
             nonnegative);
  } else {
    line.add_switch("known-vector", known_vector, "Hold W at its true value");
    line.add("basis", basis, "Symmetric matrices beside phi phi': " + listed(names_of(kBases)),
             one_of(names_of(kBases)));
  }
  line.add(
      "h", h,
      "The additional model of v_next from v and u alone, for comparison: an affine map or a network of relus with "
      "two layers of 64",
      one_of({"affine", "network"}));
  line.add("batch-size", batch_size, "Samples of a minibatch; 0: all", at_least_zero);
  line.add_switch("exact-rest", exact_rest, kExactRestHelp);
  line.footer(
      "Example: " + line.program() + " --split maximal --out runs/maximal\n" +
      "Data of your own: CSV with columns v,u,v_next,lambda_plus,lambda_minus,gamma (m/s, N, m/s, N, N, m/s), as\n"
      "simulate --formulation traditional writes it, and optionally trajectory; one row in five, or one\n"
      "trajectory in five, is held out. --mu, --mass, --dt and --gravity say what the block is." +
      kModelNote + kCheckpointNote);
}

int train_lcp_rows(CommandLine& line, RowFlags& flags, int argc, const char* const* argv) {
  flags.add_to(line);
  if (const auto status = line.parse(argc, argv)) return *status;
  flags.samples.validate(line);
  flags.block.require_friction();
  if (flags.affine() && flags.relu_pairs > 0) throw UsageError("--relu-pairs must be 0 with --matrix affine");
  FolderLock lock(flags.run.out);
  const std::optional<Checkpoint> checkpoint = resume(line, lock, flags.training.resume);
  torch::set_num_threads(static_cast<int>(flags.run.threads));

  const Data data = load_data(flags.run, flags.block, flags.samples);
  OutputFolder out(line, flags.run, std::move(lock));
  Trainer trainer(out, flags.run, flags.training, checkpoint);
  nn::TraditionalModel model = make_model(flags);
  const Samples training = data.training.to(flags.run.scalar_type());
  const Samples heldout = data.heldout.to(flags.run.scalar_type());
  fit_dynamics(model, training);
  const Tensor known = solutions(model, training);
  const auto stopped = trainer.train(
      *model, training.count(), flags.batch_size > 0 ? flags.batch_size : training.count(), data.fingerprint(),
      [&](const Tensor& rows, double done) -> LossTerms {
        model->revive = done < 0.5;
        model->set_theta(model->projected(model->theta()).detach());
        const Tensor v = training.v.index({rows}), u = training.u.index({rows});
        const Tensor G = model->G_of(v, u), f = model->f_of(v, u);
        const auto terms = learning::penalty_loss(G, f, known.index({rows}), flags.weights());
        const Tensor missed = model->missed(G).abs().sum(-1).mean();
        const Tensor overlap = flags.relu_pairs * model->overlap();
        return {{"loss", terms.total + missed + overlap},
                {"complementarity", terms.complementarity},
                {"nonnegativity", terms.nonnegativity},
                {"missed", missed},
                {"overlap", overlap}};
      },
      [&]() -> NamedValues {
        NamedValues figures = {{"heldout_rmse", rmse(model->step(heldout.v, heldout.u).v_next - heldout.v_next)}};
        const nlohmann::json errors =
            against_block({{"max_row_error", row_error(model->rows(), 1)}}, heldout, flags.block);
        if (errors["max_row_error"].is_number()) {
          figures.emplace_back("max_row_error", errors["max_row_error"].get<double>());
        }
        return figures;
      });
  if (stopped) return *stopped;
  if (!ProcessGroup::current().is_first()) return 0;

  const OneThread one_thread;
  model->revive = false;
  model->exact_rest = flags.exact_rest;
  write_model(out, nn::torchscript_bytes(model));
  nlohmann::json metrics = evaluate_model(out, flags.run, heldout, flags.block, flags.samples);
  const Tensor rows = model->rows().detach().to(torch::kDouble);
  const auto M_of = [](const Tensor& all) { return all.slice(1, 0, 3); };
  const Tensor zeros = M_of(rows) == 0;
  metrics.update(against_block(
      {{"parameter_error", row_error(canonical_rows(rows, false), 1)}, {"max_row_error", row_error(rows, 1)}}, heldout,
      flags.block));
  const Tensor without_forces = prediction_without_forces(flags, data);
  const double close = 1e-3 * flags.block.dt * flags.block.max_friction() / flags.block.mass;
  metrics.update(
      {{"rows", to_json(rows)},
       {"exact_zeros", zeros.sum().item<std::int64_t>()},
       {"wrong_zeros", (zeros & (M_of(nn::TraditionalModelImpl::true_rows(1)) != 0)).sum().item<std::int64_t>()},
       {"largest_number", rows.abs().max().item<double>()},
       {"heldout_rmse_without_forces", rmse(without_forces - data.heldout.v_next)},
       {"sticking_close_fraction_without_forces", sticking_fraction(without_forces, data.heldout.v_next, close)},
       {"training_samples", training.count()},
       {"final_loss", trainer.history()["loss"].back()}});
  if (flags.affine()) {
    const Tensor slopes = model->nonlinear(model->theta()).detach().view({3, 3, 2});
    metrics["slopes"] = to_json((slopes * (1 - M_of(model->held)).unsqueeze(-1)).to(torch::kDouble));
  }
  metrics.update(sticking_metrics(model, heldout));
  metrics.update(rows_identifiability(model, data.training).json());
  write_results(out, metrics, {"rollout.png", "rows.png", "training.png"});
  return 0;
}

}  // namespace lcp::training
