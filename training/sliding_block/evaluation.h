// Measures how well a learned block predicts motion.
#pragma once

#include <torch/types.h>

#include <nlohmann/json.hpp>

#include "run/command_line.h"
#include "run/output_folder.h"
#include "sliding_block/samples.h"

namespace lcp::training {

/// The end of --help of the programs that write model.pt, and of those that write checkpoint.pt as well.
constexpr const char* kModelNote =
    "\nmodel.pt is a program in TorchScript: loading it, in Python or C++, runs its code, so load only what you "
    "trust. model.pt2, written where TORCHLCP_PYTHON or .venv is a Python with torch, is the same for torch.export.";
constexpr const char* kCheckpointNote = "\ncheckpoint.pt is data, which --resume reads without running code.";

/// Root of the mean square of all elements.
double rmse(const torch::Tensor& error);

/// The fraction of the elements with truth = 0 whose prediction is within `tolerance` of 0; NaN where there are none.
double sticking_fraction(const torch::Tensor& predicted, const torch::Tensor& truth, double tolerance);

/// (v, u, 1), [n, 3].
torch::Tensor affine_features(const Samples& samples);

/// Predictions of v_next on the held-out steps, m/s, by the affine map of v and u that fits the training data best.
/// This is the baseline, which knows nothing of friction.
torch::Tensor affine_prediction(const Samples& training, const Samples& heldout);

/// Metrics of predictions of v_next: heldout_rmse, sticking_exact_zero_fraction, sticking_close_fraction (within dt mu
/// g / 1000), heldout_samples, heldout_unsolved, heldout_sticking_fraction.
nlohmann::json heldout_metrics(const torch::Tensor& predicted, const Samples& heldout, const PhysicsFlags& block);

/// Metrics that compare with the block of the flags: null where the held-out steps, which may be of a file, are not
/// those of that block up to rounding.
nlohmann::json against_block(nlohmann::json metrics, const Samples& heldout, const PhysicsFlags& block);

/// The largest held-out error of a model that explains its data, m/s: the noise, and a fiftieth of what friction does
/// to a velocity in a step. Where the data were simulated, the noise is that of --velocity-noise. That of a file is
/// estimated from the errors of the prediction, sorted by the velocity without friction, v + dt u / m: v_next of a
/// block depends on that velocity alone, so that the errors of neighbours differ by the noise.
double explained_error(const torch::Tensor& predicted, const Samples& heldout, const PhysicsFlags& block,
                       const SampleFlags& flags);

/// Loads the model.pt of `out`, as its user would, and compares it with the held-out steps and, where they are those of
/// the block of the flags, with that block over 20 rollouts of 50 steps under random forces, which rollouts.csv gets.
/// Returns heldout_metrics, `unexplained` by explained_error, rollout_rmse and rollout_unsolved, see against_block, and
/// warns of unsolved steps.
nlohmann::json evaluate_model(OutputFolder& out, const RunFlags& run, const Samples& heldout, const PhysicsFlags& block,
                              const SampleFlags& flags);

}  // namespace lcp::training
