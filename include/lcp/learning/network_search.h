// The search for a network that ends in an LCP: rounds of many random starts, of which the best are finished by least
// squares, with a growing number of unknowns. fit_network.h is the whole search in one call.
//
//   [Schwarz] Schwarz: Estimating the dimension of a model, Annals of Statistics 6, 1978.
//   [Tobin]   Tobin: Estimation of relationships for limited dependent variables, Econometrica 26, 1958.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lcp/export.h"
#include "lcp/nn/lcp_network.h"

namespace lcp::learning {

/// Samples of a map, one in each row, float64.
struct Samples {
  at::Tensor x;  ///< [n, p]
  at::Tensor y;  ///< [n, d]

  std::int64_t count() const { return x.size(0); }
  Samples at(const at::Tensor& rows) const { return {x.index_select(0, rows), y.index_select(0, rows)}; }
};

/// Random samples for validation, `share` of all, rounded down, but at least one, and the others, to learn from.
///   share: in (0, 1). Returns those to learn from first.
LCP_API std::pair<Samples, Samples> split_samples(const Samples& samples, double share, std::int64_t seed);

/// What finds a first approximation, in rounds that begin with random starts alone. From there the Levenberg-Marquardt
/// method minimises the error of the prediction.
enum class NetworkLoss {
  kPrediction,  ///< the same error; with kappa > 0 by Adam, too
  /// Adam on the bilevel loss (lcp/learning/bilevel_loss.h): the least error with which unknowns z >= 0 that violate
  /// the LCP a little explain the samples. The weight a2 of z'w grows from small to large values, and that of w < 0 is
  /// a3 = 10 a2.
  kBilevel,
  /// Adam on the errors of y = z+ - z- with two unknowns for each output, which the samples then determine:
  /// z+ = max(0, y), z- = max(0, -y). The errors of the rows of the LCP are M z + q where z > 0 and its negative part
  /// where z = 0, relative to the diagonal of M: a convex loss for affine q, without a dead zone, as that of censored
  /// data [Tobin].
  kOneSided
};

/// The loss "prediction", "bilevel" or "one_sided". Throws c10::Error for another name.
LCP_API NetworkLoss network_loss_named(const std::string& name);

/// Who does the tasks of a round where several processes do the same search together: the threads of one process do
/// them where these functions are absent.
struct NetworkProcesses {
  /// Returns work(0), ..., work(count - 1), in this order, on all processes.
  std::function<std::vector<at::Tensor>(std::int64_t count, std::int64_t threads,
                                        const std::function<at::Tensor(std::int64_t k)>& work)>
      divide = nullptr;
  /// Whether the argument is true in one of the processes.
  std::function<bool(bool)> any = nullptr;
};

/// What a search tries, and how a round fits networks. What rests is a sample whose y is 0, up to rest_below.
struct NetworkSearchOptions {
  NetworkLoss loss = NetworkLoss::kPrediction;
  /// The parts of the networks, whose numbers of inputs and outputs are those of the samples. The search chooses the
  /// number of unknowns and whether q is affine or a network.
  nn::LcpNetworkOptions parts = {1, 1, 1};
  bool affine = true;         ///< whether networks with an affine q are tried
  bool network = true;        ///< whether those whose q is a network are tried
  std::int64_t unknowns = 0;  ///< 0: found by the search
  std::int64_t starts = 192;  ///< of a round; one that repeats an earlier round has twice as many as that
  std::int64_t seed = 0;      ///< in [0, 2^32)
  std::int64_t threads = 1;   ///< on which the result does not depend

  /// Of Adam, where it has a loss of its own.
  std::int64_t iterations = 400;
  double learning_rate = 0.02;
  std::int64_t batch_size = 64;
  /// > 0: kPrediction, too, begins with Adam, with the derivative of the central path z w = kappa, which an unknown
  /// that is never active has as well. kappa falls to 0 in the first half of the iterations.
  double kappa = 0;
  /// Of the Levenberg-Marquardt method in the last of its stages on the best starts; the stages before it have a
  /// quarter of them each. 0: Adam alone.
  std::int64_t finishing_iterations = 80;

