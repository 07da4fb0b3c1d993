// The search for a network that ends in an LCP: rounds of many random starts, of which the best are finished by least
// squares, with a growing number of unknowns.
//
//   [Schwarz] see candidate.h
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "lcp/nn/lcp_network.h"
#include "network/candidate.h"
#include "network/fit.h"
#include "network/motion.h"

namespace lcp::training {

struct SearchOptions : FitOptions {
  /// The parts of the networks. The search chooses the number of unknowns and whether q is affine or a network.
  nn::LcpNetworkOptions parts = {1, 1, 1};
  bool affine = true;         ///< whether networks with an affine q are tried
  bool network = true;        ///< whether those whose q is a network are tried
  std::int64_t unknowns = 0;  ///< 0: found by the search
  std::int64_t starts = 192;  ///< of a round; one that repeats an earlier round has twice as many as that
  /// Of the Levenberg-Marquardt method in the last of its stages on the best starts; the stages before it have a
  /// quarter of them each. 0: Adam alone.
  std::int64_t finishing_iterations = 80;
  /// The weight of the activity, which should be 0, in samples that rest after the step.
  double rest_penalty = 0.1;
  std::int64_t threads = 1;
};

struct Round {
  std::int64_t starts;
  /// The best networks with and without couplings, and all that predict the samples up to rounding, best first.
  std::vector<Candidate> best;
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
///    half of the validation samples, those that it misses show motion that no training sample shows, and it learns
///    from them, too. If none is exact, the same networks are also fitted with a diagonal M, which needs fewer samples
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
/// The result depends on the options, but neither on `threads` nor on the number of processes (process_group.h) that do
/// a round together.
class Search {
 public:
  /// Data in any units; the search divides by the standard deviations of the training data.
  Search(Motion training, Motion validation, const SearchOptions& options);

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

  const std::vector<Round>& rounds() const { return rounds_; }

  /// Of exact networks the one that agrees most with the others. Otherwise, of those whose validation errors are the
  /// lowest up to chance, the one with the lowest Bayesian information criterion [Schwarz] on all samples: more
  /// unknowns always fit noise a little better, and the few validation samples do not tell that from motion.
  Candidate best() const;

  /// The training and the validation data.
  Motion all() const;

  /// A network of the search, fitted to `motion`, from where it is.
  Candidate refitted(const Candidate& candidate, const Motion& motion) const;

  /// `refitted`, or the network itself where that fit changes its predictions for random states by far more than its
  /// validation error; and simpler where the motion does not contradict it by the Bayesian information criterion
  /// [Schwarz]: of two assumptions, which save parameters that noise would make wrong, those are kept that lower it.
  /// None is tried without more residuals than parameters.
  ///
  /// * The map is odd: it is fitted to the mirrored samples (-x, -v_next), too, which halves its parameters.
  /// * Each unknown takes away all of the velocity along its direction, v . G_i dq_i / dv = -M_ii, as an impulse on a
  ///   body with inertia does, so that the velocities before and after a step differ by as much whatever they are. This
  ///   is tried where M is diagonal, q affine, G constant and f absent.
  Candidate simplified(const Candidate& candidate, const Motion& motion) const;

  /// The share of random states, each component from another sample, in which another exact network predicts another
  /// motion, a mean over all exact networks of the search but `candidate`; none where there is no other.
  std::optional<double> disagreement(const Candidate& candidate) const;

  const torch::Tensor& input_unit() const { return input_unit_; }
  const torch::Tensor& output_unit() const { return output_unit_; }
  nn::LcpNetwork network(const nn::LcpNetworkOptions& options) const;

  void restore(std::vector<Round> rounds) { rounds_ = std::move(rounds); }

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
  std::vector<const Candidate*> candidates() const;
  torch::Tensor random_states() const;
  torch::Tensor prediction(const Candidate& candidate, const torch::Tensor& states) const;
  std::vector<torch::Tensor> exact_predictions() const;
  std::vector<Candidate> ranked(const nn::LcpNetwork& network, const torch::Tensor& theta) const;

  Motion training_, validation_;
  SearchOptions options_;
  torch::Tensor input_unit_, output_unit_;
  std::vector<Round> rounds_;
};

}  // namespace lcp::training
