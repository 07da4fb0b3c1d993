// Black boxes to compare with: affine maps and plain networks from the state to the velocity.
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "network/motion.h"
#include "run/checkpoint.h"

namespace lcp::training {

struct BlackBoxOptions {
  std::int64_t iterations = 4000;  ///< of Adam, for each network
  std::int64_t batch_size = 128;
  std::int64_t seed = 0;
};

/// A network of relu or tanh layers, or an affine map, which has one layer.
struct BlackBox {
  std::string name;                            ///< such as "relu 64 x 64, learning rate 0.003"
  std::string activation;                      ///< relu or tanh
  std::vector<torch::Tensor> weights, biases;  ///< of each layer, [in, out] and [out]
  torch::Tensor input_unit, output_unit;       ///< [p] and [d], by which the data are divided
  double validation_error = 0;                 ///< root of the mean square, in output_unit

  torch::Tensor predict(const torch::Tensor& x) const;

  /// `load` throws std::exception where the checkpoint holds no black box.
  Checkpoint save() const;
  static BlackBox load(const Checkpoint& checkpoint);
};

/// The number of families of black boxes: the affine map of least squares, and networks trained by Adam with a step
/// size that falls along a cosine: relu and tanh, one or two hidden layers of 16, 64 or 128 units, each with the first
/// step sizes .001, .003 and .01.
constexpr std::int64_t kBlackBoxFamilies = 13;

/// The best of a family by its error on the validation data.
///   number: that of the family, plus a multiple of kBlackBoxFamilies, each with other random starts.
///   stopped: asked often; once it returns true the result is of no use.
BlackBox best_of_family(std::int64_t number, const Motion& training, const Motion& validation,
                        const torch::Tensor& input_unit, const torch::Tensor& output_unit,
                        const BlackBoxOptions& options, const std::function<bool()>& stopped = {});

/// Black boxes of all families, in passes: once, and networks from other random starts again while a search has taken
/// longer.
struct BlackBoxes {
  std::map<std::int64_t, BlackBox> trained;  ///< by family + kBlackBoxFamilies * pass
  double seconds = 0;                        ///< that their training has taken

  /// The one with the least validation error; there must be one.
  const BlackBox& best() const;
};

struct PassOptions {
  std::int64_t iterations = 4000;  ///< for each network in the first pass; each further pass takes twice as many
  double seconds = 0;              ///< another pass follows while all have taken less than this; 0: there is one pass
  std::int64_t threads = 1;        ///< how many black boxes each process trains at once
  bool quiet = false;              ///< whether progress is not shown
};

/// Trains the black boxes that are missing in `boxes`, divided among the processes, and completes a pass that has
/// begun, whatever time it takes. Collective.
///   train: called by several threads, for the number of a black box in `trained` and its iterations.
///   changed: called after each group of black boxes that were trained at once.
///   stopped: once it returns true in one of the processes, the black boxes that are being trained are discarded, and
///   no others follow.
void train_in_passes(BlackBoxes& boxes, const PassOptions& options,
                     const std::function<BlackBox(std::int64_t number, std::int64_t iterations)>& train,
                     const std::function<void()>& changed, const std::function<bool()>& stopped);

}  // namespace lcp::training