  /// The weight of the off-diagonal entries of M, relative to its diagonal: of networks that predict the samples
  /// equally well, those are preferred whose unknowns do not affect each other where the samples do not show that they
  /// do. It falls to 0 in the end.
  double coupling_penalty = 5e-3;
  double rest_penalty = 0.1;  ///< the weight of the activity, which should be 0, in samples that rest
  double rest_below = 0;      ///< outputs of at most this size count as rest
  /// Where y are the velocities after a step: the first component of x that is one of those before it. Absent: y are no
  /// velocities, or nothing is assumed of them, see NetworkSearch::simplified.
  std::optional<std::int64_t> first_velocity = std::nullopt;

  NetworkProcesses processes = {};
};

/// A learned network: its options with the units of the data, and its parameters.
struct LCP_API NetworkCandidate {
  nn::LcpNetworkOptions options;
  at::Tensor theta;         ///< [size]
  double training_error;    ///< root of the mean square, relative to the units of the outputs
  double validation_error;  ///< the same
  double rest;              ///< the share of the resting training samples that it predicts to rest exactly
  bool coupled;             ///< whether M has entries beside its diagonal
  bool odd = false;         ///< whether it was fitted to mirrored samples, too, see NetworkSearch::simplified
  bool inertial = false;    ///< whether its unknowns are held to stop the body, see NetworkSearch::simplified

  bool precise() const;  ///< whether it predicts the samples up to rounding
  bool exact() const;    ///< whether it also rests where they rest
};

struct NetworkRound {
  std::int64_t starts;
  /// The best networks with and without couplings, and all that predict the samples up to rounding, best first.
  std::vector<NetworkCandidate> best;
};

/// Learns the parameters of a network from random starts, in rounds. A round has a number of unknowns, and tries
/// networks with affine q or networks whose q is a network:
///
/// 1. Three in four starts are random, the others are the best networks of the round before, without the unknowns that
///    no sample has active and with new ones in their place and beside them. See draw_starts.
/// 2. The Levenberg-Marquardt method on all starts at once, first on a part of the samples; in half of the starts the
///    activity in samples that rest is penalised, which finds networks that rest but hides some ways to others. The
///    worst are dropped in three steps, apart for random starts and others and for those with and without the penalty;
///    the best of each are finished on all samples. Where one is then exact on all training samples and on more than
///    half of the validation samples, those that it misses show what no training sample shows, and it learns from
///    them, too. If none is exact, the same networks are also fitted with a diagonal M, which needs fewer samples
///    under noise. The weights of hidden units have a small penalty, which keeps them from becoming steps between two
///    samples.
///
/// The rounds with affine q come first, with one unknown more in each. They end where the validation error is round-off
/// and the network rests where the samples rest, where several rounds have not improved the error, or at the largest
/// number of unknowns. A network that is exact for all samples may still be wrong in states that they do not show: then
/// another exact network is wrong in other states. Unless two exact networks agree in all of some random states, a
/// round with one unknown less follows, which starts from the exact networks without one or two of their unknowns, and
/// then rounds with as many unknowns from other random starts, twice as many in each, and at last such rounds with as
/// many unknowns as the first exact network had. Of all exact networks the one is chosen that agrees most with the
/// others. Other starts follow, too, where networks are almost exact but none is exact. If the error is more than a
/// thousandth of the units in the end, the rounds whose q is a network follow. The first of them grows from the best
/// affine networks, unless Adam trains it first.
///
/// The result depends on the options, but neither on `threads` nor on the number of processes that do a round together.
class LCP_API NetworkSearch {
 public:
  /// Data in any units; the search divides by the standard deviations of the training data. Throws c10::Error where a
  /// shape or an option does not fit, or a number is not finite.
  NetworkSearch(const Samples& training, const Samples& validation, const NetworkSearchOptions& options);

  /// Whether another round can improve the result.
  bool finished() const { return !next().has_value(); }

  /// The largest number of rounds that a search takes.
  std::int64_t most_rounds() const;

  /// Does a round, unless `stopped` returns true meanwhile in one of the processes, which it asks often: then nothing
  /// changes. Collective.
  ///   progress: called with the completed fraction of the round, 0 to 1 in ascending order, by one thread at a time;
  ///     what other processes have done is not part of it before they have finished.
  ///   hurried: asked as often. Once it returns true, what is left of the round is skipped, and the networks are kept
  ///   as they are.
  void advance(const std::function<bool()>& stopped = {}, const std::function<void(double)>& progress = {},
               const std::function<bool()>& hurried = {});

  const std::vector<NetworkRound>& rounds() const { return rounds_; }

  /// Of exact networks the one that agrees most with the others. Otherwise, of those whose validation errors are the
  /// lowest up to chance, the one with the lowest Bayesian information criterion [Schwarz] on all samples: more
  /// unknowns always fit noise a little better, and the few validation samples do not tell that from a better map.
  NetworkCandidate best() const;

  /// The training and the validation data.
  Samples all() const;

  /// A network of the search, fitted to `samples`, from where it is.
  NetworkCandidate refitted(const NetworkCandidate& candidate, const Samples& samples) const;

  /// `refitted`, or the network itself where that fit changes its predictions for random states by far more than its
  /// validation error; and simpler where the samples do not contradict it by the Bayesian information criterion
  /// [Schwarz]: of two assumptions, which save parameters that noise would make wrong, those are kept that lower it.
  /// None is tried without more residuals than parameters.
  ///
  /// * The map is odd: it is fitted to the mirrored samples (-x, -y), too, which halves its parameters.
  /// * Each unknown takes away all of the velocity along its direction, v . G_i dq_i / dv = -M_ii, as an impulse on a
  ///   body with inertia does, so that the velocities before and after a step differ by as much whatever they are. This
  ///   is tried where M is diagonal, q affine, G constant and f absent.
  NetworkCandidate simplified(const NetworkCandidate& candidate, const Samples& samples) const;

  /// The share of random states, each component from another sample, in which another exact network predicts something
  /// else, a mean over all exact networks of the search but `candidate`; none where there is no other.
  std::optional<double> disagreement(const NetworkCandidate& candidate) const;

  const at::Tensor& input_unit() const { return input_unit_; }
  const at::Tensor& output_unit() const { return output_unit_; }
  nn::LcpNetwork network(const nn::LcpNetworkOptions& options) const;

  void restore(std::vector<NetworkRound> rounds) { rounds_ = std::move(rounds); }

 private:
  struct Plan {
    nn::LcpNetworkOptions options;
    std::int64_t parents;  // the round whose networks grow, or -1
    std::int64_t starts;
  };

  std::int64_t unknowns(std::int64_t round) const {
    return rounds_[static_cast<std::size_t>(round)].best.front().options.unknowns();
  }
  bool trains_first() const;  // whether Adam comes first in rounds that begin with random starts alone
  std::int64_t first_unknowns() const;
  std::int64_t last_unknowns() const;
  std::optional<Plan> next() const;
  std::vector<const NetworkCandidate*> candidates() const;
  at::Tensor random_states() const;
  at::Tensor prediction(const NetworkCandidate& candidate, const at::Tensor& states) const;
  std::vector<at::Tensor> exact_predictions() const;
  std::vector<NetworkCandidate> ranked(const nn::LcpNetwork& network, const at::Tensor& theta) const;

  Samples training_, validation_;
  NetworkSearchOptions options_;
  at::Tensor input_unit_, output_unit_;
  std::vector<NetworkRound> rounds_;
};

}  // namespace lcp::learning
